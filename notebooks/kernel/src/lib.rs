//! The Rust kernel of Shikha's notebooks, and their runner without Jupyter.

pub mod drift;
pub mod error;
pub mod execute;
pub mod failure;
pub mod install;
pub mod jupyter;
pub mod locate;
pub mod notebook;
pub mod outputs;
pub mod repository;
pub mod run;
pub mod session;
pub mod warm;
pub mod watch;
pub mod workshop;
pub mod wrapper;

/// The exit status of a process that has said what is wrong; any other means that it broke.
pub const FAILED: i32 = 3;
