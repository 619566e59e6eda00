//! The report: what the abstract claims beside what was measured, as tables and figures.
//!
//! Everything here reads plain measurements; nothing here knows how training works.

pub mod arbiter;
mod claims;
pub mod defects;
mod error;
pub mod figure;
mod measured;
mod table;

pub use claims::{Claim, Ledger};
pub use error::ReportError;
pub use measured::{Measured, Measurements};
pub use table::Table;
