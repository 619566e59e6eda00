// RMSNorm (B. Zhang, R. Sennrich, NeurIPS 2019): y = g ∘ x·r with r = 1/√(mean(x²) + ε).
//
// With n the width and u = dy ∘ g: dx += r·(u − x·r²·Σ(u∘x)/n) and dg += Σ over rows of dy ∘ x·r.
// Forward, a warp has a row. Backward, a block has every `gridDim.x`-th row and a thread its columns of
// them, so that it sums the columns' share of dg without asking anyone; `rms_norm_gain` adds the shares up.
#include "common.cuh"

template <uint32_t N, typename T>
__device__ void forward_row(const T *x, const T *gain, T *y, float *inverse, uint32_t width, float epsilon) {
    float squares = 0;
    for (uint32_t i = lane() * N; i < width; i += WARP * N) {
        const Floats<N> a = load<N>(x + i);
#pragma unroll
        for (uint32_t j = 0; j < N; j++) squares += a.at[j] * a.at[j];
    }
    const float r = 1 / sqrtf(warp_sum(squares) / width + epsilon);
    if (lane() == 0) store<1>(inverse, {r});
    for (uint32_t i = lane() * N; i < width; i += WARP * N) {
        Floats<N> a = load<N>(x + i);
        const Floats<N> g = load<N>(gain + i);
#pragma unroll
        for (uint32_t j = 0; j < N; j++) a.at[j] = g.at[j] * (a.at[j] * r);
        store<N>(y + i, a);
    }
}

template <typename T>
__device__ void forward(const T *x, const T *gain, T *y, float *inverse, uint32_t rows, uint32_t width, float epsilon) {
    const uint32_t row = blockIdx.x * (blockDim.x / WARP) + warp();
    if (row >= rows) return;
    const size_t at = size_t(row) * width;
    if (packs<WIDE<T>>(width, x, gain, y)) {
        forward_row<WIDE<T>>(x + at, gain, y + at, inverse + row, width, epsilon);
    } else {
        forward_row<1>(x + at, gain, y + at, inverse + row, width, epsilon);
    }
}

/// `shares` `[gridDim.x, width]`: each block's part of dg.
template <uint32_t N, typename T>
__device__ void backward_rows(const T *x, const T *gain, const float *inverse, const T *dy, T *dx, float *shares,
                              uint32_t rows, uint32_t width) {
    float *room = shared_memory<float>(); // a number a warp, then a number a column
    float *columns = room + WARP;
    for (uint32_t i = threadIdx.x * N; i < width; i += blockDim.x * N) {
        for (uint32_t j = 0; j < N; j++) columns[i + j] = 0;
    }
    for (uint32_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const size_t at = size_t(row) * width;
        float dot = 0;
        for (uint32_t i = threadIdx.x * N; i < width; i += blockDim.x * N) {
            const Floats<N> a = load<N>(x + at + i), d = load<N>(dy + at + i), g = load<N>(gain + i);
#pragma unroll
            for (uint32_t j = 0; j < N; j++) dot += d.at[j] * g.at[j] * a.at[j];
        }
        const float r = load<1>(inverse + row).at[0];
        const float shrink = block_sum(dot, room) * r * r / width;
        for (uint32_t i = threadIdx.x * N; i < width; i += blockDim.x * N) {
            const Floats<N> a = load<N>(x + at + i), d = load<N>(dy + at + i), g = load<N>(gain + i);
            Floats<N> sum = load<N>(dx + at + i);
#pragma unroll
            for (uint32_t j = 0; j < N; j++) {
                sum.at[j] += r * (d.at[j] * g.at[j] - a.at[j] * shrink);
                columns[i + j] += d.at[j] * (a.at[j] * r);
            }
            store<N>(dx + at + i, sum);
        }
    }
    for (uint32_t i = threadIdx.x * N; i < width; i += blockDim.x * N) {
        for (uint32_t j = 0; j < N; j++) store<1>(shares + size_t(blockIdx.x) * width + i + j, {columns[i + j]});
    }
}

template <typename T>
__device__ void backward(const T *x, const T *gain, const float *inverse, const T *dy, T *dx, float *shares,
                         uint32_t rows, uint32_t width) {
    if (packs<WIDE<T>>(width, x, gain, dy, dx)) {
        backward_rows<WIDE<T>>(x, gain, inverse, dy, dx, shares, rows, width);
    } else {
        backward_rows<1>(x, gain, inverse, dy, dx, shares, rows, width);
    }
}

/// dgain += the shares `[parts, width]`, in order; a thread has a column.
extern "C" __global__ void __launch_bounds__(THREADS)
    rms_norm_gain(const float *shares, float *dgain, uint32_t parts, uint32_t width) {
    const uint32_t column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= width) return;
    float sum = 0;
    for (uint32_t part = 0; part < parts; part++) sum += load<1>(shares + size_t(part) * width + column).at[0];
    store<1>(dgain + column, {load<1>(dgain + column).at[0] + sum});
}
EXPORT(rms_norm_gain)

#define KERNELS(T, name)                                                                                               \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        rms_norm_forward_##name(const T *x, const T *gain, T *y, float *inverse, uint32_t rows, uint32_t width,        \
                                float epsilon) {                                                                       \
        forward(x, gain, y, inverse, rows, width, epsilon);                                                            \
    }                                                                                                                  \
    EXPORT(rms_norm_forward_##name)                                                                                    \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        rms_norm_backward_##name(const T *x, const T *gain, const float *inverse, const T *dy, T *dx, float *shares,   \
                                 uint32_t rows, uint32_t width) {                                                      \
        backward(x, gain, inverse, dy, dx, shares, rows, width);                                                       \
    }                                                                                                                  \
    EXPORT(rms_norm_backward_##name)
KERNELS(float, f32)
KERNELS(bf16, bf16)
