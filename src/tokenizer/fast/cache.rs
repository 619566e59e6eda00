//! The tokens of pieces seen before: text repeats its words.

use super::merge::Quick;
use std::collections::HashMap;

/// Longer pieces are not kept: they hardly come again.
const LONGEST: usize = 96;

/// Bytes of pieces that are kept, at most; then all are forgotten. With the table and the ids a full
/// cache takes some ten megabytes.
const ROOM: usize = 1 << 21;

/// A cache of bounded size.
#[derive(Debug, Default)]
pub(super) struct Cache {
    places: HashMap<Box<[u8]>, (u32, u32), Quick>,
    ids: Vec<u32>,
    bytes: usize,
}

impl Cache {
    /// The ids of a piece.
    pub(super) fn get(&self, piece: &[u8]) -> Option<&[u32]> {
        let (begin, end) = self.places.get(piece)?;
        Some(&self.ids[*begin as usize..*end as usize])
    }

    /// Keeps the ids of a piece.
    pub(super) fn put(&mut self, piece: &[u8], ids: &[u32]) {
        if piece.len() > LONGEST {
            return;
        }
        if self.bytes + piece.len() > ROOM {
            self.places.clear();
            self.ids.clear();
            self.bytes = 0;
        }
        let begin = self.ids.len() as u32;
        self.ids.extend_from_slice(ids);
        self.bytes += piece.len();
        self.places.insert(piece.into(), (begin, self.ids.len() as u32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_keeps_short_pieces_and_never_grows_past_its_room() {
        let mut cache = Cache::default();
        cache.put(b"ab", &[1, 2]);
        cache.put(&[0; LONGEST + 1], &[3]);
        assert_eq!((cache.get(b"ab"), cache.get(&[0; LONGEST + 1])), (Some(&[1, 2][..]), None));
        for i in 0..2 * ROOM as u32 / 64 {
            let mut piece = [7; 64];
            piece[..4].copy_from_slice(&i.to_le_bytes());
            cache.put(&piece, &[i]);
            assert_eq!(cache.get(&piece), Some(&[i][..]));
            assert!(cache.bytes <= ROOM && cache.ids.len() <= ROOM / 64 + 2);
        }
        assert_eq!(cache.get(b"ab"), None);
    }
}
