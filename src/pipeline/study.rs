//! The fertility study from the text of the `small` manifest to stored measurements.

use super::study_text::{ALL, AS_WRITTEN, BALANCED, LEANING, Texts, WITH_NEWS, sets, texts};
use super::{PipelineError, read_json, write_json};
use crate::artifact::{Hash, hash_file, write_atomic};
use crate::progress::Progress;
use crate::report::{figure, study as report};
use crate::tokenizer::study::{
    Arm, Known, KnownTokenizer, KnownTokenizers, Machine, Study, TextSet, Trained, Usage, cause, measure_set, run,
    timed, train_superwords, train_unigram, walk,
};
use crate::tokenizer::{Encoder, PreTokenizer, Tokenizer, TokenizerError, Training};
use std::path::{Path, PathBuf};
use std::time::Instant;

const STUDY: &str = "study.json";
const HASH: &str = "study.hash.json";

/// Vocabularies on the main text, and on the others.
const MANY: [usize; 7] = [1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];
const FEW: [usize; 4] = [8192, 16_384, 32_768, 65_536];
/// Text, pattern of the first stage, and the vocabularies of the first and of both, where the second may cross spaces.
/// The last is how low it goes here: the most Bangla, and stops that stay on their word.
const SUPERWORDS: [(&str, PreTokenizer, usize, usize); 4] = [
    (BALANCED, PreTokenizer::Marks, 12_288, 16_384),
    (BALANCED, PreTokenizer::Marks, 24_576, 32_768),
    (BALANCED, PreTokenizer::Marks, 49_152, 65_536),
    (LEANING, PreTokenizer::MarksStop, 57_344, 65_536),
];
const UNIGRAM: [usize; 2] = [8192, 32_768];

/// The vocabulary of the walk-throughs and spellings.
const SHOWN: usize = 32_768;
const WORDS: [&str; 3] = ["বাংলাদেশের", "শিক্ষার্থী", "স্ত্রী"];

/// Where the study reads and writes.
#[derive(Debug, Clone)]
pub struct StudyOptions {
    /// A folder of raw files that is looked in before anything is downloaded.
    pub mirror: Option<PathBuf>,
    /// Folders of well-known tokenizers.
    pub tokenizers: Vec<PathBuf>,
    /// Where the measurements go.
    pub out: PathBuf,
    /// Measures the well-known tokenizers again and keeps the rest of the study in `out`.
    pub known_only: bool,
}

/// Runs the study, stores what it measured in `out`, and gives the tables.
///
/// # Errors
/// When a text is missing or wrong, training fails or a file cannot be written.
pub fn study(options: &StudyOptions) -> Result<String, PipelineError> {
    let kept = if options.known_only { Some(load_study(&options.out)?) } else { load_study(&options.out).ok() };
    let texts = texts(options)?;
    let sets = sets(&texts.parallel);
    let manifest = KnownTokenizers::built_in()?.tokenizers;
    let stored = kept.iter().flat_map(|study| study.known.clone()).collect::<Vec<Known>>();
    let measure = |tokenizer: KnownTokenizer| -> Result<Known, TokenizerError> {
        Ok(or_stored(tokenizer.measure(&options.tokenizers, &sets)?, &stored))
    };
    if let (Some(kept), true) = (kept, options.known_only) {
        let known = manifest.into_iter().map(measure).collect::<Result<Vec<_>, _>>()?;
        return store(&Study { known, ..kept }, &options.out);
    }
    let mut work =
        Progress::new("study", (54 + SUPERWORDS.len() + UNIGRAM.len() + manifest.len()) as u64, "tokenizers");
    let (mut trained, shown) = train(&texts, &sets, &mut work)?;
    trained.extend(experiments(&texts, &sets, &mut work)?);
    let mut known = Vec::new();
    for tokenizer in manifest {
        work.advance(1, &tokenizer.id);
        known.push(measure(tokenizer)?);
    }
    work.finish(&format!("{} tokenizers trained", trained.len()));
    let (walks, spellings) = words(&shown)?;
    let study = Study {
        texts: texts.training.iter().map(|(text, _)| text.clone()).collect(),
        trained,
        known,
        cause: cause::measure(&texts.scripts, cause::VOCABULARY)?,
        walks,
        spellings,
    };
    store(&study, &options.out)
}

