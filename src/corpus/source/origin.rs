//! Where the files of a source are published.

use super::download::percent_encoded;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where the files of a source are published, written in a manifest as `kind:place`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Origin {
    /// `crate:NAME@VERSION`: text embedded in a data crate that this program is linked with.
    Crate {
        /// Name on crates.io.
        name: String,
        /// Exact version.
        version: String,
    },
    /// `github:OWNER/REPO`; the source's revision is the 40-digit commit.
    GitHub {
        /// Owner.
        owner: String,
        /// Repository.
        repository: String,
    },
    /// `npm:NAME`; the source's revision is the package version.
    Npm {
        /// Name of the package.
        name: String,
    },
    /// `huggingface:OWNER/DATASET`; the source's revision is the 40-digit commit of the data set.
    HuggingFace {
        /// Data set.
        dataset: String,
    },
    /// `local:FOLDER`, relative to the manifest's folder; an empty folder is that folder itself.
    Local {
        /// The folder.
        folder: PathBuf,
    },
}

/// One path component of a mirror: no separators, not hidden, not a step upwards.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('.')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

impl Origin {
    /// Where a file that is published by itself lies in a mirror folder, and its address; `None` for a file inside
    /// something else or on this machine.
    pub fn published(&self, revision: &str, path: &str) -> Option<(String, String)> {
        match self {
            Origin::GitHub { owner, repository } => {
                let place = format!("{owner}/{repository}/{revision}/{path}");
                let address = format!("https://raw.githubusercontent.com/{}", percent_encoded(&place));
                Some((format!("github.com/{place}"), address))
            }
            Origin::Npm { name } => {
                let address = format!("https://cdn.jsdelivr.net/npm/{name}@{revision}/{}", percent_encoded(path));
                Some((format!("npm/{name}/{revision}/{path}"), address))
            }
            Origin::HuggingFace { dataset } => {
                let encoded = percent_encoded(path);
                let address = format!("https://huggingface.co/datasets/{dataset}/resolve/{revision}/{encoded}");
                Some((format!("huggingface.co/datasets/{dataset}/{revision}/{path}"), address))
            }
            Origin::Crate { .. } | Origin::Local { .. } => None,
        }
    }

    /// Where the list of the files below a folder lies in a mirror folder, and its address; `None` for an origin
    /// whose files the manifest must list itself.
    pub fn listing(&self, revision: &str, folder: &str) -> Option<(String, String)> {
        let Origin::HuggingFace { dataset } = self else { return None };
        let encoded = percent_encoded(folder);
        let address = format!("https://huggingface.co/api/datasets/{dataset}/tree/{revision}/{encoded}");
        Some((format!("huggingface.co/datasets/{dataset}/{revision}/{folder}/files.json"), address))
    }
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is no origin: expected `crate:NAME@VERSION`, `github:OWNER/REPO`, `npm:NAME`, \
                 `huggingface:OWNER/DATASET` or `local:FOLDER`"
            )
        };
        let pair = |place: &str, separator: char| {
            let (a, b) = place.split_once(separator)?;
            (is_name(a) && is_name(b)).then(|| (a.to_owned(), b.to_owned()))
        };
        let (kind, place) = text.split_once(':').ok_or_else(wrong)?;
        match kind {
            "crate" => pair(place, '@').map(|(name, version)| Origin::Crate { name, version }),
            "github" => pair(place, '/').map(|(owner, repository)| Origin::GitHub { owner, repository }),
            "npm" => is_name(place).then(|| Origin::Npm { name: place.to_owned() }),
            "huggingface" => pair(place, '/').map(|_| Origin::HuggingFace { dataset: place.to_owned() }),
            "local" => Some(Origin::Local { folder: place.into() }),
            _ => None,
        }
        .ok_or_else(wrong)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Crate { name, version } => write!(f, "crate:{name}@{version}"),
            Origin::GitHub { owner, repository } => write!(f, "github:{owner}/{repository}"),
            Origin::Npm { name } => write!(f, "npm:{name}"),
            Origin::HuggingFace { dataset } => write!(f, "huggingface:{dataset}"),
            Origin::Local { folder } => write!(f, "local:{}", folder.display()),
        }
    }
}

impl From<Origin> for String {
    fn from(origin: Origin) -> String {
        origin.to_string()
    }
}

impl TryFrom<String> for Origin {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}
