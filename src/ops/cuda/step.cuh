// What the optimizer must know of a step, written on the device so that the host need not wait for the norm.
#pragma once
#include "common.cuh"

/// `step.rs` has the same fields in the same places.
struct Step {
    /// Global norm of the gradient, before clipping.
    double norm;
    /// Steps taken, this one included: one whose gradient is not finite is not taken.
    uint64_t taken;
    /// Factor on the gradient that brings its norm to the limit; 1 below it, 0 when it is not finite.
    float gradient_scale;
    /// 1/(1 − β₁ᵗ) and 1/(1 − β₂ᵗ) with t the steps taken.
    float first_correction, second_correction;
    /// 1, or 0 when nothing may be moved.
    float moves;
};
