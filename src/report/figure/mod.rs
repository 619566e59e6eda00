//! Figures: SVG with one visual language, and the numbers of each as CSV beside it.
//!
//! The same inputs give the same bytes: no fonts are measured, no time is written, and machine speed
//! is never drawn. Every caption says the scale, the sample and the seed.

mod balance;
mod fertility;
mod loss;
mod style;
mod training;

pub use balance::{Share, balance};
pub use fertility::{Bar, fertility};
pub use loss::{LossPoint, loss};
pub use training::{Curve, training};

use super::ReportError;
use crate::artifact::write_atomic;
use std::path::Path;

/// A drawn figure and its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// File name without extension.
    pub id: &'static str,
    /// SVG text.
    pub svg: String,
    /// The numbers, CSV with a header line.
    pub csv: String,
}

impl Figure {
    /// Writes `<id>.svg` and `<id>.csv` into `directory`.
    ///
    /// # Errors
    /// [`ReportError::File`].
    pub fn save(&self, directory: &Path) -> Result<(), ReportError> {
        write_atomic(&directory.join(format!("{}.svg", self.id)), self.svg.as_bytes())?;
        Ok(write_atomic(&directory.join(format!("{}.csv", self.id)), self.csv.as_bytes())?)
    }
}
