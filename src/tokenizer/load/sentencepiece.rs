//! SentencePiece models (T. Kudo, J. Richardson 2018), turned into the `tokenizers` crate's: unigram by
//! Viterbi, BPE by merges in the order of the pieces' scores.

use super::merges::by_rank;
use super::protobuf::{self, Model, Piece, PieceType};
use std::collections::HashSet;
use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::sequence::Sequence as Decoders;
use tokenizers::decoders::strip::Strip as StripDecoder;
use tokenizers::models::bpe::{BpeBuilder, Vocab};
use tokenizers::models::unigram::Unigram;
use tokenizers::normalizers::replace::ReplacePattern;
use tokenizers::normalizers::{Precompiled, Prepend, Replace, Sequence as Normalizers, Strip};
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::{AddedToken, DecoderWrapper, ModelWrapper, NormalizerWrapper, Tokenizer};

/// How SentencePiece writes a space.
const SPACE: char = '▁';

/// Before the name of a piece that text never becomes (control, unknown, unused).
pub(super) const UNREACHABLE: char = '\0';

/// Reads the file.
pub(super) fn read(bytes: &[u8]) -> Result<Tokenizer, String> {
    let spm = protobuf::read(bytes)?;
    if spm.whitespace_as_suffix || !spm.escape_whitespaces {
        return Err("it keeps spaces behind words or unescaped, which is not supported".to_owned());
    }
    check(&spm)?;
    let model = match spm.model_type {
        1 => unigram(&spm)?,
        2 => bpe(&spm, true)?,
        4 => bpe(&spm, false)?,
        3 => return Err("it is a model of whole words, which cannot encode other text".to_owned()),
        other => return Err(format!("its model type is {other}, expected 1 (unigram), 2 (BPE) or 4 (characters)")),
    };
    let failed = |e: tokenizers::Error| e.to_string();
    let whole = spm.pieces.iter().filter(|p| p.kind == PieceType::UserDefined && !p.text.contains(SPACE));
    let added: Vec<AddedToken> = match spm.model_type {
        1 => Vec::new(), // unigram gives them a score instead
        _ => whole.map(|piece| AddedToken::from(piece.text.clone(), false).normalized(false)).collect(),
    };
    let mut tokenizer = Tokenizer::new(model);
    // Normalising puts the space before every stretch between added tokens; so it does where there are none.
    let prepend = spm.add_dummy_prefix && added.is_empty();
    tokenizer.with_normalizer(normalizer(&spm, prepend)?).map_err(failed)?;
    let scheme = if spm.add_dummy_prefix && !prepend { PrependScheme::First } else { PrependScheme::Never };
    // Where no piece holds a space past its beginning, words can be encoded on their own.
    let split = !spm.pieces.iter().any(|piece| reachable(piece) && piece.text.chars().skip(1).any(|c| c == SPACE));
    tokenizer.with_pre_tokenizer(Some(Metaspace::new(SPACE, scheme, split)));
    tokenizer.with_decoder(Some(decoder(&spm).map_err(failed)?));
    tokenizer.add_tokens(added).map_err(failed)?;
    Ok(tokenizer)
}

fn check(spm: &Model) -> Result<(), String> {
    let mut seen = HashSet::new();
    if let Some(twice) = spm.pieces.iter().find(|piece| !seen.insert(piece.text.as_str())) {
        return Err(format!("the piece `{}` is there twice", twice.text));
    }
    let bytes = spm.pieces.iter().filter(|piece| piece.kind == PieceType::Byte).count();
    if spm.byte_fallback && bytes != 256 {
        return Err(format!("it falls back to bytes but has {bytes} byte pieces of 256; is it cut off?"));
    }
    match spm.pieces.iter().filter(|piece| piece.kind == PieceType::Unknown).count() {
        1 => Ok(()),
        n => Err(format!("it has {n} unknown pieces, expected 1")),
    }
}

fn reachable(piece: &Piece) -> bool {
    matches!(piece.kind, PieceType::Normal | PieceType::UserDefined)
}

