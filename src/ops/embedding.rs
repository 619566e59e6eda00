//! Embedding lookup: row i of the output is row `ids[i]` of the table.
//!
//! Its gradient adds row i of dout to row `ids[i]`: ids repeat, so the additions happen in the order
//! of i for every table row, whatever the number of threads.

use super::Real;
use rayon::prelude::*;

/// `out` `[ids, width]` from `table` `[vocabulary, width]`.
///
/// # Panics
/// When an id lies outside the table or the lengths do not fit.
pub fn forward<T: Real>(ids: &[u32], table: &[T], out: &mut [T], width: usize) {
    assert_eq!(out.len(), ids.len() * width, "length of an embedding");
    for (row, id) in out.chunks_exact_mut(width).zip(ids) {
        row.copy_from_slice(&table[*id as usize * width..][..width]);
    }
}

/// The places, in order, where one id occurs: pairs of the id and the place.
type Occurrences<'a> = &'a [(u32, u32)];

/// Adds the gradients of the rows to `dtable` `[vocabulary, width]`.
///
/// # Panics
/// As [`forward`].
pub fn backward<T: Real>(ids: &[u32], dout: &[T], dtable: &mut [T], width: usize) {
    assert_eq!(dout.len(), ids.len() * width, "length of an embedding's gradient");
    // Rows that occur, each with where it occurs, so that threads own whole rows.
    let mut order: Vec<(u32, u32)> = ids.iter().enumerate().map(|(i, id)| (*id, i as u32)).collect();
    order.sort_unstable();
    let mut groups: Vec<&[(u32, u32)]> = order.chunk_by(|a, b| a.0 == b.0).collect();
    let mut rows: Vec<(&mut [T], Occurrences)> = Vec::with_capacity(groups.len());
    let mut rest = dtable;
    let mut taken = 0;
    for group in groups.drain(..) {
        let row = group[0].0 as usize;
        let (before, after) = std::mem::take(&mut rest).split_at_mut((row + 1 - taken) * width);
        let start = before.len() - width;
        rows.push((&mut before[start..], group));
        (rest, taken) = (after, row + 1);
    }
    rows.into_par_iter().with_min_len(32).for_each(|(row, group)| {
        for (_, i) in group {
            let source = &dout[*i as usize * width..][..width];
            row.iter_mut().zip(source).for_each(|(sum, term)| *sum += *term);
        }
    });
}
