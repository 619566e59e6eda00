// Global norm of a gradient, √Σg², summed in f64: a block sums a stretch whose length does not depend on the
// device, then one block sums the stretches and says what the step is to be.
#include "step.cuh"

/// Numbers of a stretch.
constexpr uint64_t STRETCH = 1 << 16;

template <uint32_t N, typename G> __device__ double sum_of_squares(const G *gradient, uint64_t first, uint64_t end) {
    double sum = 0;
    for (uint64_t i = first + threadIdx.x * N; i < end; i += blockDim.x * N) {
        const Floats<N> g = load<N>(gradient + i);
#pragma unroll
        for (uint32_t j = 0; j < N; j++) sum += double(g.at[j]) * g.at[j];
    }
    return sum;
}

template <typename G> __device__ void stretch(const G *gradient, double *partial, uint64_t count) {
    const uint64_t first = blockIdx.x * STRETCH, end = first + STRETCH < count ? first + STRETCH : count;
    const double sum = packs<WIDE<G>>(count, gradient) ? sum_of_squares<WIDE<G>>(gradient, first, end)
                                                       : sum_of_squares<1>(gradient, first, end);
    const double total = block_sum(sum, shared_memory<double>());
    if (threadIdx.x == 0) put(partial + blockIdx.x, total);
}

/// One block: the norm of all `partial` sums, and the step that follows from it.
extern "C" __global__ void __launch_bounds__(THREADS)
    norm_finish(const double *partial, uint32_t count, Step *step, double limit, double beta1, double beta2) {
    double sum = 0;
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) sum += fetch<1>(partial + i).at[0];
    sum = block_sum(sum, shared_memory<double>());
    if (threadIdx.x != 0) return;
    const double norm = sqrt(sum);
    const bool finite = norm <= 1.7976931348623157e308; // false for NaN too
    const uint64_t steps = fetch<1>(&step->taken).at[0] + finite;
    const double taken = steps;
    put(&step->norm, norm);
    put(&step->moves, finite);
    put(&step->gradient_scale, finite ? (norm > limit ? limit / norm : 1) : 0);
    put(&step->taken, steps);
    put(&step->first_correction, 1 / (1 - pow(beta1, taken)));
    put(&step->second_correction, 1 / (1 - pow(beta2, taken)));
}
EXPORT(norm_finish)

#define KERNELS(G, name)                                                                                               \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        norm_partial_##name(const G *gradient, double *partial, uint64_t count) {                                      \
        stretch(gradient, partial, count);                                                                             \
    }                                                                                                                  \
    EXPORT(norm_partial_##name)
KERNELS(float, f32)
KERNELS(bf16, bf16)
