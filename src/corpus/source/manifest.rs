//! The list of files a corpus is made of, with where they come from and on what terms.

use super::reader::Reader;
use super::{Origin, SourceError};
use crate::artifact::{Hash, hash_bytes};
use crate::error::FileError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Manifests that are part of the program.
const BUILT_IN: [(&str, &str); 4] = [
    ("pocket", include_str!("../../../data-manifests/pocket.toml")),
    ("small", include_str!("../../../data-manifests/small.toml")),
    ("eval", include_str!("../../../data-manifests/eval.toml")),
    ("full", include_str!("../../../data-manifests/full.toml")),
];

/// The sources of a corpus.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Sources with a greater licence risk are listed, but not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum_licence_risk: Option<LicenceRisk>,
    /// Name or path of a manifest whose evaluation sources are kept out of this one's training text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protect: Option<String>,
    /// The sources, in the order they are read.
    #[serde(rename = "source")]
    pub sources: Vec<Source>,
}

/// Files of one kind from one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Unique name.
    pub id: String,
    /// Language code, `bn` or `en`; `bn-en` for parallel text.
    pub language: String,
    /// What the text is for.
    pub role: Role,
    /// Kind of text: `literature`, `news`, `encyclopedia` …
    pub domain: String,
    /// Where the files are published.
    pub origin: Origin,
    /// Commit (40 hexadecimal digits) or package version; empty for origins that have none.
    #[serde(default)]
    pub revision: String,
    /// Licence as the source states it.
    pub licence: String,
    /// How sure it is that the licence holds.
    pub licence_risk: LicenceRisk,
    /// Whom to name.
    pub attribution: String,
    /// How the files become text.
    pub reader: Reader,
    /// Share of the documents used, in (0, 1]; less than 1 for a source that would outweigh others.
    #[serde(default = "one")]
    pub weight: f64,
    /// Folder whose files are meant, in the order of their names, where the publisher states size and sha256 of
    /// each and so many that the manifest leaves the list to the revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The files, in the order they are read.
    #[serde(default)]
    pub files: Vec<File>,
    /// Folder that a `local:` origin is relative to: the manifest's.
    #[serde(skip)]
    pub base: PathBuf,
}

fn one() -> f64 {
    1.0
}

/// One file of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Path in the source, with `/` between folders.
    pub path: String,
    /// Size.
    pub bytes: u64,
    /// Digest of the content.
    pub sha256: Hash,
    /// Language of this file where a source has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

/// What text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Training, with a part held out.
    Train,
    /// Comparing languages sentence by sentence; never trained on.
    Parallel,
    /// Measuring on tasks; never trained on.
    Eval,
}

/// How likely a licence does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LicenceRisk {
    /// Stated by the author or out of copyright.
    None,
    /// Stated by a compiler, or with conditions such as share-alike.
    Low,
    /// Stated by somebody who may not be able to grant it.
    Medium,
}

impl LicenceRisk {
    /// The name in manifests.
    pub fn name(self) -> &'static str {
        match self {
            LicenceRisk::None => "none",
            LicenceRisk::Low => "low",
            LicenceRisk::Medium => "medium",
        }
    }
}

impl Manifest {
    /// Reads a built-in manifest (`pocket`, `small`, `eval`, `full`) or, when the name is none of these, a file.
    ///
    /// # Errors
    /// [`SourceError`] when the file cannot be read or says something wrong.
    pub fn load(name_or_path: &str) -> Result<Self, SourceError> {
        if let Some((name, text)) = BUILT_IN.iter().find(|(name, _)| *name == name_or_path) {
            return Self::parse(text, &format!("`{name}`"), Path::new(""));
        }
        let path = Path::new(name_or_path);
        let text = std::fs::read_to_string(path).map_err(FileError::at("read the manifest", path))?;
        Self::parse(&text, name_or_path, path.parent().unwrap_or(Path::new("")))
    }

    /// Reads a manifest from TOML; `name` is used in messages, `base` is where local folders start.
    ///
    /// # Errors
    /// [`SourceError`] for text that is no manifest or says something impossible.
    pub fn parse(text: &str, name: &str, base: &Path) -> Result<Self, SourceError> {
        let mut manifest: Manifest = toml::from_str(text)
            .map_err(|e| SourceError::Syntax { manifest: name.to_owned(), message: one_line(text, &e) })?;
        manifest.sources.iter_mut().for_each(|source| source.base = base.to_path_buf());
        manifest.check(name)?;
        Ok(manifest)
    }

