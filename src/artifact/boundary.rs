//! The places at which a run can die: before each effect that it has on the disk.
//!
//! Whatever writes or reads an artifact crosses a boundary before it opens, writes, syncs, renames or
//! removes, and before a file is read, to be hashed or to be loaded.
//! Nothing happens there unless a test of this thread asked for it with [`at`]: then the effect of
//! that number fails, or the process dies as under SIGKILL, after half of the bytes if it is a write.
//! Two things can so be shown for every boundary of a run, not for a sample: that a run continued
//! after it gives the same bits, and that a full disk is an error and loses nothing.

use std::cell::Cell;
use std::io::{Error, ErrorKind, Result, Write};

/// What happens at a boundary that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process dies at once: no destructor runs, nothing is flushed.
    Abort,
    /// The operation fails as on a full disk.
    Full,
    /// The operation fails as in a directory that may only be read.
    Denied,
    /// The operation fails as on a bad disk.
    Broken,
}

/// The state of a thread: boundaries crossed so far, and the chosen one.
#[derive(Clone, Copy)]
struct Plan {
    crossed: u64,
    chosen: Option<(u64, Fault)>,
}

thread_local! {
    static PLAN: Cell<Plan> = const { Cell::new(Plan { crossed: 0, chosen: None }) };
}

/// Counts boundaries of this thread from zero again, and lets `fault` happen once at the one of that
/// number, from 1; `None` only counts. For tests.
pub fn at(chosen: Option<(u64, Fault)>) {
    PLAN.set(Plan { crossed: 0, chosen });
}

/// Boundaries this thread crossed since [`at`].
pub fn crossed() -> u64 {
    PLAN.get().crossed
}

/// One boundary; `before_death` is what still reaches the disk when it kills.
fn cross(before_death: impl FnOnce()) -> Result<()> {
    let mut plan = PLAN.get();
    plan.crossed += 1;
    let fault = plan.chosen.filter(|(number, _)| *number == plan.crossed).map(|(_, fault)| fault);
    PLAN.set(plan);
    match fault {
        None => Ok(()),
        Some(Fault::Full) => Err(ErrorKind::StorageFull.into()),
        Some(Fault::Denied) => Err(ErrorKind::PermissionDenied.into()),
        Some(Fault::Broken) => Err(Error::other("the disk does not answer")),
        Some(Fault::Abort) => {
            before_death();
            std::process::abort()
        }
    }
}

/// Does `operation`, which opens, reads, syncs, renames or removes, behind a boundary.
///
/// # Errors
/// Those of the operation, or of the fault a test chose.
pub fn guard<T>(operation: impl FnOnce() -> Result<T>) -> Result<T> {
    cross(|| ())?;
    operation()
}

/// A writer with a boundary before each write.
pub struct Guarded<W>(pub W);

impl<W: Write> Write for Guarded<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let inner = &mut self.0;
        cross(|| drop(inner.write_all(&bytes[..bytes.len() / 2])))?;
        inner.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_boundary_fails_once() {
        at(Some((2, Fault::Full)));
        let mut out = Guarded(Vec::new());
        out.write_all(b"ab").unwrap();
        assert_eq!(out.write_all(b"cd").unwrap_err().kind(), ErrorKind::StorageFull);
        out.write_all(b"ef").unwrap();
        assert_eq!((out.0.as_slice(), crossed()), (b"abef".as_slice(), 3));
        at(None);
        assert_eq!((guard(|| Ok(7)).unwrap(), crossed()), (7, 1));
    }
}
