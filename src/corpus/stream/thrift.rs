//! What a Parquet file says of itself, its footer and the headers of its pages, walked over before it is read.
//!
//! It is written in Thrift's compact protocol
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>). `parquet` 60.1.0 steps over a
//! field that it does not know one element at a time, and takes no byte for a boolean in a list: six damaged bytes keep
//! it busy for 2³¹ of them. No footer and no header lists booleans, and every other element takes a byte of the file.

use parquet::errors::{ParquetError, Result};
use std::io::Read;

/// How deep structs and lists may lie in each other; that library's own limit.
const DEPTH: u8 = 64;

/// Walks over one struct.
///
/// # Errors
/// When it lists booleans, lies deeper than [`DEPTH`], goes on beyond the end or is no such struct.
pub fn walk(from: &mut impl Read) -> Result<()> {
    field(from, 12, DEPTH)
}

fn damaged(how: &str) -> ParquetError {
    ParquetError::General(format!("what it says of its rows and pages is damaged: {how}"))
}

/// Walks over a value of the type of that number.
fn field(from: &mut impl Read, kind: u8, depth: u8) -> Result<()> {
    let Some(depth) = depth.checked_sub(1) else { return Err(damaged("it lies too deep")) };
    match kind {
        // A boolean stands in the byte that names its field.
        1 | 2 => Ok(()),
        3 => skip(from, 1),
        4..=6 => number(from).map(drop),
        7 => skip(from, 8),
        8 => {
            let length = number(from)?;
            skip(from, length)
        }
        9 | 10 => list(from, depth),
        11 => map(from, depth),
        12 => fields(from, depth),
        13 => skip(from, 16),
        _ => Err(damaged(&format!("there is no type {kind}"))),
    }
}

fn fields(from: &mut impl Read, depth: u8) -> Result<()> {
    loop {
        let head = byte(from)?;
        if head & 0xf == 0 {
            return Ok(());
        }
        // The number of the field, where it is not told as the distance from the one before.
        if head >> 4 == 0 {
            number(from)?;
        }
        field(from, head & 0xf, depth)?;
    }
}

fn list(from: &mut impl Read, depth: u8) -> Result<()> {
    let head = byte(from)?;
    let count = if head >> 4 == 15 { number(from)? } else { u64::from(head >> 4) };
    elements(from, &[head & 0xf], count, depth)
}

fn map(from: &mut impl Read, depth: u8) -> Result<()> {
    let count = number(from)?;
    if count == 0 {
        return Ok(());
    }
    let kinds = byte(from)?;
    elements(from, &[kinds >> 4, kinds & 0xf], count, depth)
}

fn elements(from: &mut impl Read, kinds: &[u8], count: u64, depth: u8) -> Result<()> {
    if count > 0 && kinds.iter().any(|kind| matches!(kind, 1 | 2)) {
        return Err(damaged("it lists booleans, as no Parquet file does"));
    }
    for _ in 0..count {
        for kind in kinds {
            field(from, *kind, depth)?;
        }
    }
    Ok(())
}

fn byte(from: &mut impl Read) -> Result<u8> {
    let mut byte = [0];
    from.read_exact(&mut byte)?;
    Ok(byte[0])
}

/// Seven bits a byte, the lowest first.
fn number(from: &mut impl Read) -> Result<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = byte(from)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(damaged("a number has more than 64 bits"))
}

fn skip(from: &mut impl Read, length: u64) -> Result<()> {
    match std::io::copy(&mut from.take(length), &mut std::io::sink())? == length {
        true => Ok(()),
        false => Err(damaged("it ends too early")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left after the struct, or what is wrong.
    fn walked(mut bytes: &[u8]) -> std::result::Result<usize, String> {
        walk(&mut bytes).map(|()| bytes.len()).map_err(|error| error.to_string())
    }

    #[test]
    fn every_type_takes_its_bytes() {
        let whole: &[u8] = &[
            0x11, 0x12, 0x13, 7, 0x14, 0x81, 1, 0x15, 2, 0x16, 3, // booleans, a byte, three integers
            0x17, 0, 1, 2, 3, 4, 5, 6, 7, 0x18, 3, 0xff, 0xff, 0xff, // a double, three bytes of text
            0x19, 0x25, 1, 2, 0x1a, 0xf3, 2, 9, 9, 0x19, 0, // a list, a set with a longer head, an empty list
            0x1b, 0, 0x1b, 1, 0x58, 4, 1, 0xff, 0x1c, 0x11, 0, // two maps, a struct
            0x1d, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0x05, 0xc8, 1,
            9, // a UUID, a number told in full
            0, 42, // the end, and what comes after it
        ];
        assert_eq!(walked(whole), Ok(1));
        for end in 0..whole.len() - 1 {
            assert!(walked(&whole[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn what_would_not_end_is_refused() {
        let told = |bytes: &[u8]| walked(bytes).unwrap_err();
        for booleans in
            [&[0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 7][..], &[0x1a, 0x12], &[0x1b, 1, 0x52], &[0x1b, 1, 0x25]]
        {
            assert!(told(booleans).contains("lists booleans"), "{}", told(booleans));
        }
        // An empty list of them says nothing.
        assert_eq!(walked(&[0x19, 0x01, 0]), Ok(0));
        assert!(told(&[0x1c; 100]).contains("too deep"));
        assert!(told(&[0x1e]).contains("no type 14"));
        assert!(told(&[&[0x16][..], &[0xff; 10]].concat()).contains("64 bits"));
        assert!(told(&[0x18, 0xff, 0xff, 0xff, 0xff, 7, 0]).contains("ends too early"));
    }
}
