//! Differentiable fused ops: slices at the bottom, Candle custom ops with a backward on top.
