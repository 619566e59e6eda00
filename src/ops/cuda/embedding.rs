//! Launches of the embedding, and the order of its gradient's additions.

use super::{Element, Launch, Place, launch};

/// Most places that one block adds up.
pub const PIECE: usize = 16;
/// A piece that is the only one of its id; `ALONE` of `embedding.cu`.
const ALONE: u32 = u32::MAX;

/// Which places of a batch have which id, cut into pieces; what the backward kernels read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pieces {
    /// Places sorted by id, those of one id in order.
    pub order: Vec<u32>,
    /// Where each piece begins in `order`, and the end.
    pub starts: Vec<u32>,
    /// Id of each piece.
    pub rows: Vec<u32>,
    /// Partial row of each piece; `u32::MAX` where it is the only one of its id.
    pub slots: Vec<u32>,
    /// Where the partial rows of each id that has several pieces begin, and the end.
    pub split_starts: Vec<u32>,
    /// Those ids.
    pub split_rows: Vec<u32>,
}

impl Pieces {
    /// The pieces of a batch of ids.
    pub fn of(ids: &[u32]) -> Self {
        let mut pieces = Pieces { order: (0..ids.len() as u32).collect(), ..Self::default() };
        pieces.order.sort_by_key(|place| ids[*place as usize]);
        let (mut start, mut slot) = (0, 0);
        for group in pieces.order.chunk_by(|a, b| ids[*a as usize] == ids[*b as usize]) {
            let id = ids[group[0] as usize];
            let split = group.len() > PIECE;
            if split {
                pieces.split_starts.push(slot);
                pieces.split_rows.push(id);
            }
            for piece in group.chunks(PIECE) {
                pieces.starts.push(start);
                pieces.rows.push(id);
                pieces.slots.push(if split { slot } else { ALONE });
                slot += u32::from(split);
                start += piece.len() as u32;
            }
        }
        pieces.starts.push(start);
        pieces.split_starts.push(slot);
        pieces
    }

    /// Rows of room for partial sums.
    pub fn partial_rows(&self) -> usize {
        self.split_starts.last().map_or(0, |end| *end as usize)
    }
}

/// `out` `[ids, width]` from `table` `[vocabulary, width]`.
pub fn embedding_forward<T: Element>(ids: Place<u32>, table: Place<T>, out: Place<T>, width: usize) -> Launch {
    assert_eq!(out.length, ids.length * width, "length of an embedding");
    let launch =
        launch!("embedding", format!("embedding_forward_{}", T::NAME), ids.length, ids, table, out, width as u32);
    // Only the rows that are looked up are read.
    let (row, rows) = (width * size_of::<T>(), ids.length.min(table.length / width.max(1)));
    Launch { bytes: (4 * ids.length + row * (rows + ids.length)) as u64, ..launch }
}

/// Where the vectors of [`Pieces`] lie, in the order of its fields.
pub type PiecePlaces = [Place<u32>; 6];

/// Adds the rows of `dout` to `dtable`; launches to run in order. `partial` is room for
/// exactly [`Pieces::partial_rows`] rows.
pub fn embedding_backward<T: Element>(
    [order, starts, rows, slots, split_starts, split_rows]: PiecePlaces,
    dout: Place<T>,
    dtable: Place<f32>,
    partial: Place<f32>,
    width: usize,
) -> Vec<Launch> {
    assert_eq!(dout.length, order.length * width, "length of an embedding's gradient");
    let kernel = format!("embedding_backward_pieces_{}", T::NAME);
    let columns = width as u32;
    let pieces = rows.length;
    let first = launch!("embedding", kernel, pieces, order, starts, rows, slots, dout, dtable, partial, columns);
    // Of table and partial rows only those that have an id move: written once, and changed rows read before.
    let (lists, row) = (4 * (order.length + starts.length + rows.length + slots.length), 4 * width);
    let alone = pieces.saturating_sub(partial.length / width.max(1));
    let moved = lists + dout.length * size_of::<T>() + (pieces + alone) * row;
    let first = Launch { bytes: moved as u64, ..first };
    let kernel = "embedding_backward_rows".to_owned();
    let second = launch!("embedding", kernel, split_rows.length, partial, split_starts, split_rows, dtable, columns);
    let moved = 4 * (split_starts.length + split_rows.length) + 4 * partial.length + 2 * split_rows.length * row;
    let second = Launch { bytes: moved as u64, ..second };
    [first, second].into_iter().filter(|launch| launch.blocks > 0).collect()
}
