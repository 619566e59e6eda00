//! Being asked to stop: Ctrl-C or SIGTERM let the step finish and the state be saved.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Whether there is a step to finish: outside of training a signal stops the process at once.
static TRAINING: AtomicBool = AtomicBool::new(false);

/// A flag that is raised once and looked at between steps.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// The flag of this process, which Ctrl-C and SIGTERM raise until [`Interrupt::disarm`]; a second
    /// signal does not wait for the step. Where no handler can be installed a signal stops at once.
    pub fn from_signals() -> Self {
        static FLAG: OnceLock<Interrupt> = OnceLock::new();
        TRAINING.store(true, Ordering::SeqCst);
        FLAG.get_or_init(|| {
            let flag = Interrupt::default();
            let raised = flag.clone();
            let installed = ctrlc::set_handler(move || {
                if raised.is_raised() || !TRAINING.load(Ordering::SeqCst) {
                    std::process::exit(130);
                }
                eprintln!("\nfinishing this step, then saving; press Ctrl-C again to stop at once");
                raised.raise();
            });
            if let Err(error) = installed {
                eprintln!("warning: Ctrl-C will stop at once, without saving: {error}");
            }
            flag
        })
        .clone()
    }

    /// Training is over: the next signal stops the process at once.
    pub fn disarm(&self) {
        TRAINING.store(false, Ordering::SeqCst);
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
