// Embedding lookup: row i of the output is row ids[i] of the table. Its gradient adds row i of dout to row
// ids[i] of dtable.
//
// Ids repeat, and some fill a twentieth of a batch. The host sorts the places by id and cuts the places of
// one id into pieces of a few (`embedding.rs`). A block sums a piece, in order: into dtable itself when its
// id has no other piece, into a partial row otherwise. Then a block an id adds its partial rows up, in
// order. No two blocks write one row, nobody adds more than a piece, and the order never changes.
#include "common.cuh"

constexpr uint32_t ALONE = 0xffffffffu;

template <uint32_t N, typename T>
__device__ void copy(const T *from, T *to, uint32_t width) {
    for (uint32_t i = threadIdx.x * N; i < width; i += blockDim.x * N) {
        const Packet<T, N> x = fetch<N>(from + i);
        COUNT_WRITE(sizeof(x));
        *reinterpret_cast<Packet<T, N> *>(to + i) = x;
    }
}

template <typename T> __device__ void forward(const uint32_t *ids, const T *table, T *out, uint32_t width) {
    const T *const from = table + size_t(fetch<1>(ids + blockIdx.x).at[0]) * width;
    T *const to = out + size_t(blockIdx.x) * width;
    packs<WIDE<T>>(width, table, out) ? copy<WIDE<T>>(from, to, width) : copy<1>(from, to, width);
}

/// Piece p has the places order[starts[p]..starts[p + 1]] of id rows[p]; slots[p] is its partial row, or ALONE.
template <uint32_t N, typename T>
__device__ void sum_piece(const uint32_t *order, uint32_t first, uint32_t end, const T *dout, float *to, bool add,
                          uint32_t width) {
    for (uint32_t i = threadIdx.x * N; i < width; i += blockDim.x * N) {
        Floats<N> sum = {};
        if (add) sum = load<N>(to + i);
        for (uint32_t place = first; place < end; place++) {
            const Floats<N> x = load<N>(dout + size_t(fetch<1>(order + place).at[0]) * width + i);
#pragma unroll
            for (uint32_t j = 0; j < N; j++) sum.at[j] += x.at[j];
        }
        store<N>(to + i, sum);
    }
}

template <typename T>
__device__ void pieces(const uint32_t *order, const uint32_t *starts, const uint32_t *rows, const uint32_t *slots,
                       const T *dout, float *dtable, float *partial, uint32_t width) {
    const uint32_t first = fetch<1>(starts + blockIdx.x).at[0], end = fetch<1>(starts + blockIdx.x + 1).at[0];
    const uint32_t slot = fetch<1>(slots + blockIdx.x).at[0];
    const bool alone = slot == ALONE;
    float *const to = alone ? dtable + size_t(fetch<1>(rows + blockIdx.x).at[0]) * width : partial + size_t(slot) * width;
    packs<4>(width, dout, dtable, partial) ? sum_piece<4>(order, first, end, dout, to, alone, width)
                                           : sum_piece<1>(order, first, end, dout, to, alone, width);
}

/// Row rows[b] of dtable += the partial rows starts[b]..starts[b + 1], in order.
template <uint32_t N>
__device__ void sum_partial(const float *partial, uint32_t first, uint32_t end, float *to, uint32_t width) {
    for (uint32_t i = threadIdx.x * N; i < width; i += blockDim.x * N) {
        Floats<N> sum = load<N>(to + i);
        for (uint32_t slot = first; slot < end; slot++) {
            const Floats<N> x = load<N>(partial + size_t(slot) * width + i);
#pragma unroll
            for (uint32_t j = 0; j < N; j++) sum.at[j] += x.at[j];
        }
        store<N>(to + i, sum);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    embedding_backward_rows(const float *partial, const uint32_t *starts, const uint32_t *rows, float *dtable,
                            uint32_t width) {
    const uint32_t first = fetch<1>(starts + blockIdx.x).at[0], end = fetch<1>(starts + blockIdx.x + 1).at[0];
    float *const to = dtable + size_t(fetch<1>(rows + blockIdx.x).at[0]) * width;
    packs<4>(width, partial, dtable) ? sum_partial<4>(partial, first, end, to, width)
                                     : sum_partial<1>(partial, first, end, to, width);
}
EXPORT(embedding_backward_rows)

#define KERNELS(T, name)                                                                                               \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        embedding_forward_##name(const uint32_t *ids, const T *table, T *out, uint32_t width) {                        \
        forward(ids, table, out, width);                                                                               \
    }                                                                                                                  \
    EXPORT(embedding_forward_##name)                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        embedding_backward_pieces_##name(const uint32_t *order, const uint32_t *starts, const uint32_t *rows,          \
                                         const uint32_t *slots, const T *dout, float *dtable, float *partial,          \
                                         uint32_t width) {                                                             \
        pieces(order, starts, rows, slots, dout, dtable, partial, width);                                              \
    }                                                                                                                  \
    EXPORT(embedding_backward_pieces_##name)
KERNELS(float, f32)
KERNELS(bf16, bf16)