    /// Digest of what the manifest says; comments and layout do not count.
    pub fn hash(&self) -> Hash {
        // Plain structs of strings and numbers always serialise; an empty text would only fail to match.
        hash_bytes(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// The sources of a role that the licence limit lets through.
    pub fn allowed(&self, role: Role) -> impl Iterator<Item = &Source> + Clone {
        self.sources.iter().filter(move |s| s.role == role && self.allows(s))
    }

    /// Whether the training text is read piece by piece while training goes on, and not all at once before.
    pub fn is_streamed(&self) -> bool {
        self.allowed(Role::Train).any(|s| s.reader == Reader::ParquetText)
    }

    /// Whether the licence limit lets a source through.
    pub fn allows(&self, source: &Source) -> bool {
        self.maximum_licence_risk.is_none_or(|limit| source.licence_risk <= limit)
    }

    fn check(&self, name: &str) -> Result<(), SourceError> {
        let mut ids = BTreeSet::new();
        for source in &self.sources {
            let fail =
                |message: String| SourceError::Manifest { manifest: name.into(), id: source.id.clone(), message };
            if !ids.insert(&source.id) {
                return Err(fail("the id is used twice; give every source its own".into()));
            }
            source.check().map_err(fail)?;
        }
        let mut train = self.allowed(Role::Train);
        if let Some(other) = train.clone().find(|s| s.reader != Reader::ParquetText)
            && train.any(|s| s.reader == Reader::ParquetText)
        {
            let message = "text that is streamed (reader `parquet-text`) and text that is not cannot be mixed";
            return Err(SourceError::Manifest { manifest: name.into(), id: other.id.clone(), message: message.into() });
        }
        let only_eval = !self.sources.is_empty() && self.sources.iter().all(|s| s.role == Role::Eval);
        if !only_eval && self.allowed(Role::Train).next().is_none() {
            return Err(SourceError::NothingToTrainOn { manifest: name.to_owned() });
        }
        Ok(())
    }
}

impl Source {
    fn check(&self) -> Result<(), String> {
        let is_commit = |t: &str| t.len() == 40 && t.bytes().all(|b| b.is_ascii_hexdigit());
        if self.id.is_empty() || !self.id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return Err("an id has letters, digits and hyphens only".into());
        }
        if matches!(self.origin, Origin::GitHub { .. } | Origin::HuggingFace { .. }) && !is_commit(&self.revision) {
            return Err(format!("`revision` must be a commit of 40 hexadecimal digits, not `{}`", self.revision));
        }
        let npm_version = |t: &str| t.starts_with(|c: char| c.is_ascii_digit()) && is_plain_path(t) && !t.contains('/');
        if matches!(self.origin, Origin::Npm { .. }) && !npm_version(&self.revision) {
            return Err(format!("`revision` must be a package version such as 1.2.0, not `{}`", self.revision));
        }
        if !(self.weight > 0.0 && self.weight <= 1.0) {
            return Err(format!("`weight` must be above 0 and at most 1, not {}", self.weight));
        }
        if self.reader.role() != self.role {
            return Err(format!("reader `{}` does not go with role {:?}", self.reader.name(), self.role));
        }
        match &self.folder {
            None if self.files.is_empty() => return Err("`files` is empty; list at least one".into()),
            Some(_) if !self.files.is_empty() => return Err("give `files` or `folder`, not both".into()),
            Some(folder) if !is_plain_path(folder) || self.origin.listing("", folder).is_none() => {
                return Err(format!("`folder` is `{folder}`, expected a plain path of a `huggingface:` origin"));
            }
            _ => {}
        }
        let mut paths = BTreeSet::new();
        for file in &self.files {
            if !is_plain_path(&file.path) {
                return Err(format!("path `{}` must be relative, without `..`, `\\` or empty parts", file.path));
            }
            if !paths.insert(&file.path) {
                return Err(format!("path `{}` is listed twice", file.path));
            }
        }
        Ok(())
    }
}

/// Whether a path stays inside the folder it is joined to, on every system.
fn is_plain_path(path: &str) -> bool {
    let part = |p: &str| !p.is_empty() && p != "." && p != "..";
    path.split('/').all(part) && !path.contains(['\\', '\0', ':', '?', '#'])
}

/// The line and the reason of a TOML error, without the drawing around it.
fn one_line(text: &str, error: &toml::de::Error) -> String {
    let reason = error.message().lines().collect::<Vec<_>>().join(" ");
    let line = error.span().and_then(|span| text.get(..span.start)).map(|before| before.matches('\n').count() + 1);
    line.map_or(reason.clone(), |line| format!("line {line}: {reason}"))
}