/// The name of a piece in the model: text never spells those that it cannot become.
fn name(piece: &Piece) -> String {
    match piece.kind {
        PieceType::Normal | PieceType::UserDefined | PieceType::Byte => piece.text.clone(),
        _ => format!("{UNREACHABLE}{}", piece.text),
    }
}

fn unigram(spm: &Model) -> Result<ModelWrapper, String> {
    let normal = spm.pieces.iter().filter(|piece| piece.kind == PieceType::Normal).map(|piece| f64::from(piece.score));
    let best = normal.clone().fold(f64::NEG_INFINITY, f64::max);
    let worst = normal.fold(f64::INFINITY, f64::min);
    let score = |piece: &Piece| match piece.kind {
        PieceType::Normal => f64::from(piece.score),
        // What SentencePiece gives a user's piece, so that it beats all ways to cut it.
        PieceType::UserDefined => piece.text.len() as f64 * best - 0.1,
        _ => worst,
    };
    if !best.is_finite() {
        return Err("it has no normal piece".to_owned());
    }
    let unknown = spm.pieces.iter().position(|piece| piece.kind == PieceType::Unknown);
    let vocabulary = spm.pieces.iter().map(|piece| (name(piece), score(piece))).collect();
    Ok(Unigram::from(vocabulary, unknown, spm.byte_fallback).map_err(|e| e.to_string())?.into())
}

fn bpe(spm: &Model, merge: bool) -> Result<ModelWrapper, String> {
    let mut order: Vec<&Piece> = spm.pieces.iter().filter(|piece| reachable(piece)).collect();
    order.sort_by(|a, b| b.score.total_cmp(&a.score));
    let letters: Vec<Vec<char>> = order.iter().map(|piece| piece.text.chars().collect()).collect();
    let ranked: Vec<(&[char], usize)> = letters.iter().enumerate().map(|(rank, p)| (p.as_slice(), rank)).collect();
    let merges = if merge { by_rank(&ranked) } else { Vec::new() };
    let text = |letters: &[char]| letters.iter().collect::<String>();
    let vocabulary: Vocab = spm.pieces.iter().enumerate().map(|(id, piece)| (name(piece), id as u32)).collect();
    let unknown = spm.pieces.iter().find(|piece| piece.kind == PieceType::Unknown).map(name).unwrap_or_default();
    let model = BpeBuilder::new()
        .vocab_and_merges(vocabulary, merges.into_iter().map(|(left, right)| (text(left), text(right))).collect())
        .unk_token(unknown)
        .fuse_unk(true)
        .byte_fallback(spm.byte_fallback)
        .build();
    Ok(model.map_err(|e| e.to_string())?.into())
}

fn normalizer(spm: &Model, prepend: bool) -> Result<Option<NormalizerWrapper>, String> {
    let mut steps: Vec<NormalizerWrapper> = Vec::new();
    if !spm.charsmap.is_empty() {
        let table = Precompiled::from(&spm.charsmap).map_err(|_| "its table of characters is damaged".to_owned())?;
        steps.push(table.into());
    }
    if spm.remove_extra_whitespaces {
        steps.push(Strip::new(true, true).into());
        let runs = ReplacePattern::Regex(" {2,}".to_owned());
        steps.push(Replace::new(runs, " ").map_err(|e| e.to_string())?.into());
    }
    if prepend {
        steps.push(Prepend::new(SPACE.to_string()).into());
    }
    Ok(Some(steps).filter(|steps| !steps.is_empty()).map(|steps| Normalizers::new(steps).into()))
}

fn decoder(spm: &Model) -> tokenizers::Result<DecoderWrapper> {
    let space = Replace::new(ReplacePattern::String(SPACE.to_string()), " ")?;
    let mut steps: Vec<DecoderWrapper> =
        vec![DecoderWrapper::Replace(space), ByteFallback::default().into(), Fuse::default().into()];
    if spm.add_dummy_prefix {
        steps.push(StripDecoder::new(' ', 1, 0).into());
    }
    Ok(Decoders::new(steps).into())
}
