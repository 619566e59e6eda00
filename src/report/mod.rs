//! The report: what the abstract claims beside what was measured, as tables and figures.
//!
//! Everything here reads plain measurements; nothing here knows how training works.

pub mod arbiter;
mod arithmetic;
mod blocks;
mod card;
pub mod choice;
mod claims;
pub mod consequence;
pub mod cost;
mod croissant;
pub mod defects;
pub mod efficiency;
mod error;
pub mod figure;
pub mod gpu;
mod measured;
mod numbers;
pub mod page;
pub mod registry;
pub mod release;
pub mod runs;
mod sources;
pub mod speed;
pub mod streaming;
pub mod study;
mod table;

pub use arithmetic::arithmetic;
pub use blocks::fill;
pub use card::{Card, CardLoss, CardSource, CardTraining};
pub use claims::{Claim, Ledger};
pub use croissant::croissant;
pub use error::ReportError;
pub use measured::{Measured, Measurements};
pub use numbers::Numbers;
pub use sources::sources;
pub use table::Table;
