//! Being asked to stop: Ctrl-C or SIGTERM let the step finish and the state be saved.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that is raised once and looked at between steps.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// A flag that Ctrl-C and SIGTERM raise. A process can have one; where it cannot be installed, the
    /// flag is simply never raised.
    pub fn from_signals() -> Self {
        let flag = Interrupt::default();
        let raised = flag.clone();
        let installed = ctrlc::set_handler(move || {
            if raised.is_raised() {
                std::process::exit(130); // asked twice: do not wait for the step
            }
            eprintln!("\nfinishing this step, then saving; press Ctrl-C again to stop at once");
            raised.raise();
        });
        if let Err(error) = installed {
            eprintln!("warning: Ctrl-C will stop at once, without saving: {error}");
        }
        flag
    }

    /// Asks the run to stop.
    pub fn raise(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether the run was asked to stop.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
