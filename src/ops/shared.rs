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

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn threads_fill_disjoint_parts_of_one_buffer() {
        const THREADS: usize = 3;
        let mut data = vec![0u64; 8 * THREADS];
        let shared = Shared::new(&mut data);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let shared = &shared;
                scope.spawn(move || {
                    for row in 0..4 {
                        let start = 2 * (row * THREADS + thread);
                        // SAFETY: no two threads and no two rows have the same pair.
                        let part = unsafe { shared.part(start, 2) };
                        part.copy_from_slice(&[start as u64, start as u64 + 1]);
                    }
                });
            }
        });
        assert_eq!(data, (0..8 * THREADS as u64).collect::<Vec<_>>());
    }

    #[test]
    fn a_place_is_written_without_a_slice() {
        let mut data = [1u16, 2, 3];
        let place = Shared::new(&mut data).place(2);
        // SAFETY: the last number of an array that nobody else has.
        unsafe { place.write(9) };
        assert_eq!(data, [1, 2, 9]);
    }

    #[test]
    fn nothing_outside_is_given_out() {
        let mut data = [0u8; 4];
        let shared = Shared::new(&mut data);
        let part = |start, length| {
            // SAFETY: one at a time.
            catch_unwind(AssertUnwindSafe(|| unsafe { shared.part(start, length) }.len())).ok()
        };
        assert_eq!([part(0, 4), part(1, 3), part(4, 0)], [Some(4), Some(3), Some(0)]);
        assert_eq!([part(0, 5), part(3, 2), part(5, 0), part(1, usize::MAX), part(usize::MAX, 1)], [None; 5]);
        assert!(catch_unwind(AssertUnwindSafe(|| shared.place(4))).is_err());
    }
}
