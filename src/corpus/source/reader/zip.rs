//! The one member of a small zip archive (APPNOTE.TXT 6.3.10, without zip64 and encryption).

use flate2::{Crc, bufread::DeflateDecoder};
use std::io::Read;

/// A member must not be larger than this when unpacked.
const LARGEST: u64 = 64 << 20;
/// Size of the record at the end of an archive, without its comment.
const END: usize = 22;

/// The name and the content of the member of an archive that has exactly one.
///
/// # Errors
/// A message for an archive that is damaged, has more members or needs what is not supported.
pub fn only_member(archive: &[u8]) -> Result<(String, Vec<u8>), String> {
    let cut = || "the zip archive is cut or damaged".to_owned();
    let end = archive.len().checked_sub(END).ok_or_else(cut)?;
    let end = (0..=end).rev().take(1 << 16).find(|&at| archive[at..].starts_with(b"PK\x05\x06")).ok_or_else(cut)?;
    let members = number(archive, end + 10, 2).ok_or_else(cut)?;
    if members != 1 {
        return Err(format!("the zip archive has {members} members, expected one"));
    }
    let directory = number(archive, end + 16, 4).ok_or_else(cut)?;
    let field = |offset: usize, bytes: usize| number(archive, directory.checked_add(offset)?, bytes);
    if field(0, 4) != Some(0x0201_4b50) {
        return Err(cut());
    }
    let (Some(flags), Some(method), Some(crc)) = (field(8, 2), field(10, 2), field(16, 4)) else { return Err(cut()) };
    let (Some(packed), Some(unpacked)) = (field(20, 4), field(24, 4)) else { return Err(cut()) };
    let (Some(name_length), Some(local)) = (field(28, 2), field(42, 4)) else { return Err(cut()) };
    if flags & 1 != 0 || unpacked as u64 > LARGEST {
        return Err(format!("the zip member is encrypted or larger than {LARGEST} bytes"));
    }
    let name = slice(archive, directory + 46, name_length).ok_or_else(cut)?;
    let packed = packed_bytes(archive, local, packed).ok_or_else(cut)?;
    let content = unpack(packed, method, unpacked)?;
    let mut check = Crc::new();
    check.update(&content);
    if content.len() != unpacked || check.sum() as usize != crc {
        return Err("the zip member does not have the size and checksum that the archive states".to_owned());
    }
    Ok((String::from_utf8_lossy(name).into_owned(), content))
}

/// The bytes after the local header, whose name and extra field may differ from the directory's.
fn packed_bytes(archive: &[u8], local: usize, length: usize) -> Option<&[u8]> {
    if number(archive, local, 4)? != 0x0403_4b50 {
        return None;
    }
    let variable = number(archive, local.checked_add(26)?, 2)? + number(archive, local.checked_add(28)?, 2)?;
    slice(archive, local.checked_add(30 + variable)?, length)
}

fn unpack(packed: &[u8], method: usize, unpacked: usize) -> Result<Vec<u8>, String> {
    match method {
        0 => Ok(packed.to_vec()),
        8 => {
            let mut content = Vec::new();
            // One byte more than stated is enough to see that the size is wrong.
            let limit = unpacked as u64 + 1;
            let read = DeflateDecoder::new(packed).take(limit).read_to_end(&mut content);
            read.map_err(|e| format!("the zip member cannot be unpacked: {e}"))?;
            Ok(content)
        }
        other => Err(format!("the zip member is packed with method {other}; deflate (8) and stored (0) are supported")),
    }
}

/// A little-endian number of up to four bytes.
fn number(archive: &[u8], at: usize, bytes: usize) -> Option<usize> {
    Some(slice(archive, at, bytes)?.iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte)))
}

fn slice(archive: &[u8], at: usize, length: usize) -> Option<&[u8]> {
    archive.get(at..at.checked_add(length)?)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use flate2::{Compression, bufread::DeflateEncoder};
    use proptest::prelude::*;

    /// An archive with one deflated member.
    pub fn archive(name: &str, content: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        DeflateEncoder::new(content, Compression::default()).read_to_end(&mut packed).unwrap();
        let mut crc = Crc::new();
        crc.update(content);
        let sizes = [crc.sum(), packed.len() as u32, content.len() as u32].map(u32::to_le_bytes).concat();
        let name_length = (name.len() as u16).to_le_bytes();
        let common = [b"\x14\0\0\0\x08\0\0\0\0\0".as_slice(), &sizes, &name_length, b"\0\0"].concat();
        let mut zip = [b"PK\x03\x04", common.as_slice(), name.as_bytes(), &packed].concat();
        let directory = zip.len() as u32;
        zip.extend([b"PK\x01\x02\x14\0", common.as_slice(), &[0; 14], name.as_bytes()].concat());
        let length = zip.len() as u32 - directory;
        zip.extend(
            [b"PK\x05\x06\0\0\0\0\x01\0\x01\0".as_slice(), &length.to_le_bytes(), &directory.to_le_bytes(), b"\0\0"]
                .concat(),
        );
        zip
    }

    #[test]
    fn the_member_comes_out_and_damage_is_seen() {
        let content = "ক্ষ এবং কিছু text ".repeat(50);
        let zip = archive("a.tmx", content.as_bytes());
        assert_eq!(only_member(&zip).unwrap(), ("a.tmx".to_owned(), content.into_bytes()));
        for length in 0..zip.len() {
            assert!(only_member(&zip[..length]).is_err(), "{length}");
        }
        assert!(only_member(b"").is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn no_changed_byte_makes_it_panic(at in 0usize..200, byte: u8) {
            let mut zip = archive("a", b"some content, some content");
            let at = at % zip.len();
            zip[at] = byte;
            if let Ok((_, content)) = only_member(&zip) {
                prop_assert_eq!(content, b"some content, some content");
            }
        }
    }
}
