// Products of 16×16 tiles by one warp, sums in f32, and the shared-memory tiles they are taken from.
//
// With g = lane/4 and t = lane%4 a lane holds, of a left factor, rows g and g+8 at columns 2t, 2t+1, 2t+8 and
// 2t+9; of a right factor, those rows (of depth) at columns g and g+8; of a sum, rows g and g+8 at columns 2t,
// 2t+1, 2t+8 and 2t+9. That is the layout of `mma.m16n8k16` (PTX ISA, "Matrix fragments for mma.m16n8k16"),
// which multiplies bf16 on a device. f32, and bf16 on the host, are multiplied in the same layout by
// exchanging numbers between lanes: slow, and there for checking only.
#pragma once
#include "common.cuh"

/// Rows of a tile in shared memory: 16 for each warp of a block.
constexpr uint32_t TILE = 64;
constexpr uint32_t TILE_THREADS = TILE / 16 * WARP;
/// Numbers from one row to the next of a tile of width D: 16 bytes more, so that a warp meets every bank.
template <typename T, uint32_t D> constexpr uint32_t PITCH = D + WIDE<T>;

/// Two numbers that a lane has side by side.
template <typename T> struct alignas(2 * sizeof(T)) Pair {
    T at[2];
};
template <typename T> struct Left {
    Pair<T> at[4]; // (g, 2t) (g+8, 2t) (g, 2t+8) (g+8, 2t+8)
};
template <typename T> struct Right {
    Pair<T> at[2][2]; // column g + 8·half: depths (2t, 2t+1) and (2t+8, 2t+9)
};
struct Sum {
    float at[2][4]; // columns 2t and 2t+1 (+ 8·half) of row g, then of row g+8
};

/// Row (0..16) and column (0..16) in a sum of what this lane has at [half][i].
__device__ inline uint32_t sum_row(uint32_t i) { return lane() / 4 + i / 2 * 8; }
__device__ inline uint32_t sum_column(uint32_t half, uint32_t i) { return half * 8 + lane() % 4 * 2 + i % 2; }

/// A sum as the left factor of the next product, rounded to its type.
template <typename T> __device__ inline Left<T> as_left(const Sum &s) {
    Left<T> a;
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        a.at[i].at[0] = from_f32<T>(s.at[i / 2][i % 2 * 2]);
        a.at[i].at[1] = from_f32<T>(s.at[i / 2][i % 2 * 2 + 1]);
    }
    return a;
}

template <typename T> __device__ inline Pair<T> pair(const T *from) { return *reinterpret_cast<const Pair<T> *>(from); }

/// 16 rows and 16 columns of a tile as a left factor.
template <typename T> __device__ inline Left<T> left(const T *tile, uint32_t pitch) {
    const T *const from = tile + lane() / 4 * pitch + lane() % 4 * 2;
    return {{pair(from), pair(from + 8 * pitch), pair(from + 8), pair(from + 8 * pitch + 8)}};
}

/// The transpose of 16 rows and 16 columns of a tile as a right factor.
template <typename T> __device__ inline Right<T> transposed(const T *tile, uint32_t pitch) {
    const T *const from = tile + lane() / 4 * pitch + lane() % 4 * 2;
    return {{{pair(from), pair(from + 8)}, {pair(from + 8 * pitch), pair(from + 8 * pitch + 8)}}};
}

/// 16 rows and 16 columns of a tile as a right factor.
template <typename T> __device__ inline Right<T> right(const T *tile, uint32_t pitch) {
    const T *const from = tile + lane() % 4 * 2 * pitch + lane() / 4;
    Right<T> b;
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) {
        b.at[i / 4][i / 2 % 2].at[i % 2] = from[(i / 2 % 2 * 8 + i % 2) * pitch + i / 4 * 8];
    }
    return b;
}

/// c + a·b, the numbers of the factors fetched from the lanes that have them.
template <typename T> __device__ __noinline__ Sum multiply_plain(Sum c, Left<T> a, Right<T> b) {
    const uint32_t g = lane() / 4, t = lane() % 4;
#pragma unroll
    for (uint32_t k = 0; k < 16; k++) {
        const uint32_t owner = k % 8 / 2, upper = k / 8, odd = k % 2;
        const float a0 = __shfl_sync(ALL_LANES, to_f32(a.at[2 * upper].at[odd]), g * 4 + owner);
        const float a1 = __shfl_sync(ALL_LANES, to_f32(a.at[2 * upper + 1].at[odd]), g * 4 + owner);
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) { // half i/2, column 2t + i%2 of it
            const float x = __shfl_sync(ALL_LANES, to_f32(b.at[i / 2][upper].at[odd]), (2 * t + i % 2) * 4 + owner);
            c.at[i / 2][i % 2] += a0 * x;
            c.at[i / 2][i % 2 + 2] += a1 * x;
        }
    }
    return c;
}

