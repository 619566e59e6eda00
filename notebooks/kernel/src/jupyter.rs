//! The kernel that Jupyter starts.

use crate::error::KernelError;
use crate::repository::{Repository, Toolchain};
use crate::workshop::Workshop;

/// Serves Jupyter until it says to stop. The connection file is read off the command line, as the kernel library does.
///
/// # Errors
/// Something is missing on this machine, or the kernel did not start.
///
/// # Safety
/// No other thread may run: the environment is changed.
pub unsafe fn serve() -> Result<(), KernelError> {
    let repository = Repository::find()?;
    let toolchain = Toolchain::find(&repository)?;
    toolchain.need_sources(&repository)?;
    let workshop = Workshop::open(&repository, &toolchain, "kernel")?;
    // SAFETY: the caller says that this is the only thread.
    unsafe { workshop.enter() };
    evcxr_jupyter::main().map_err(|error| KernelError::Kernel(error.to_string()))
}
