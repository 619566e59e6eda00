//! The fertility study: tokenizers trained on the same text and measured on the same sets, the cause of
//! their differences over many languages, and single words step by step.

pub mod cause;
mod known;
pub mod release;
mod superword;
mod trained;
mod unigram;
mod usage;
pub mod walk;

pub use cause::{Cause, LanguageCause};
pub use known::{Known, KnownTokenizer, KnownTokenizers};
pub use release::{Candidate, Doubles, Release};
pub use superword::train_superwords;
pub use trained::{Arm, Machine, Measured, TextSet, Trained, measure_set, run, timed};
pub use unigram::train_unigram;
pub use usage::{RARE, Usage};
pub use walk::{Spelling, Walk};

use crate::artifact::{Hash, hash_bytes};
use serde::{Deserialize, Serialize};

/// All that the study measured: what its tables and figures are made of. It holds no text but the
/// words of the walk-throughs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// The texts that tokenizers were trained on.
    pub texts: Vec<TrainingText>,
    /// The tokenizers trained here.
    pub trained: Vec<Trained>,
    /// The well-known tokenizers, measured or unreachable.
    pub known: Vec<Known>,
    /// Marks against loss, by language.
    pub cause: Cause,
    /// Words, step by step.
    pub walks: Vec<Walk>,
    /// Words in two spellings.
    pub spellings: Vec<Spelling>,
}

/// A text that tokenizers were trained on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingText {
    /// Its name.
    pub name: String,
    /// What it is, in a sentence.
    pub what: String,
    /// Bangla characters.
    pub bangla: u64,
    /// English characters.
    pub english: u64,
}

impl Study {
    /// Digest of what was measured, without what depends on the machine.
    pub fn hash(&self) -> Hash {
        let mut study = self.clone();
        study.trained.iter_mut().for_each(|row| row.machine = Machine::default());
        // Plain structs of strings and numbers always serialise.
        hash_bytes(&serde_json::to_vec(&study).unwrap_or_default())
    }

    /// Tokenizers that were really measured.
    pub fn measured(&self) -> usize {
        self.trained.len() + self.known.iter().filter(|known| known.vocabulary.is_some()).count()
    }
}
