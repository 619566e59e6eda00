//! The two number types the kernels are written for: `f32` to train, `f64` to check gradients.

use std::fmt::Debug;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub};

/// A floating-point type that kernels compute in.
pub trait Real:
    Copy
    + Default
    + Debug
    + PartialOrd
    + Send
    + Sync
    + Sum
    + bytemuck::Pod
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + MulAssign
    + 'static
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// The nearest value to `x`.
    fn from_f64(x: f64) -> Self;
    /// The value as `f64`, exact.
    fn to_f64(self) -> f64;
    /// √x.
    fn sqrt(self) -> Self;
    /// eˣ; for `f32` a polynomial that vectorises, with an error of at most 2 units in the last place.
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// The numbers as `f32`, if that is their type.
    fn as_f32(numbers: &[Self]) -> Option<&[f32]> {
        (size_of::<Self>() == size_of::<f32>()).then(|| bytemuck::cast_slice(numbers))
    }
    /// The numbers as `f32` to write to, if that is their type.
    fn as_f32_mut(numbers: &mut [Self]) -> Option<&mut [f32]> {
        (size_of::<Self>() == size_of::<f32>()).then(|| bytemuck::cast_slice_mut(numbers))
    }
    /// The larger of two numbers.
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if self < other { other } else { self }
    }
}

impl Real for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        x
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        self.sqrt()
    }
    #[inline(always)]
    fn exp(self) -> Self {
        self.exp()
    }
    #[inline(always)]
    fn ln(self) -> Self {
        self.ln()
    }
}

impl Real for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        x as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        self.sqrt()
    }
    #[inline(always)]
    fn exp(self) -> Self {
        exp_f32(self)
    }
    #[inline(always)]
    fn ln(self) -> Self {
        self.ln()
    }
}

/// eˣ = 2ⁿ·eʳ with n the integer nearest x/ln 2 and |r| ≤ ln 2 / 2; eʳ by a degree-7 Taylor polynomial
/// in Horner form. Branch-free, so that a loop over it becomes vector code. Below −87.3 it gives 0,
/// above 88.7 infinity, for NaN NaN.
#[inline(always)]
fn exp_f32(x: f32) -> f32 {
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    const LN2_HIGH: f32 = 0.693_359_4; // few bits, so that n·LN2_HIGH is exact
    const LN2_LOW: f32 = -2.121_944_4e-4;
    const ROUND: f32 = 12_582_912.0; // 1.5·2²³: adding and subtracting it rounds to an integer
    let clamped = x.clamp(-87.336_54, 88.722_83);
    let rounded = clamped * LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = (clamped - n * LN2_HIGH) - n * LN2_LOW;
    let p = 1.0 / 5040.0;
    let p = p * r + 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 0.5;
    let p = (p * r) * r + r + 1.0;
    // 2ⁿ in two factors, since n = 128 alone has no f32; n stands in the low bits of `rounded`.
    let n = rounded.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    let half = n >> 1;
    let rest = n - half;
    let power = |k: i32| f32::from_bits(((k + 127) as u32) << 23);
    let value = p * power(half) * power(rest);
    let value = if x < -87.336_54 { 0.0 } else { value };
    let value = if x > 88.722_83 { f32::INFINITY } else { value };
    if x.is_nan() { x } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_within_two_units_in_the_last_place() {
        let mut worst = 0.0f64;
        for i in -870_000..887_000 {
            let x = i as f32 * 1e-4;
            let exact = f64::from(x).exp();
            let unit = f64::from(f32::from_bits((exact as f32).to_bits() + 1)) - f64::from(exact as f32);
            worst = worst.max((f64::from(exp_f32(x)) - exact).abs() / unit);
        }
        assert!(worst < 2.0, "{worst} units in the last place");
    }

    #[test]
    fn exp_keeps_the_edges() {
        assert_eq!(exp_f32(0.0), 1.0);
        assert_eq!(exp_f32(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp_f32(-1e9), 0.0);
        assert_eq!(exp_f32(1e9), f32::INFINITY);
        assert!(exp_f32(f32::NAN).is_nan());
    }
}