#ifdef SHIKHA_HOST
/// The same with one exchange for all numbers: a fibre's turn costs more than a product.
template <typename T> Sum multiply_host(Sum c, const Left<T> &a, const Right<T> &b) {
    struct Both {
        Left<T> a;
        Right<T> b;
    };
    const Both mine = {a, b};
    const unsigned char *const all = shim::exchange(&mine, sizeof mine, __LINE__);
    const uint32_t g = lane() / 4, t = lane() % 4;
    for (uint32_t k = 0; k < 16; k++) {
        const uint32_t owner = k % 8 / 2, upper = k / 8, odd = k % 2;
        const Left<T> &row = reinterpret_cast<const Both *>(all + (g * 4 + owner) * shim::SLOT)->a;
        const float a0 = to_f32(row.at[2 * upper].at[odd]), a1 = to_f32(row.at[2 * upper + 1].at[odd]);
        for (uint32_t i = 0; i < 4; i++) {
            const Right<T> &column = reinterpret_cast<const Both *>(all + ((2 * t + i % 2) * 4 + owner) * shim::SLOT)->b;
            const float x = to_f32(column.at[i / 2][upper].at[odd]);
            c.at[i / 2][i % 2] += a0 * x;
            c.at[i / 2][i % 2 + 2] += a1 * x;
        }
    }
    return c;
}
#endif

/// c += a·b.
template <typename T> __device__ inline void multiply(Sum &c, const Left<T> &a, const Right<T> &b) {
#ifdef SHIKHA_HOST
    c = multiply_host(c, a, b);
#else
    c = multiply_plain(c, a, b);
#endif
}
#ifndef SHIKHA_HOST
__device__ inline uint32_t bits(Pair<bf16> x) {
    return uint32_t(__bfloat16_as_ushort(x.at[0])) | uint32_t(__bfloat16_as_ushort(x.at[1])) << 16;
}
template <> __device__ inline void multiply<bf16>(Sum &c, const Left<bf16> &a, const Right<bf16> &b) {
#pragma unroll
    for (uint32_t half = 0; half < 2; half++) {
        float *const s = c.at[half];
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
            : "r"(bits(a.at[0])), "r"(bits(a.at[1])), "r"(bits(a.at[2])), "r"(bits(a.at[3])),
              "r"(bits(b.at[half][0])), "r"(bits(b.at[half][1])));
    }
}
#endif

/// Copies rows first.. of a head `[rows, width]` to a tile, 0 beyond its rows and beyond its width.
template <uint32_t D, typename T>
__device__ void fill(T *tile, const T *head, uint32_t stride, uint32_t first, uint32_t rows, uint32_t width) {
    constexpr uint32_t N = WIDE<T>;
    const bool packed = packs<N>(width, head) && stride % N == 0;
    for (uint32_t i = threadIdx.x; i < TILE * (D / N); i += TILE_THREADS) {
        const uint32_t row = i / (D / N), column = i % (D / N) * N;
        Packet<T, N> x;
        for (uint32_t j = 0; j < N; j++) x.at[j] = from_f32<T>(0);
        if (first + row < rows && column < width) {
            const T *const from = head + size_t(first + row) * stride + column;
            if (packed) {
                x = fetch<N>(from);
            } else {
                for (uint32_t j = 0; j < N && column + j < width; j++) x.at[j] = fetch<1>(from + j).at[0];
            }
        }
        *reinterpret_cast<Packet<T, N> *>(tile + row * PITCH<T, D> + column) = x;
    }
}

/// This warp's 16 rows of a tile as left factors, D/16 of them side by side.
template <uint32_t D, typename T> __device__ inline void lefts(Left<T> *to, const T *tile) {
#pragma unroll
    for (uint32_t d = 0; d < D / 16; d++) to[d] = left(tile + warp() * 16 * PITCH<T, D> + d * 16, PITCH<T, D>);
}

/// Writes a warp's 16 rows of sums from row `first` on, what lies inside `rows` and `width`.
template <uint32_t D, typename T>
__device__ void write(T *head, uint32_t stride, const Sum *sums, uint32_t first, uint32_t rows, uint32_t width) {
#pragma unroll
    for (uint32_t d = 0; d < D / 16; d++) {
#pragma unroll
        for (uint32_t i = 0; i < 8; i++) {
            const uint32_t row = first + sum_row(i % 4), column = d * 16 + sum_column(i / 4, i % 4);
            if (row < rows && column < width) store<1>(head + size_t(row) * stride + column, {sums[d].at[i / 4][i % 4]});
        }
    }
}
