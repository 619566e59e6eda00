//! A buffer that threads fill side by side where no split into slices says who has what, as with the
//! heads of one row or the tiles of one matrix.

use std::marker::PhantomData;

/// A mutable slice that hands out parts of itself to several threads.
pub(super) struct Shared<'a, T> {
    data: *mut T,
    length: usize,
    lives: PhantomData<&'a mut [T]>,
}

// SAFETY: who takes a part promises that nobody else has it.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    pub(super) fn new(data: &'a mut [T]) -> Self {
        Shared { data: data.as_mut_ptr(), length: data.len(), lives: PhantomData }
    }

    /// `length` numbers from `start` on.
    ///
    /// # Safety
    /// Nobody else may have any of them at the same time.
    ///
    /// # Panics
    /// When they do not lie inside.
    #[allow(clippy::mut_from_ref, reason = "the parts are disjoint")]
    pub(super) unsafe fn part(&self, start: usize, length: usize) -> &mut [T] {
        assert!(start <= self.length && length <= self.length - start, "a part lies inside its buffer");
        // SAFETY: inside the buffer, and the caller's alone.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(start), length) }
    }

    /// Where the numbers from `start` on lie.
    ///
    /// # Panics
    /// When there are none.
    pub(super) fn place(&self, start: usize) -> *mut T {
        assert!(start < self.length, "a place lies inside its buffer");
        // SAFETY: inside the buffer.
        unsafe { self.data.add(start) }
    }
}
