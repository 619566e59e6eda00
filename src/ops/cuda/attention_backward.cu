// Causal attention with grouped heads, backward (T. Dao, arXiv:2307.08691).
//
// With P = exp(s·QKᵀ − L) on and below the diagonal and Δ = Σ dO∘O of a row: dP = dO·Vᵀ,
// dS = P∘(dP − Δ)·s, dQ = dS·K, dK = dSᵀ·Q, dV = Pᵀ·dO, each tile of P computed again from L. Three kernels:
// Δ of every row; dQ, a block a tile of queries; dK and dV, a block a tile of keys with all query heads that
// share them. Computing P twice costs two products of seven, and no block ever adds to what another writes.
#include "tile.cuh"

constexpr float LOG2_E = 1.4426950408889634f;

/// Δ `[windows, heads, time]`; a warp has a row of a head.
template <typename T>
__device__ void dots(const T *out, const T *dout, float *delta, uint32_t rows, uint32_t time, uint32_t heads,
                     uint32_t width) {
    const uint32_t i = blockIdx.x * (blockDim.x / WARP) + warp();
    if (i >= rows * heads) return;
    const uint32_t row = i / heads, head = i % heads;
    const size_t at = size_t(i) * width;
    float sum = 0;
    for (uint32_t j = lane(); j < width; j += WARP) sum += load<1>(out + at + j).at[0] * load<1>(dout + at + j).at[0];
    sum = warp_sum(sum);
    if (lane() == 0) store<1>(delta + (size_t(row / time) * heads + head) * time + row % time, {sum});
}

/// What the shape says of where things lie.
struct Shape {
    uint32_t time, heads, kv_heads, width;
    __device__ uint32_t tiles() const { return (time + TILE - 1) / TILE; }
    __device__ uint32_t group() const { return heads / kv_heads; }
    __device__ uint32_t stride() const { return heads * width; }
    __device__ uint32_t kv_stride() const { return kv_heads * width; }
    __device__ size_t query(uint32_t window, uint32_t head) const { return size_t(window) * time * stride() + head * width; }
    __device__ size_t key(uint32_t window, uint32_t head) const { return size_t(window) * time * kv_stride() + head * width; }
    __device__ size_t row(uint32_t window, uint32_t head) const { return (size_t(window) * heads + head) * time; }
};

template <uint32_t D, typename T>
__device__ void queries(const T *q, const T *k, const T *v, const T *dout, const float *log_sum_exp, const float *delta,
                        T *dq, Shape s, float scale) {
    constexpr uint32_t P = PITCH<T, D>;
    T *const keys = shared_memory<T>(), *const values = keys + TILE * P;
    const uint32_t first = (s.tiles() - 1 - blockIdx.x % s.tiles()) * TILE; // the longest rows begin first
    const uint32_t head = blockIdx.x / s.tiles() % s.heads, window = blockIdx.x / s.tiles() / s.heads;
    const size_t at = s.query(window, head), kv_at = s.key(window, head / s.group());
    const uint32_t row = first + warp() * 16; // this warp's first

    Left<T> query[D / 16], gradient[D / 16];
    fill<D>(keys, q + at, s.stride(), first, s.time, s.width);
    fill<D>(values, dout + at, s.stride(), first, s.time, s.width);
    __syncthreads();
    lefts<D>(query, keys);
    lefts<D>(gradient, values);
    float sums[2], dot[2];
    for (uint32_t r = 0; r < 2; r++) {
        const uint32_t mine = row + sum_row(2 * r);
        sums[r] = mine < s.time ? load<1>(log_sum_exp + s.row(window, head) + mine).at[0] : 0;
        dot[r] = mine < s.time ? load<1>(delta + s.row(window, head) + mine).at[0] : 0;
    }
    Sum sum[D / 16] = {};
    for (uint32_t start = 0; start <= first; start += TILE) {
        __syncthreads(); // all have read what the tiles held
        fill<D>(keys, k + kv_at, s.kv_stride(), start, s.time, s.width);
        fill<D>(values, v + kv_at, s.kv_stride(), start, s.time, s.width);
        __syncthreads();
        for (uint32_t j = 0; j < TILE; j += 16) {
            Sum p = {}, ds = {};
#pragma unroll
            for (uint32_t d = 0; d < D / 16; d++) {
                multiply(p, query[d], transposed(keys + j * P + d * 16, P));
                multiply(ds, gradient[d], transposed(values + j * P + d * 16, P));
            }
#pragma unroll
            for (uint32_t i = 0; i < 8; i++) {
                const bool seen = start + j + sum_column(i / 4, i % 4) <= row + sum_row(i % 4);
                float &x = ds.at[i / 4][i % 4];
                const float weight = seen ? exp2f((p.at[i / 4][i % 4] * scale - sums[i % 4 / 2]) * LOG2_E) : 0;
                x = weight * (x - dot[i % 4 / 2]) * scale;
            }
            const Left<T> factor = as_left<T>(ds);
#pragma unroll
            for (uint32_t d = 0; d < D / 16; d++) multiply(sum[d], factor, right(keys + j * P + d * 16, P));
        }
    }
    write<D>(dq + at, s.stride(), sum, row, s.time, s.width);
}