/// A well-known tokenizer that is not at hand now keeps what was measured of it, as long as the same file is named.
fn or_stored(found: Known, stored: &[Known]) -> Known {
    let same = |old: &&Known| old.tokenizer == found.tokenizer && old.why_not.is_none();
    let old = stored.iter().find(same).filter(|_| found.why_not.is_some());
    old.cloned().unwrap_or(found)
}

/// Stores a study with its hash and its tables, which are given to print.
fn store(study: &Study, directory: &Path) -> Result<String, PipelineError> {
    let path = directory.join(STUDY);
    write_json(&path, study)?;
    write_json(&directory.join(HASH), &hash_file(&path)?)?;
    write_atomic(&directory.join("study.md"), report::markdown(study).as_bytes())?;
    Ok(report::tables(study))
}

/// Draws the figures of a stored study into `figures` and writes its tables beside the measurements.
///
/// # Errors
/// When the study is missing or was changed, or a file cannot be written.
pub fn draw_study(directory: &Path, figures: &Path) -> Result<String, PipelineError> {
    let study = load_study(directory)?;
    for figure in [figure::cause(&study.cause)?, figure::vocabulary(&study.trained)?] {
        figure.save(figures)?;
    }
    write_atomic(&directory.join("study.md"), report::markdown(&study).as_bytes())?;
    Ok(report::tables(&study))
}

/// Reads a stored study and checks it against its hash.
///
/// # Errors
/// [`PipelineError::Changed`] when it is not what was stored.
pub fn load_study(directory: &Path) -> Result<Study, PipelineError> {
    let path = directory.join(STUDY);
    let stored: Hash = read_json(&directory.join(HASH))?;
    if hash_file(&path)? != stored {
        return Err(PipelineError::Changed { path });
    }
    read_json(&path)
}

/// A tokenizer that is shown word by word.
struct Shown {
    text: String,
    pre_tokenizer: String,
    nfc: bool,
    tokenizer: Tokenizer,
}

/// Every BPE tokenizer of the study, and those that words are shown with.
fn train(texts: &Texts, sets: &[TextSet], work: &mut Progress) -> Result<(Vec<Trained>, Vec<Shown>), PipelineError> {
    let arm = |text: &str, pre_tokenizers: &[PreTokenizer], vocabularies: &[usize], compose| Arm {
        text: text.to_owned(),
        documents: texts.documents(text),
        pre_tokenizers: pre_tokenizers.to_vec(),
        vocabularies: vocabularies.to_vec(),
        compose,
    };
    let two = [PreTokenizer::Gpt2, PreTokenizer::Marks];
    let raw = self::sets(&texts.raw_parallel);
    let arms = [
        (arm(ALL, &PreTokenizer::STUDIED, &MANY, true), sets),
        (arm(BALANCED, &two, &FEW, true), sets),
        (arm(WITH_NEWS, &two, &FEW, true), sets),
        (arm(LEANING, &[PreTokenizer::MarksStop], &[65_536], true), sets),
        (arm(AS_WRITTEN, &[PreTokenizer::Marks], &[SHOWN], true), &raw),
        (arm(AS_WRITTEN, &[PreTokenizer::Marks], &[SHOWN], false), &raw),
    ];
    let (mut trained, mut shown) = (Vec::new(), Vec::new());
    for (arm, sets) in &arms {
        let rows = run(arm, sets, &mut |row, tokenizer| {
            work.advance(1, &format!("{}, {}, {}", row.text, row.pre_tokenizer, row.asked));
            if row.asked == SHOWN && [ALL, AS_WRITTEN].contains(&row.text.as_str()) {
                let (text, pre_tokenizer) = (row.text.clone(), row.pre_tokenizer.clone());
                shown.push(Shown { text, pre_tokenizer, nfc: row.nfc, tokenizer: tokenizer.clone() });
            }
            Ok(())
        })?;
        trained.extend(rows);
    }
    Ok((trained, shown))
}

