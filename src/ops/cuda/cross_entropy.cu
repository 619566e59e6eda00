// Softmax and its loss on rows of logits z: loss = −ln p[target] in nats with p = softmax(z), and
// dz = scale·(p − onehot(target)). Where the target is to be ignored both are 0.
//
// A block has a row and reads it twice: once for the maximum and the sum, each thread rescaling its own sum
// when it meets a larger logit, and once to turn logits into gradients. `gradient` may be `logits` itself.
#include "common.cuh"
#include <float.h>

constexpr uint32_t IGNORE = 0xffffffffu;

/// Largest over the threads of a block. `room`: a number a warp, shared.
__device__ inline float block_max(float x, float *room) {
    for (uint32_t step = WARP / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, step));
    if (lane() == 0) room[warp()] = x;
    __syncthreads();
    for (uint32_t i = 0; i < blockDim.x / WARP; i++) x = fmaxf(x, room[i]);
    __syncthreads(); // all have read: the room is free again
    return x;
}

template <uint32_t N, typename L, typename G>
__device__ void row(const L *logits, uint32_t target, float *loss, G *gradient, uint32_t vocabulary, float scale) {
    float *room = shared_memory<float>();
    const float correct = threadIdx.x == 0 ? load<1>(logits + target).at[0] : 0;
    float max = -FLT_MAX, sum = 0; // not −∞: −∞ − −∞ is no number
    for (uint32_t i = threadIdx.x * N; i < vocabulary; i += blockDim.x * N) {
        const Floats<N> z = load<N>(logits + i);
        float larger = max;
#pragma unroll
        for (uint32_t j = 0; j < N; j++) larger = fmaxf(larger, z.at[j]);
        sum *= expf(max - larger);
        max = larger;
#pragma unroll
        for (uint32_t j = 0; j < N; j++) sum += expf(z.at[j] - max);
    }
    const float largest = block_max(max, room);
    const float total = block_sum(sum * expf(max - largest), room);
    if (threadIdx.x == 0) store<1>(loss, {logf(total) + (largest - correct)});
    if (gradient == nullptr) return;
    const float share = scale / total;
    for (uint32_t i = threadIdx.x * N; i < vocabulary; i += blockDim.x * N) {
        Floats<N> z = load<N>(logits + i);
#pragma unroll
        for (uint32_t j = 0; j < N; j++) z.at[j] = expf(z.at[j] - largest) * share - (i + j == target ? scale : 0);
        store<N>(gradient + i, z);
    }
}

template <typename L, typename G>
__device__ void rows(const L *logits, const uint32_t *targets, float *losses, G *gradient, uint32_t vocabulary,
                     float scale) {
    const size_t at = size_t(blockIdx.x) * vocabulary;
    const uint32_t target = fetch<1>(targets + blockIdx.x).at[0];
    constexpr uint32_t N = WIDE<L> < WIDE<G> ? WIDE<L> : WIDE<G>;
    G *const out = gradient == nullptr ? nullptr : gradient + at;
    if (target == IGNORE) {
        if (threadIdx.x == 0) store<1>(losses + blockIdx.x, {0.0f});
        if (out != nullptr) {
            for (uint32_t i = threadIdx.x; i < vocabulary; i += blockDim.x) store<1>(out + i, {0.0f});
        }
    } else if (packs<N>(vocabulary, logits, gradient)) {
        row<N>(logits + at, target, losses + blockIdx.x, out, vocabulary, scale);
    } else {
        row<1>(logits + at, target, losses + blockIdx.x, out, vocabulary, scale);
    }
}

/// total += Σ losses, in f64, by one block.
extern "C" __global__ void __launch_bounds__(THREADS)
    cross_entropy_total(const float *losses, double *total, uint32_t rows) {
    double sum = 0;
    for (uint32_t i = threadIdx.x; i < rows; i += blockDim.x) sum += load<1>(losses + i).at[0];
    sum = block_sum(sum, shared_memory<double>());
    if (threadIdx.x == 0) put(total, fetch<1>(total).at[0] + sum);
}
EXPORT(cross_entropy_total)

#define KERNELS(L, G, name)                                                                                            \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        cross_entropy_##name(const L *logits, const uint32_t *targets, float *losses, G *gradient,                     \
                             uint32_t vocabulary, float scale) {                                                       \
        rows(logits, targets, losses, gradient, vocabulary, scale);                                                    \
    }                                                                                                                  \
    EXPORT(cross_entropy_##name)
KERNELS(float, float, f32)
KERNELS(bf16, bf16, bf16)
KERNELS(float, bf16, f32_bf16) // logits in f32 for the loss, gradients in bf16 for the products that follow
