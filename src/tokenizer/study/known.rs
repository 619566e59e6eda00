//! Well-known tokenizers: named in a manifest, measured where their files are at hand.

use super::{Measured, TextSet, measure_set};
use crate::artifact::{Hash, hash_bytes};
use crate::tokenizer::load::parse;
use crate::tokenizer::{Encoder, TokenizerError};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The manifest that is part of the program.
const BUILT_IN: &str = include_str!("../../../data-manifests/tokenizers.toml");

/// A list of tokenizers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownTokenizers {
    /// The tokenizers, in the order of the table.
    #[serde(rename = "tokenizer")]
    pub tokenizers: Vec<KnownTokenizer>,
}

/// Where a tokenizer is published, and on what terms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownTokenizer {
    /// Unique name.
    pub id: String,
    /// Name for readers.
    pub name: String,
    /// Who serves it: `crates.io`, `npm` or `huggingface.co`.
    pub origin: String,
    /// Package or repository.
    pub package: String,
    /// Version or commit.
    pub revision: String,
    /// Path in the package.
    pub path: String,
    /// Where a tiktoken rank file cuts text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Licence as the package states it.
    pub licence: String,
    /// Digest of the file; unknown where nobody has seen it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Hash>,
}

/// A well-known tokenizer in the study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// What it is.
    pub tokenizer: KnownTokenizer,
    /// Digest of the file that was measured.
    pub found: Option<Hash>,
    /// Kind of its model.
    pub model: Option<String>,
    /// Tokens in its vocabulary; `None` when it was not measured.
    pub vocabulary: Option<usize>,
    /// What was measured, in the order of the sets.
    pub measured: Vec<Measured>,
    /// Why it was not measured.
    pub why_not: Option<String>,
}

impl KnownTokenizers {
    /// The manifest `data-manifests/tokenizers.toml`.
    ///
    /// # Errors
    /// As [`KnownTokenizers::parse`].
    pub fn built_in() -> Result<Self, TokenizerError> {
        Self::parse(BUILT_IN)
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// [`TokenizerError::Format`] for text that is no such manifest or says something wrong.
    pub fn parse(text: &str) -> Result<Self, TokenizerError> {
        let refuse = |message: String| TokenizerError::Format { path: "tokenizers.toml".into(), message };
        let list: Self = toml::from_str(text).map_err(|e| refuse(e.message().to_owned()))?;
        for tokenizer in &list.tokenizers {
            let plain = |path: &str| !path.split('/').any(|part| part.is_empty() || part == "." || part == "..");
            let place = [&tokenizer.origin, &tokenizer.package, &tokenizer.revision, &tokenizer.path];
            if !place.iter().all(|part| plain(part)) {
                return Err(refuse(format!("`{}` has an empty or climbing part in its place", tokenizer.id)));
            }
            tokenizer.pattern.as_deref().map(str::parse::<crate::tokenizer::PreTokenizer>).transpose()?;
        }
        Ok(list)
    }
}

impl KnownTokenizer {
    /// Where the file may lie: in each of `folders` by origin, package, revision and path; a crate's also
    /// in the source folder of cargo.
    fn places(&self, folders: &[PathBuf]) -> Vec<PathBuf> {
        let inside =
            |folder: &PathBuf| folder.join(&self.origin).join(&self.package).join(&self.revision).join(&self.path);
        let mut places: Vec<PathBuf> = folders.iter().map(inside).collect();
        if self.origin == "crates.io" {
            let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
            let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
            let sources = home.map(|home| home.join("registry/src"));
            let registries =
                sources.and_then(|sources| std::fs::read_dir(sources).ok()).into_iter().flatten().flatten();
            let name = format!("{}-{}", self.package, self.revision);
            let mut found: Vec<PathBuf> = registries.map(|dir| dir.path().join(&name).join(&self.path)).collect();
            found.sort();
            places.extend(found);
        }
        places
    }