template <uint32_t D, typename T>
__device__ void keys(const T *q, const T *k, const T *v, const T *dout, const float *log_sum_exp, const float *delta,
                     T *dk, T *dv, Shape s, float scale) {
    constexpr uint32_t P = PITCH<T, D>;
    T *const queries = shared_memory<T>(), *const gradients = queries + TILE * P;
    float *const sums = reinterpret_cast<float *>(gradients + TILE * P), *const dot = sums + TILE;
    const uint32_t first = blockIdx.x % s.tiles() * TILE; // the first keys are seen by the most queries
    const uint32_t kv_head = blockIdx.x / s.tiles() % s.kv_heads, window = blockIdx.x / s.tiles() / s.kv_heads;
    const size_t kv_at = s.key(window, kv_head);
    const uint32_t row = first + warp() * 16; // this warp's first key

    Left<T> key[D / 16], value[D / 16];
    fill<D>(queries, k + kv_at, s.kv_stride(), first, s.time, s.width);
    fill<D>(gradients, v + kv_at, s.kv_stride(), first, s.time, s.width);
    __syncthreads();
    lefts<D>(key, queries);
    lefts<D>(value, gradients);
    Sum dkey[D / 16] = {}, dvalue[D / 16] = {};
    for (uint32_t head = kv_head * s.group(); head < (kv_head + 1) * s.group(); head++) {
        const size_t at = s.query(window, head);
        for (uint32_t start = first; start < s.time; start += TILE) {
            __syncthreads(); // all have read what the tiles held
            fill<D>(queries, q + at, s.stride(), start, s.time, s.width);
            fill<D>(gradients, dout + at, s.stride(), start, s.time, s.width);
            for (uint32_t i = threadIdx.x; i < TILE; i += TILE_THREADS) {
                const bool inside = start + i < s.time;
                sums[i] = inside ? load<1>(log_sum_exp + s.row(window, head) + start + i).at[0] : 0;
                dot[i] = inside ? load<1>(delta + s.row(window, head) + start + i).at[0] : 0;
            }
            __syncthreads();
            for (uint32_t j = 0; j < TILE; j += 16) {
                Sum p = {}, ds = {}; // of the transposed scores: a row is a key, a column a query
#pragma unroll
                for (uint32_t d = 0; d < D / 16; d++) {
                    multiply(p, key[d], transposed(queries + j * P + d * 16, P));
                    multiply(ds, value[d], transposed(gradients + j * P + d * 16, P));
                }
#pragma unroll
                for (uint32_t i = 0; i < 8; i++) {
                    const uint32_t column = j + sum_column(i / 4, i % 4);
                    const bool seen = row + sum_row(i % 4) <= start + column;
                    float &weight = p.at[i / 4][i % 4], &x = ds.at[i / 4][i % 4];
                    weight = seen ? exp2f((weight * scale - sums[column]) * LOG2_E) : 0;
                    x = weight * (x - dot[column]) * scale;
                }
                const Left<T> weights = as_left<T>(p), factor = as_left<T>(ds);
#pragma unroll
                for (uint32_t d = 0; d < D / 16; d++) {
                    multiply(dvalue[d], weights, right(gradients + j * P + d * 16, P));
                    multiply(dkey[d], factor, right(queries + j * P + d * 16, P));
                }
            }
        }
    }
    write<D>(dk + kv_at, s.kv_stride(), dkey, row, s.time, s.width);
    write<D>(dv + kv_at, s.kv_stride(), dvalue, row, s.time, s.width);
}

#define KERNEL(T, name, D)                                                                                             \
    extern "C" __global__ void __launch_bounds__(TILE_THREADS)                                                         \
        attention_queries_##name##_##D(const T *q, const T *k, const T *v, const T *dout, const float *log_sum_exp,    \
                                       const float *delta, T *dq, Shape shape, float scale) {                          \
        queries<D>(q, k, v, dout, log_sum_exp, delta, dq, shape, scale);                                               \
    }                                                                                                                  \
    EXPORT(attention_queries_##name##_##D)                                                                             \
    extern "C" __global__ void __launch_bounds__(TILE_THREADS)                                                         \
        attention_keys_##name##_##D(const T *q, const T *k, const T *v, const T *dout, const float *log_sum_exp,       \
                                    const float *delta, T *dk, T *dv, Shape shape, float scale) {                      \
        keys<D>(q, k, v, dout, log_sum_exp, delta, dk, dv, shape, scale);                                              \
    }                                                                                                                  \
    EXPORT(attention_keys_##name##_##D)
#define KERNELS(D) KERNEL(float, f32, D) KERNEL(bf16, bf16, D)
KERNELS(32)
KERNELS(64)
KERNELS(128)

#define DOTS(T, name)                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        attention_dots_##name(const T *out, const T *dout, float *delta, uint32_t rows, uint32_t time, uint32_t heads, \
                              uint32_t width) {                                                                        \
        dots(out, dout, delta, rows, time, heads, width);                                                              \
    }                                                                                                                  \
    EXPORT(attention_dots_##name)
DOTS(float, f32)
DOTS(bf16, bf16)
