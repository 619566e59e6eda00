// Rotary position embedding (J. Su et al., arXiv:2104.09864), in Hugging Face's half-rotation layout.
//
// With h the head's half width, the pair (x[j], x[j + h]) at position p is turned by the angle p·θ^(−j/h),
// whose cosine and sine stand in tables `[positions, h]`, f32. A rotation's transpose is its inverse: the
// backward pass is the same kernel with `sign` −1. A thread has a pair.
#include "common.cuh"

template <typename T>
__device__ void turn(T *x, const float *cosines, const float *sines, uint32_t pairs, uint32_t start, uint32_t time,
                     uint32_t heads, uint32_t half, float sign) {
    const uint32_t pair = blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= pairs) return;
    const uint32_t head = pair / half, row = head / heads;
    const uint32_t j = pair % half, position = start + row % time;
    T *first = x + size_t(head) * 2 * half + j, *second = first + half;
    const float cosine = load<1>(cosines + size_t(position) * half + j).at[0];
    const float sine = load<1>(sines + size_t(position) * half + j).at[0] * sign;
    const float a = load<1>(first).at[0], b = load<1>(second).at[0];
    store<1>(first, {a * cosine - b * sine});
    store<1>(second, {b * cosine + a * sine});
}

#define KERNELS(T, name)                                                                                               \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        rope_##name(T *x, const float *cosines, const float *sines, uint32_t pairs, uint32_t start, uint32_t time,     \
                    uint32_t heads, uint32_t half, float sign) {                                                       \
        turn(x, cosines, sines, pairs, start, time, heads, half, sign);                                                \
    }                                                                                                                  \
    EXPORT(rope_##name)
KERNELS(float, f32)
KERNELS(bf16, bf16)
