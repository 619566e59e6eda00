//! The time limit of a cell.

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a stopped process may take to say where it was.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How long evcxr may take after its process has ended: perhaps Cargo is still at work for it.
const GRACE: Duration = Duration::from_secs(120);

/// That the limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOut;

/// A thread that ends the process of a cell which does not end by itself.
pub struct Watch {
    done: Sender<()>,
    thread: JoinHandle<Option<TimedOut>>,
}

impl Watch {
    /// Starts the clock. `stuck` is called when even an ended process does not end the cell.
    pub fn start(process: Arc<Mutex<Child>>, limit: Duration, stuck: impl FnOnce() + Send + 'static) -> Self {
        let (done, ended) = bounded::<()>(1);
        let thread = std::thread::spawn(move || {
            let over = |wait| ended.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
            if over(limit) {
                return None;
            }
            interrupt(&process);
            if over(LAST_WORDS) {
                return Some(TimedOut);
            }
            // It may have ended by itself; then there is nothing to kill.
            let _ = process.lock().unwrap_or_else(PoisonError::into_inner).kill();
            if !over(GRACE) {
                stuck();
            }
            Some(TimedOut)
        });
        Self { done, thread }
    }

    /// Stops the clock; says whether the limit was reached before.
    pub fn stop(self) -> Option<TimedOut> {
        drop(self.done);
        self.thread.join().ok().flatten()
    }
}

/// Ends the process so that it says where it was: evcxr prints a backtrace on this signal, which names the cell's line.
#[cfg(unix)]
fn interrupt(process: &Arc<Mutex<Child>>) {
    let Ok(process) = process.try_lock() else { return };
    if let Ok(id) = i32::try_from(process.id()) {
        // SAFETY: a signal to a child that has not been waited for; its number is still its own.
        unsafe { libc::kill(id, libc::SIGSEGV) };
    }
}

#[cfg(not(unix))]
fn interrupt(_: &Arc<Mutex<Child>>) {}

#[cfg(all(test, unix))]
mod tests {
    use super::{TimedOut, Watch};
    use std::process::Command;
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    #[test]
    fn a_process_that_does_not_end_is_ended() {
        let process = Arc::new(Mutex::new(Command::new("sleep").arg("60").spawn().unwrap()));
        let start = Instant::now();
        let watch = Watch::start(Arc::clone(&process), Duration::from_millis(50), || ());
        while process.lock().unwrap().try_wait().unwrap().is_none() && start.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(watch.stop(), Some(TimedOut));
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn one_that_ends_in_time_is_left_alone() {
        let process = Arc::new(Mutex::new(Command::new("true").spawn().unwrap()));
        let watch = Watch::start(Arc::clone(&process), Duration::from_secs(60), || panic!("not stuck"));
        assert_eq!(watch.stop(), None);
        assert!(process.lock().unwrap().wait().unwrap().success());
    }
}
