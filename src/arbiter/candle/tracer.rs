//! Which Candle ops without a backward pass a forward pass ran, and from where.
//!
//! Candle forgets them: a tensor made by `apply_op*_no_bwd` has no parents, and the graph cannot be
//! read from outside. But every op allocates its output. With [`Tracer`] as the global allocator of a
//! test, the arbiter repeats the forward pass of a model that failed and looks at the stack of each
//! allocation; the stacks hold the op's kernel and the caller's function.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The system's allocator, which also lets the arbiter name the op that cut a graph:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: shikha::arbiter::candle::Tracer = shikha::arbiter::candle::Tracer;
/// ```
///
/// Outside such a diagnosis it costs one load of a flag an allocation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tracer;

/// Threads that trace; keeps the usual allocation at one load.
static THREADS: AtomicUsize = AtomicUsize::new(0);
/// Whether the allocator in use is a [`Tracer`].
static INSTALLED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static TRACING: Cell<bool> = const { Cell::new(false) };
    static STACKS: RefCell<Vec<Backtrace>> = const { RefCell::new(Vec::new()) };
}

/// Stacks kept of one forward pass: a probe is small, and unwinding takes microseconds.
const KEPT: usize = 20_000;

// SAFETY: every call goes to `System` unchanged; `look` neither frees nor keeps the memory.
unsafe impl GlobalAlloc for Tracer {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        look();
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        look();
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's contract is the same.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[inline]
fn look() {
    if THREADS.load(Ordering::Relaxed) > 0 {
        keep_stack();
    }
}

#[cold]
fn keep_stack() {
    // `take` also keeps the capture's own allocations out.
    if TRACING.try_with(|tracing| tracing.take()) != Ok(true) {
        return;
    }
    let _ = STACKS.try_with(|stacks| {
        if let Ok(mut stacks) = stacks.try_borrow_mut()
            && stacks.len() < KEPT
        {
            stacks.push(Backtrace::force_capture());
        }
    });
    let _ = TRACING.try_with(|tracing| tracing.set(true));
}

/// This thread traces as long as one of these lives, a panic in the model included.
struct Tracing;

impl Tracing {
    fn begin() -> Self {
        THREADS.fetch_add(1, Ordering::Relaxed);
        TRACING.set(true);
        Tracing
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        TRACING.set(false);
        THREADS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs `work` on this thread and gives the function names of each allocation's stack, innermost first;
/// `None` when the program's allocator is not a [`Tracer`].
pub(super) fn trace<R>(work: impl FnOnce() -> R) -> Option<(R, Vec<Vec<String>>)> {
    STACKS.with(|stacks| stacks.borrow_mut().clear());
    let tracing = Tracing::begin();
    drop(std::hint::black_box(Box::new(0u8))); // shows whether the tracer is there
    INSTALLED.fetch_or(STACKS.with(|stacks| !stacks.borrow().is_empty()), Ordering::Relaxed);
    let result = INSTALLED.load(Ordering::Relaxed).then(work);
    drop(tracing);
    let stacks = STACKS.take();
    Some((result?, stacks.iter().skip(1).map(functions).collect()))
}

/// The function names of a stack as it is printed: lines `   3: path::of::function`.
fn functions(stack: &Backtrace) -> Vec<String> {
    let text = stack.to_string();
    let name = |line: &str| {
        let (number, name) = line.trim_start().split_once(": ")?;
        number.bytes().all(|b| b.is_ascii_digit()).then(|| name.to_owned())
    };
    text.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_the_systems_and_each_allocation_leaves_its_stack() {
        STACKS.with(|stacks| stacks.borrow_mut().clear());
        let (small, large) = (Layout::from_size_align(24, 32).unwrap(), Layout::from_size_align(4096, 32).unwrap());
        let tracing = Tracing::begin();
        // SAFETY: the layouts are of some bytes; each pointer is written to inside its layout and freed once.
        let (kept, zeros) = unsafe {
            let pointer = Tracer.alloc(small);
            assert!(!pointer.is_null() && pointer.addr() % 32 == 0);
            (0..24).for_each(|i| pointer.add(i).write(i as u8));
            let pointer = Tracer.realloc(pointer, small, large.size());
            pointer.add(4095).write(1);
            let kept = std::slice::from_raw_parts(pointer, 24).to_vec();
            Tracer.dealloc(pointer, large);
            let pointer = Tracer.alloc_zeroed(large);
            let zeros = std::slice::from_raw_parts(pointer, 4096).iter().all(|byte| *byte == 0);
            Tracer.dealloc(pointer, large);
            (kept, zeros)
        };
        drop(tracing);
        assert!(kept.iter().copied().eq(0..24) && zeros);
        assert_eq!(STACKS.take().len(), 2, "one of `alloc`, one of `alloc_zeroed`");
    }

    #[test]
    fn without_the_tracer_nothing_is_run() {
        assert!(trace(|| unreachable!("the allocator of this test is the system's")).is_none());
    }
}
