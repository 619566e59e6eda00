//! What the typesetter sees: the files of the repository, the fonts built in, and one fixed date.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use typst::diag::{FileError, FileResult};
use typst::foundations::{Bytes, Datetime, Duration};
use typst::syntax::{FileId, RootedPath, Source, VirtualPath, VirtualRoot};
use typst::text::{Font, FontBook};
use typst::utils::LazyHash;
use typst::{Library, LibraryExt, World};

/// Folders whose files `make figures` writes.
const GENERATED: [&str; 2] = ["figures/", "paper/generated/"];

/// Noto Sans for the figures, which ask for no more than a sans-serif; Noto Serif Bengali for Bangla in the text.
/// Both under the SIL Open Font License. The other fonts come with typst.
const FONTS: [&[u8]; 5] = [
    notosans::REGULAR_TTF,
    notosans::BOLD_TTF,
    notosans::ITALIC_TTF,
    notosans::BOLD_ITALIC_TTF,
    include_bytes!("../fonts/NotoSerifBengali-Regular.ttf"),
];

/// A repository as typst's world: no network, no packages, no clock, nothing outside `root`.
pub struct Repository {
    root: PathBuf,
    main: FileId,
    date: Datetime,
    library: LazyHash<Library>,
    book: LazyHash<FontBook>,
    fonts: Vec<Font>,
    sources: Mutex<BTreeMap<String, Source>>,
    files: Mutex<BTreeMap<String, Bytes>>,
}

impl Repository {
    /// The repository at `root` with `main`, a path in it, as what is typeset.
    ///
    /// # Errors
    /// A sentence, when `main` is no path in a repository or `root` is no folder.
    pub fn new(root: &Path, main: &str, date: Datetime) -> Result<Self, String> {
        let path = VirtualPath::new(main).map_err(|e| format!("`{main}` is no path in the repository: {e}"))?;
        let root = root.canonicalize().map_err(|e| format!("{}: {e}", root.display()))?;
        let fonts: Vec<Font> = typst_assets::fonts().chain(FONTS).flat_map(|f| Font::iter(Bytes::new(f))).collect();
        Ok(Repository {
            root,
            main: RootedPath::new(VirtualRoot::Project, path).intern(),
            date,
            library: LazyHash::new(Library::default()),
            book: LazyHash::new(FontBook::from_fonts(&fonts)),
            fonts,
            sources: Mutex::default(),
            files: Mutex::default(),
        })
    }

    /// Characters of the figures read so far that no font has, by file.
    pub fn figures_without_a_font(&self) -> Vec<(String, String)> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = |bytes: &Bytes| -> String {
            let text = bytes.as_str().unwrap_or_default();
            text.chars().filter(|c| !c.is_control() && !self.has(*c)).collect()
        };
        let figures = files.iter().filter(|(name, _)| name.ends_with(".svg"));
        figures.map(|(name, bytes)| (name.clone(), missing(bytes))).filter(|(_, missing)| !missing.is_empty()).collect()
    }

    fn has(&self, character: char) -> bool {
        self.fonts.iter().any(|font| font.info().coverage.contains(character as u32))
    }

    fn read(&self, id: FileId) -> FileResult<Bytes> {
        let name = name(id)?;
        if let Some(bytes) = self.files.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(bytes.clone());
        }
        let path = id.get().vpath().realize(&self.root).map_err(FileError::Realize)?;
        // A link in the repository may point out of it.
        let path = path.canonicalize().map_err(|e| unreadable(name, &e))?;
        if !path.starts_with(&self.root) {
            return Err(other(format!("`{name}` lies outside the repository")));
        }
        let bytes = Bytes::new(std::fs::read(&path).map_err(|e| unreadable(name, &e))?);
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), bytes.clone());
        Ok(bytes)
    }
}

/// The path in the repository, without a slash at its front.
pub fn name(id: FileId) -> FileResult<&'static str> {
    let path = id.get();
    match path.root() {
        VirtualRoot::Project => Ok(path.vpath().get_without_slash()),
        VirtualRoot::Package(package) => {
            Err(other(format!("the package {package} is not used: nothing is downloaded")))
        }
    }
}

fn other(message: String) -> FileError {
    FileError::Other(Some(message.into()))
}

fn unreadable(name: &str, error: &std::io::Error) -> FileError {
    let missing = error.kind() == std::io::ErrorKind::NotFound;
    match GENERATED.iter().any(|folder| name.starts_with(folder)) {
        true if missing => other(format!("`{name}` is missing: run `make figures`")),
        _ => other(format!("`{name}`: {error}")),
    }
}

impl World for Repository {
    fn library(&self) -> &LazyHash<Library> {
        &self.library
    }

    fn book(&self) -> &LazyHash<FontBook> {
        &self.book
    }

    fn main(&self) -> FileId {
        self.main
    }

    fn source(&self, id: FileId) -> FileResult<Source> {
        let name = name(id)?;
        if let Some(source) = self.sources.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(source.clone());
        }
        let source = Source::new(id, self.read(id)?.as_str()?.to_owned());
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), source.clone());
        Ok(source)
    }

    fn file(&self, id: FileId) -> FileResult<Bytes> {
        self.read(id)
    }

    fn font(&self, index: usize) -> Option<Font> {
        self.fonts.get(index).cloned()
    }

    fn today(&self, _: Option<Duration>) -> Option<Datetime> {
        Some(self.date)
    }
}