/// Superwords, and unigram models on the balanced text.
fn experiments(texts: &Texts, sets: &[TextSet], work: &mut Progress) -> Result<Vec<Trained>, PipelineError> {
    let training = |pre_tokenizer, vocabulary| Training { pre_tokenizer, vocabulary, compose: true };
    let mut rows = Vec::new();
    for (text, pattern, first, both) in SUPERWORDS {
        let documents = texts.documents(text);
        let make = || train_superwords(&Tokenizer::train_as(&documents, &training(pattern, first))?, &documents, both);
        let (tokenizer, machine) = timed(make)?;
        let mut row = describe("superword BPE", (pattern, text), &tokenizer, both, machine, (&documents, sets))?;
        row.hash = Some(tokenizer.hash()?);
        rows.push(row);
        work.advance(1, &format!("superwords, {text}, {both}"));
    }
    let (pattern, documents) = (PreTokenizer::Marks, texts.documents(BALANCED));
    for vocabulary in UNIGRAM {
        let ((tokenizer, hash), machine) = timed(|| train_unigram(&documents, &training(pattern, vocabulary)))?;
        let row = describe("Unigram", (pattern, BALANCED), &tokenizer, vocabulary, machine, (&documents, sets))?;
        rows.push(Trained { hash: Some(hash), ..row });
        work.advance(1, &format!("unigram, {vocabulary}"));
    }
    Ok(rows)
}

fn describe(
    model: &str,
    (pattern, text): (PreTokenizer, &str),
    encoder: &dyn Encoder,
    asked: usize,
    machine: Machine,
    (documents, sets): (&[&str], &[TextSet]),
) -> Result<Trained, TokenizerError> {
    let start = Instant::now();
    let measured = measure_set(encoder, sets, true)?;
    let bytes: u64 = measured.iter().map(|m| m.fertility.bytes).sum();
    Ok(Trained {
        model: model.to_owned(),
        pre_tokenizer: pattern.name().to_owned(),
        text: text.to_owned(),
        nfc: true,
        asked,
        vocabulary: encoder.vocabulary_size(),
        hash: None,
        usage: Usage::of(encoder, documents)?,
        measured,
        machine: Machine { bytes_per_second: bytes as f64 / start.elapsed().as_secs_f64(), ..machine },
    })
}

fn words(shown: &[Shown]) -> Result<(Vec<walk::Walk>, Vec<walk::Spelling>), PipelineError> {
    let mut walks = Vec::new();
    for word in WORDS {
        for one in shown.iter().filter(|one| one.text == ALL) {
            walks.push(walk::walk(word, one.pre_tokenizer.parse()?, &one.tokenizer)?);
        }
    }
    let of = |nfc: bool| shown.iter().find(|one| one.text == AS_WRITTEN && one.nfc == nfc);
    let spellings = match (of(true), of(false)) {
        (Some(composing), Some(plain)) => walk::spellings(&composing.tokenizer, &plain.tokenizer)?,
        _ => Vec::new(),
    };
    Ok((walks, spellings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tokenizer_that_is_not_at_hand_keeps_what_was_measured_of_the_same_file() {
        let mut manifest = KnownTokenizers::built_in().unwrap().tokenizers.into_iter();
        let (tokenizer, other) = (manifest.next().unwrap(), manifest.next().unwrap());
        let why_not = Some("its file is not at hand".to_owned());
        let missing = Known { tokenizer, found: None, model: None, vocabulary: None, measured: Vec::new(), why_not };
        let measured = Known { why_not: None, vocabulary: Some(7), ..missing.clone() };
        assert_eq!(or_stored(missing.clone(), std::slice::from_ref(&measured)), measured);
        let another = Known { tokenizer: other, ..measured.clone() };
        assert_eq!(or_stored(missing.clone(), &[another]), missing);
        let again = Known { vocabulary: Some(8), ..measured.clone() };
        assert_eq!(or_stored(again.clone(), &[measured]), again, "what is measured now counts");
    }
}
