// SwiGLU's gate (N. Shazeer, arXiv:2002.05202): out = silu(a)·b with silu(a) = a·σ(a).
//
// da = dout·b·σ(a)·(1 + a·(1 − σ(a))) and db = dout·silu(a). A thread has every `stride`-th packet.
#include "common.cuh"

__device__ inline float sigmoid(float x) { return 1 / (1 + expf(-x)); }

template <uint32_t N, typename T> __device__ void forward(const T *gate, const T *up, T *out, uint64_t count) {
    const uint64_t stride = uint64_t(gridDim.x) * blockDim.x * N;
    for (uint64_t i = (uint64_t(blockIdx.x) * blockDim.x + threadIdx.x) * N; i < count; i += stride) {
        Floats<N> a = load<N>(gate + i);
        const Floats<N> b = load<N>(up + i);
#pragma unroll
        for (uint32_t j = 0; j < N; j++) a.at[j] *= sigmoid(a.at[j]) * b.at[j];
        store<N>(out + i, a);
    }
}

template <uint32_t N, typename T>
__device__ void backward(const T *gate, const T *up, const T *dout, T *dgate, T *dup, uint64_t count) {
    const uint64_t stride = uint64_t(gridDim.x) * blockDim.x * N;
    for (uint64_t i = (uint64_t(blockIdx.x) * blockDim.x + threadIdx.x) * N; i < count; i += stride) {
        Floats<N> a = load<N>(gate + i), b = load<N>(up + i);
        const Floats<N> d = load<N>(dout + i);
#pragma unroll
        for (uint32_t j = 0; j < N; j++) {
            const float s = sigmoid(a.at[j]), silu = a.at[j] * s;
            a.at[j] = d.at[j] * b.at[j] * (s + silu * (1 - s));
            b.at[j] = d.at[j] * silu;
        }
        store<N>(dgate + i, a);
        store<N>(dup + i, b);
    }
}

#define KERNELS(T, name)                                                                                               \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        swiglu_forward_##name(const T *gate, const T *up, T *out, uint64_t count) {                                    \
        packs<WIDE<T>>(count, gate, up, out) ? forward<WIDE<T>>(gate, up, out, count)                                  \
                                             : forward<1>(gate, up, out, count);                                       \
    }                                                                                                                  \
    EXPORT(swiglu_forward_##name)                                                                                      \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        swiglu_backward_##name(const T *gate, const T *up, const T *dout, T *dgate, T *dup, uint64_t count) {          \
        packs<WIDE<T>>(count, gate, up, dout, dgate, dup)                                                              \
            ? backward<WIDE<T>>(gate, up, dout, dgate, dup, count)                                                     \
            : backward<1>(gate, up, dout, dgate, dup, count);                                                          \
    }                                                                                                                  \
    EXPORT(swiglu_backward_##name)
KERNELS(float, f32)
KERNELS(bf16, bf16)
