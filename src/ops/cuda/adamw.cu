// AdamW (I. Loshchilov, F. Hutter, ICLR 2019), all of it in one pass over memory.
//
// With g the gradient times the step's scale and t the steps taken: m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g²,
// θ ← θ − η·λ·θ − η·m̂/(√v̂ + ε) with m̂ = m/(1−β₁ᵗ), v̂ = v/(1−β₂ᵗ). θ, m and v are f32; `copy`, when there
// is one, gets θ rounded to bf16 for the matrix products. What depends on the norm stands in `step`, on the
// device: the host never waits for it. A step that may not move leaves every bit as it is.
#include "step.cuh"

/// Constants of the optimizer; 1 − β is not computed from a rounded β. `adamw.rs` has the same fields.
struct Settings {
    float rate, keep, beta1, rest1, beta2, rest2, epsilon;
};

template <uint32_t N, typename G>
__device__ void move(float *parameter, const G *gradient, float *first, float *second, bf16 *copy, uint64_t count,
                     const Step *step, Settings s) {
    const float scale = fetch<1>(&step->gradient_scale).at[0], moves = fetch<1>(&step->moves).at[0];
    const float rate = s.rate * fetch<1>(&step->first_correction).at[0];
    const float correct = fetch<1>(&step->second_correction).at[0];
    if (moves == 0) return;
    const uint64_t stride = uint64_t(gridDim.x) * blockDim.x * N;
    for (uint64_t i = (uint64_t(blockIdx.x) * blockDim.x + threadIdx.x) * N; i < count; i += stride) {
        const Floats<N> g = load<N>(gradient + i);
        Floats<N> p = load<N>(parameter + i), m = load<N>(first + i), v = load<N>(second + i);
#pragma unroll
        for (uint32_t j = 0; j < N; j++) {
            const float d = g.at[j] * scale;
            m.at[j] = s.beta1 * m.at[j] + s.rest1 * d;
            v.at[j] = s.beta2 * v.at[j] + s.rest2 * d * d;
            p.at[j] = p.at[j] * s.keep - rate * m.at[j] / (sqrtf(v.at[j] * correct) + s.epsilon);
        }
        store<N>(parameter + i, p);
        store<N>(first + i, m);
        store<N>(second + i, v);
        if (copy != nullptr) store<N>(copy + i, p);
    }
}

#define KERNELS(G, name)                                                                                               \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        adamw_##name(float *parameter, const G *gradient, float *first, float *second, bf16 *copy, uint64_t count,     \
                     const Step *step, Settings settings) {                                                            \
        packs<4>(count, parameter, gradient, first, second, copy)                                                      \
            ? move<4>(parameter, gradient, first, second, copy, count, step, settings)                                 \
            : move<1>(parameter, gradient, first, second, copy, count, step, settings);                                \
    }                                                                                                                  \
    EXPORT(adamw_##name)
KERNELS(float, f32)
KERNELS(bf16, bf16)
