//! What a notebook imports: `use shikha_notebook::*;`.
//!
//! Everything of a cell comes through this crate, which is also a dynamic library. So Candle exists once in a kernel,
//! and a gradient taken in one cell finds the variable made in another.

pub use candle_core;
pub use candle_nn;
pub use shikha;
pub use shikha::notebook::*;
