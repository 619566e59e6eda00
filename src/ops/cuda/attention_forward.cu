// Causal attention with grouped heads in tiles (T. Dao, arXiv:2307.08691): no matrix of time × time exists.
//
// For one head, with scale s = 1/√width and L the log-sum-exp of a row of scores s·QKᵀ on and below the
// diagonal: O = exp(s·QKᵀ − L)·V. A block has 64 queries of a head, a warp 16 of them; it walks over tiles
// of 64 keys with a running maximum and sum of every row. Kept for the backward pass: L, f32.
#include "tile.cuh"

constexpr float LOG2_E = 1.4426950408889634f;

template <uint32_t D, typename T>
__device__ void forward(const T *q, const T *k, const T *v, T *out, float *log_sum_exp, uint32_t time, uint32_t heads,
                        uint32_t kv_heads, uint32_t width, float scale) {
    T *const keys = shared_memory<T>(), *const values = keys + TILE * PITCH<T, D>;
    const uint32_t tiles = (time + TILE - 1) / TILE;
    const uint32_t first = (tiles - 1 - blockIdx.x % tiles) * TILE; // the longest rows begin first
    const uint32_t head = blockIdx.x / tiles % heads, window = blockIdx.x / tiles / heads;
    const uint32_t stride = heads * width, kv_stride = kv_heads * width;
    const size_t at = size_t(window) * time * stride + head * width;
    const size_t kv_at = size_t(window) * time * kv_stride + head / (heads / kv_heads) * width;
    const uint32_t row = first + warp() * 16; // this warp's first

    Left<T> query[D / 16];
    fill<D>(keys, q + at, stride, first, time, width);
    __syncthreads();
    lefts<D>(query, keys);
    Sum o[D / 16] = {};
    float max[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
    for (uint32_t start = 0; start <= first; start += TILE) {
        __syncthreads(); // all have read what the tiles held
        fill<D>(keys, k + kv_at, kv_stride, start, time, width);
        fill<D>(values, v + kv_at, kv_stride, start, time, width);
        __syncthreads();
        Sum s[TILE / 16] = {};
#pragma unroll
        for (uint32_t j = 0; j < TILE / 16; j++) {
#pragma unroll
            for (uint32_t d = 0; d < D / 16; d++) {
                multiply(s[j], query[d], transposed(keys + j * 16 * PITCH<T, D> + d * 16, PITCH<T, D>));
            }
#pragma unroll
            for (uint32_t i = 0; i < 8; i++) {
                if (start + j * 16 + sum_column(i / 4, i % 4) > row + sum_row(i % 4)) s[j].at[i / 4][i % 4] = -INFINITY;
            }
        }
#pragma unroll
        for (uint32_t r = 0; r < 2; r++) {
            float larger = max[r];
#pragma unroll
            for (uint32_t i = 0; i < TILE / 4; i++) larger = fmaxf(larger, s[i / 4].at[i / 2 % 2][2 * r + i % 2]);
            for (uint32_t step = 1; step < 4; step *= 2) larger = fmaxf(larger, __shfl_xor_sync(ALL_LANES, larger, step));
            const float shrink = exp2f((max[r] - larger) * scale * LOG2_E);
            max[r] = larger;
            sum[r] *= shrink;
#pragma unroll
            for (uint32_t i = 0; i < TILE / 4; i++) {
                float &x = s[i / 4].at[i / 2 % 2][2 * r + i % 2];
                x = exp2f((x - larger) * scale * LOG2_E);
                sum[r] += x;
            }
#pragma unroll
            for (uint32_t i = 0; i < D / 4; i++) o[i / 4].at[i / 2 % 2][2 * r + i % 2] *= shrink;
        }
#pragma unroll
        for (uint32_t j = 0; j < TILE / 16; j++) {
            const Left<T> p = as_left<T>(s[j]);
#pragma unroll
            for (uint32_t d = 0; d < D / 16; d++) {
                multiply(o[d], p, right(values + j * 16 * PITCH<T, D> + d * 16, PITCH<T, D>));
            }
        }
    }
#pragma unroll
    for (uint32_t r = 0; r < 2; r++) {
        for (uint32_t step = 1; step < 4; step *= 2) sum[r] += __shfl_xor_sync(ALL_LANES, sum[r], step);
#pragma unroll
        for (uint32_t i = 0; i < D / 4; i++) o[i / 4].at[i / 2 % 2][2 * r + i % 2] /= sum[r];
        const uint32_t mine = row + sum_row(2 * r);
        if (lane() % 4 == 0 && mine < time) {
            store<1>(log_sum_exp + (size_t(window) * heads + head) * time + mine, {max[r] * scale + logf(sum[r])});
        }
    }
    write<D>(out + at, stride, o, row, time, width);
}

#define KERNEL(T, name, D)                                                                                             \
    extern "C" __global__ void __launch_bounds__(TILE_THREADS)                                                         \
        attention_forward_##name##_##D(const T *q, const T *k, const T *v, T *out, float *log_sum_exp, uint32_t time,  \
                                       uint32_t heads, uint32_t kv_heads, uint32_t width, float scale) {               \
        forward<D>(q, k, v, out, log_sum_exp, time, heads, kv_heads, width, scale);                                    \
    }                                                                                                                  \
    EXPORT(attention_forward_##name##_##D)
#define KERNELS(D) KERNEL(float, f32, D) KERNEL(bf16, bf16, D)
KERNELS(32)
KERNELS(64)
KERNELS(128)
