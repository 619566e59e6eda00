//! What a Parquet file says of itself, its footer and the headers of its pages, walked over before it is read.
//!
//! It is written in Thrift's compact protocol
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>). `parquet` 60.1.0 steps over a
//! field that it does not know one element at a time, and takes no byte for a boolean in a list: six damaged bytes keep
//! it busy for 2³¹ of them. No footer and no header lists booleans, and every other element takes a byte of the file.
//! A field that it knows it reads without a look at the type that is written with it. The walk refuses another type
//! than the field's, so that both see the same fields.

use Shape::{Any, Binary, Bool, Byte, Double, List, Number, Struct};
use parquet::errors::{ParquetError, Result};
use std::io::Read;

/// How deep structs and lists may lie in each other; that library's own limit.
const DEPTH: u8 = 64;

/// How a value is written.
pub enum Shape {
    /// One that the library steps over.
    Any,
    Bool,
    Byte,
    /// An integer of two bytes or more, or one of an enumeration.
    Number,
    Double,
    /// Bytes or text.
    Binary,
    List(&'static Shape),
    /// Its fields by their numbers, from 1; those with greater numbers are [`Shape::Any`].
    Struct(&'static [Shape]),
}

// From <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>, of whose structs these bear
// the names. All that the library reads must be here; what it steps over may be `Any`.

/// `FileMetaData`.
pub const FOOTER: Shape =
    Struct(&[Number, List(&SCHEMA_ELEMENT), Number, List(&ROW_GROUP), List(&KEY_VALUE), Binary, List(&COLUMN_ORDER)]);
/// `PageHeader`.
pub const PAGE_HEADER: Shape =
    Struct(&[Number, Number, Number, Number, DATA_PAGE_HEADER, EMPTY, DICTIONARY_PAGE_HEADER, DATA_PAGE_HEADER_V2]);

const EMPTY: Shape = Struct(&[]);
const KEY_VALUE: Shape = Struct(&[Binary, Binary]);
const COLUMN_ORDER: Shape = Struct(&[EMPTY, EMPTY, EMPTY]);
const SCHEMA_ELEMENT: Shape =
    Struct(&[Number, Number, Number, Binary, Number, Number, Number, Number, Number, LOGICAL_TYPE]);
const LOGICAL_TYPE: Shape = Struct(&[
    EMPTY, EMPTY, EMPTY, EMPTY, DECIMAL, EMPTY, TIME, TIME, Any, INTEGER, EMPTY, EMPTY, EMPTY, EMPTY, EMPTY, VARIANT,
    GEOMETRY, GEOGRAPHY, EMPTY,
]);
const DECIMAL: Shape = Struct(&[Number, Number]);
const TIME: Shape = Struct(&[Bool, TIME_UNIT]);
const TIME_UNIT: Shape = Struct(&[EMPTY, EMPTY, EMPTY]);
const INTEGER: Shape = Struct(&[Byte, Bool]);
const VARIANT: Shape = Struct(&[Byte]);
const GEOMETRY: Shape = Struct(&[Binary]);
const GEOGRAPHY: Shape = Struct(&[Binary, Number]);
const ROW_GROUP: Shape = Struct(&[List(&COLUMN_CHUNK), Number, Number, List(&SORTING_COLUMN), Number, Number, Number]);
const SORTING_COLUMN: Shape = Struct(&[Number, Bool, Bool]);
const COLUMN_CHUNK: Shape = Struct(&[Binary, Number, COLUMN_META_DATA, Number, Number, Number, Number]);
const COLUMN_META_DATA: Shape = Struct(&[
    Number,
    List(&Number),
    List(&Binary),
    Number,
    Number,
    Number,
    Number,
    List(&KEY_VALUE),
    Number,
    Number,
    Number,
    STATISTICS,
    List(&PAGE_ENCODING_STATS),
    Number,
    Number,
    SIZE_STATISTICS,
    GEOSPATIAL_STATISTICS,
]);
const STATISTICS: Shape = Struct(&[Binary, Binary, Number, Number, Binary, Binary, Bool, Bool, Number]);
const PAGE_ENCODING_STATS: Shape = Struct(&[Number, Number, Number]);
const SIZE_STATISTICS: Shape = Struct(&[Number, List(&Number), List(&Number)]);
const GEOSPATIAL_STATISTICS: Shape = Struct(&[BOUNDING_BOX, List(&Number)]);
const BOUNDING_BOX: Shape = Struct(&[Double, Double, Double, Double, Double, Double, Double, Double]);
const DATA_PAGE_HEADER: Shape = Struct(&[Number, Number, Number, Number, STATISTICS]);
const DICTIONARY_PAGE_HEADER: Shape = Struct(&[Number, Number, Bool]);
const DATA_PAGE_HEADER_V2: Shape = Struct(&[Number, Number, Number, Number, Number, Number, Bool, STATISTICS]);

/// Walks over one struct.
///
/// # Errors
/// When a field has another type than its own, when it lists booleans, lies deeper than [`DEPTH`], goes on beyond the
/// end or is no such struct.
pub fn walk(from: &mut impl Read, shape: &Shape) -> Result<()> {
    value(from, 12, shape, DEPTH)
}

fn damaged(how: &str) -> ParquetError {
    ParquetError::General(format!("what it says of its rows and pages is damaged: {how}"))
}

/// Walks over a value that is said to be of the type of that number.
fn value(from: &mut impl Read, kind: u8, shape: &Shape, depth: u8) -> Result<()> {
    let Some(depth) = depth.checked_sub(1) else { return Err(damaged("it lies too deep")) };
    match (kind, shape) {
        // A boolean stands in the byte that names its field.
        (1 | 2, Bool | Any) => Ok(()),
        (3, Byte | Any) => skip(from, 1),
        (4..=6, Number | Any) => number(from).map(drop),
        (7, Double | Any) => skip(from, 8),
        (8, Binary | Any) => {
            let length = number(from)?;
            skip(from, length)
        }
        (9, List(of)) => list(from, of, depth),
        (9 | 10, Any) => list(from, &Any, depth),
        (11, Any) => map(from, depth),
        (12, Struct(known)) => fields(from, known, depth),
        (12, Any) => fields(from, &[], depth),
        (13, Any) => skip(from, 16),
        _ => Err(damaged(&format!("a value of type {kind} stands where none can"))),
    }
}

fn fields(from: &mut impl Read, known: &[Shape], depth: u8) -> Result<()> {
    let mut id = 0_i16;
    loop {
        let head = byte(from)?;
        if head & 0xf == 0 {
            return Ok(());
        }
        // The number of the field: its distance from the one before or, with the sign in the lowest bit, in full.
        id = match head >> 4 {
            0 => number(from).map(|n| (n >> 1) as i16 ^ -((n & 1) as i16))?,
            delta => id.checked_add(i16::from(delta)).ok_or_else(|| damaged("a field has too large a number"))?,
        };
        let place = usize::try_from(id).ok().and_then(|id| id.checked_sub(1));
        value(from, head & 0xf, place.and_then(|place| known.get(place)).unwrap_or(&Any), depth)?;
    }
}

fn list(from: &mut impl Read, of: &Shape, depth: u8) -> Result<()> {
    let head = byte(from)?;
    let count = if head >> 4 == 15 { number(from)? } else { u64::from(head >> 4) };
    elements(from, &[head & 0xf], of, count, depth)
}

fn map(from: &mut impl Read, depth: u8) -> Result<()> {
    let count = number(from)?;
    if count == 0 {
        return Ok(());
    }
    let kinds = byte(from)?;
    elements(from, &[kinds >> 4, kinds & 0xf], &Any, count, depth)
}

fn elements(from: &mut impl Read, kinds: &[u8], of: &Shape, count: u64, depth: u8) -> Result<()> {
    if count > 0 && kinds.iter().any(|kind| matches!(kind, 1 | 2)) {
        return Err(damaged("it lists booleans, as no Parquet file does"));
    }
    for _ in 0..count {
        for kind in kinds {
            value(from, *kind, of, depth)?;
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
        walk(&mut bytes, &Any).map(|()| bytes.len()).map_err(|error| error.to_string())
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
        assert!(told(&[0x1e]).contains("type 14 stands where none can"));
        assert!(told(&[&[0x16][..], &[0xff; 10]].concat()).contains("64 bits"));
        assert!(told(&[0x18, 0xff, 0xff, 0xff, 0xff, 7, 0]).contains("ends too early"));
    }

    #[test]
    fn a_field_that_the_library_knows_has_its_own_type() {
        let walked = |shape: &Shape, mut bytes: &[u8]| walk(&mut bytes, shape).map_err(|error| error.to_string());
        // The version, the schema of one element with a name, and a field of a later format.
        assert_eq!(walked(&FOOTER, &[0x15, 2, 0x19, 0x1c, 0x48, 1, b'm', 0, 0xf8, 1, 9, 0]), Ok(()));
        // By number in full: the version, again, as booleans that the library would take for its fields.
        for wrong in [&[0x18, 1, 9, 0][..], &[0x05, 2, 2, 0x08, 2, 1, 9, 0], &[0x15, 2, 0x19, 0x18, 1, b'm', 0]] {
            assert!(walked(&FOOTER, wrong).unwrap_err().contains("type 8 stands where none can"));
        }
        // Field 12 of the column, its statistics, as a number.
        let column = Struct(&[COLUMN_META_DATA]);
        assert!(walked(&column, &[0x1c, 0xc5, 2, 0, 0]).unwrap_err().contains("type 5 stands where none can"));
    }
}
