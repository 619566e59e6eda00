//! The part of the protocol-buffer encoding that a SentencePiece model uses, and that model's fields
//! (`sentencepiece_model.proto`).

/// A field of a message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Float(f32),
    Other,
}

const CUT_OFF: &str = "it is cut off in the middle of a field";

/// Splits a message into its fields: number and value.
fn fields(mut bytes: &[u8]) -> Result<Vec<(u64, Field<'_>)>, String> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let value = match key & 7 {
            0 => Field::Number(varint(&mut bytes)?),
            1 => take(&mut bytes, 8).map(|_| Field::Other)?,
            2 => {
                let length = varint(&mut bytes)?;
                Field::Bytes(take(&mut bytes, usize::try_from(length).map_err(|_| CUT_OFF)?)?)
            }
            5 => {
                let mut little = [0; 4];
                little.copy_from_slice(take(&mut bytes, 4)?);
                Field::Float(f32::from_le_bytes(little))
            }
            other => return Err(format!("it is not a SentencePiece model (a field has the wire type {other})")),
        };
        fields.push((key >> 3, value));
    }
    Ok(fields)
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], String> {
    let (head, tail) = bytes.split_at_checked(length).ok_or(CUT_OFF)?;
    *bytes = tail;
    Ok(head)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("a number in it has more than 64 bits".to_owned())
}

/// What a piece is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceType {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

/// A piece of the vocabulary.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece {
    pub text: String,
    pub score: f32,
    pub kind: PieceType,
}

/// A SentencePiece model, as far as encoding needs it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Model {
    pub pieces: Vec<Piece>,
    /// 1 unigram, 2 BPE, 3 word, 4 character.
    pub model_type: u64,
    pub byte_fallback: bool,
    pub whitespace_as_suffix: bool,
    /// The compiled table of character replacements; empty for none.
    pub charsmap: Vec<u8>,
    pub add_dummy_prefix: bool,
    pub remove_extra_whitespaces: bool,
    pub escape_whitespaces: bool,
}

/// Reads the `ModelProto`.
pub(super) fn read(bytes: &[u8]) -> Result<Model, String> {
    let mut model = Model {
        pieces: Vec::new(),
        model_type: 1,
        byte_fallback: false,
        whitespace_as_suffix: false,
        charsmap: Vec::new(),
        add_dummy_prefix: true,
        remove_extra_whitespaces: true,
        escape_whitespaces: true,
    };
    let mut trained = false;
    for field in fields(bytes)? {
        match field {
            (1, Field::Bytes(piece)) => {
                let number = model.pieces.len();
                model.pieces.push(read_piece(piece).map_err(|e| format!("piece {number}: {e}"))?);
            }
            (2, Field::Bytes(trainer)) => {
                trained = true;
                read_trainer(trainer, &mut model)?;
            }
            (3, Field::Bytes(normalizer)) => read_normalizer(normalizer, &mut model)?,
            _ => {}
        }
    }
    match (model.pieces.is_empty(), trained) {
        (true, _) => Err("it has no pieces: it is cut off, or no SentencePiece model".to_owned()),
        (_, false) => Err("it does not say how it was trained (no trainer_spec): it is cut off".to_owned()),
        _ => Ok(model),
    }
}

fn read_piece(bytes: &[u8]) -> Result<Piece, String> {
    let mut piece = Piece { text: String::new(), score: 0.0, kind: PieceType::Normal };
    for field in fields(bytes)? {
        match field {
            (1, Field::Bytes(text)) => {
                piece.text = std::str::from_utf8(text).map_err(|_| "its text is not UTF-8")?.to_owned();
            }
            (2, Field::Float(score)) => piece.score = score,
            (3, Field::Number(kind)) => {
                piece.kind = match kind {
                    1 => PieceType::Normal,
                    2 => PieceType::Unknown,
                    3 => PieceType::Control,
                    4 => PieceType::UserDefined,
                    5 => PieceType::Unused,
                    6 => PieceType::Byte,
                    other => return Err(format!("its type is {other}, expected 1 to 6")),
                };
            }
            _ => {}
        }
    }
    match (piece.text.is_empty(), piece.score.is_finite()) {
        (true, _) => Err("it has no text".to_owned()),
        (_, false) => Err(format!("its score is {}", piece.score)),
        _ => Ok(piece),
    }
}

fn read_trainer(bytes: &[u8], model: &mut Model) -> Result<(), String> {
    for field in fields(bytes)? {
        match field {
            (3, Field::Number(kind)) => model.model_type = kind,
            (24, Field::Number(flag)) => model.whitespace_as_suffix = flag != 0,
            (35, Field::Number(flag)) => model.byte_fallback = flag != 0,
            _ => {}
        }
    }
    Ok(())
}

fn read_normalizer(bytes: &[u8], model: &mut Model) -> Result<(), String> {
    for field in fields(bytes)? {
        match field {
            (2, Field::Bytes(charsmap)) => model.charsmap = charsmap.to_vec(),
            (3, Field::Number(flag)) => model.add_dummy_prefix = flag != 0,
            (4, Field::Number(flag)) => model.remove_extra_whitespaces = flag != 0,
            (5, Field::Number(flag)) => model.escape_whitespaces = flag != 0,
            _ => {}
        }
    }
    Ok(())
}