    /// Measures the tokenizer if its file is in one of the `folders`. A file that cannot be used is
    /// reported as such: the study goes on without it.
    ///
    /// # Errors
    /// [`TokenizerError`] when there is no text to measure on.
    pub fn measure(&self, folders: &[PathBuf], sets: &[TextSet]) -> Result<Known, TokenizerError> {
        let mut known = Known {
            tokenizer: self.clone(),
            found: None,
            model: None,
            vocabulary: None,
            measured: Vec::new(),
            why_not: None,
        };
        let Some(path) = self.places(folders).into_iter().find(|path| path.is_file()) else {
            known.why_not = Some("its file is not at hand".to_owned());
            return Ok(known);
        };
        match self.open(&path) {
            Err(why) => known.why_not = Some(why),
            Ok((hash, tokenizer)) => {
                known.measured = measure_set(&tokenizer, sets, true)?;
                known.found = Some(hash);
                known.model = Some(tokenizer.model().to_owned());
                known.vocabulary = Some(tokenizer.vocabulary_size());
            }
        }
        Ok(known)
    }

    fn open(&self, path: &Path) -> Result<(Hash, crate::tokenizer::load::AnyTokenizer), String> {
        let bytes = std::fs::read(path).map_err(|e| format!("its file cannot be read: {e}"))?;
        let hash = hash_bytes(&bytes);
        if self.sha256.is_some_and(|expected| expected != hash) {
            return Err("its file is another one than the manifest's".to_owned());
        }
        let pattern = self.pattern.as_deref().map(str::parse).transpose().map_err(|e: TokenizerError| e.to_string())?;
        // The message names the file by its place in the package, not on this machine.
        let name = Path::new(&self.package).join(&self.path);
        Ok((hash, parse(&bytes, &name, pattern).map_err(|e| e.to_string())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> Vec<TextSet<'static>> {
        vec![TextSet { name: "a".to_owned(), language: "bn".to_owned(), texts: vec!["আমি গাই"] }]
    }

    #[test]
    fn a_file_is_measured_only_where_it_is_and_is_the_one_meant() {
        let dir = tempfile::tempdir().unwrap();
        let folders = [dir.path().to_path_buf()];
        let mut tokenizer = KnownTokenizers::built_in().unwrap().tokenizers.pop().unwrap();
        tokenizer.sha256 = None;
        let missing = tokenizer.measure(&folders, &set()).unwrap();
        assert_eq!((missing.vocabulary, missing.why_not.as_deref()), (None, Some("its file is not at hand")));
        let path = tokenizer.places(&folders)[0].clone();
        let training = crate::recipe::TokenizerRecipe {
            pre_tokenizer: "marks".to_owned(),
            vocabulary: 280,
            mix: Default::default(),
            file: None,
        };
        let ours = crate::tokenizer::Tokenizer::train(&["আমি গাই আমি গাই"], &training).unwrap();
        ours.save(&path).unwrap();
        let found = tokenizer.measure(&folders, &set()).unwrap();
        assert_eq!(
            (found.vocabulary, found.model.as_deref(), found.why_not),
            (Some(ours.vocabulary_size()), Some("BPE"), None)
        );
        assert_eq!(found.measured[0].fertility.words, 2);
        tokenizer.sha256 = Some(hash_bytes(b"another"));
        assert!(tokenizer.measure(&folders, &set()).unwrap().why_not.unwrap().contains("another"));
        tokenizer.sha256 = None;
        std::fs::write(&path, "{\"model\":").unwrap();
        assert!(tokenizer.measure(&folders, &set()).unwrap().why_not.unwrap().contains("cut off"));
    }

    #[test]
    fn a_manifest_that_leaves_its_folder_is_refused() {
        let text = BUILT_IN.replacen("assets/r50k_base.tiktoken", "../r50k", 1);
        assert!(KnownTokenizers::parse(&text).unwrap_err().to_string().contains("`r50k`"));
        assert!(KnownTokenizers::parse("tokenizer = 1").is_err());
    }
}
