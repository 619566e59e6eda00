//! The pocket corpus in memory: real sentences of both languages that come with two crates, so no file is read.

use super::NotebookError;
use crate::corpus::source::{Manifest, ReadOutcome, Store, read};
use crate::corpus::{Document, Prepared, prepare_documents};
use crate::pipeline::{TokenBalance, corpus_table, shares, token_balance};
use crate::progress::Progress;
use crate::recipe::Recipe;
use crate::report::figure::{self, Figure};
use crate::report::{ReportError, Table};
use crate::tokenizer::{PreTokenizer, Tokenizer, TokenizerError, Training};

/// The pocket corpus, prepared as a run prepares it.
#[derive(Debug, Clone)]
pub struct Pocket {
    /// The recipe `pocket`.
    pub recipe: Recipe,
    /// The sentences as they were read.
    pub read: Vec<Document>,
    /// What preparing made of them.
    pub text: Prepared,
}

/// Reads and prepares the pocket corpus.
///
/// # Errors
/// When the text of the two crates is not what the manifest says.
pub fn pocket() -> Result<Pocket, NotebookError> {
    let recipe = Recipe::load("pocket")?;
    let manifest = Manifest::load(&recipe.corpus.manifest)?;
    // The store's folder is never looked in: the text is inside this program.
    let store = Store::new(None, "data".into());
    let ReadOutcome { documents, parallel, protected, .. } = read(&manifest, &store, &mut Progress::hidden(0))?;
    let read = documents.clone();
    let text = prepare_documents(documents, parallel, &protected, &recipe.corpus, &mut Progress::hidden(0))?;
    Ok(Pocket { recipe, read, text })
}

fn of<'a>(documents: &'a [Document], language: &str) -> Vec<&'a str> {
    documents.iter().filter(|d| d.language == language).map(|d| d.text.as_str()).collect()
}

impl Pocket {
    /// Training sentences of a language.
    pub fn training(&self, language: &str) -> Vec<&str> {
        of(&self.text.train, language)
    }

    /// Held-out sentences of a language.
    pub fn held_out(&self, language: &str) -> Vec<&str> {
        of(&self.text.held_out, language)
    }

    /// A tokenizer trained on the training sentences of both languages.
    ///
    /// # Errors
    /// [`TokenizerError`] for an unknown pre-tokenizer.
    pub fn tokenizer(&self, pre_tokenizer: &str, vocabulary: usize) -> Result<Tokenizer, TokenizerError> {
        let pre_tokenizer: PreTokenizer = pre_tokenizer.parse()?;
        let texts: Vec<&str> = self.text.train.iter().map(|d| d.text.as_str()).collect();
        Tokenizer::train_as(&texts, &Training { pre_tokenizer, vocabulary, compose: true })
    }

    /// What preparing dropped and kept, by source.
    pub fn table(&self) -> Table {
        corpus_table(&self.text.report)
    }

    /// How the languages share the training text, in characters, bytes and the tokens of `tokenizer`.
    ///
    /// # Errors
    /// [`TokenizerError`] when encoding fails.
    pub fn balance(&self, name: &str, tokenizer: &Tokenizer) -> Result<TokenBalance, TokenizerError> {
        token_balance(name, tokenizer, &self.text.train)
    }

    /// The figure of these balances.
    ///
    /// # Errors
    /// [`ReportError`] when there is none.
    pub fn balance_figure(&self, balances: &[TokenBalance]) -> Result<Figure, ReportError> {
        figure::balance(&shares(balances), &format!("Pocket training text, {} sentences.", self.text.train.len()))
    }

    /// Held-out sentences of a language joined to documents of `sentences` each: a window of a model holds more than
    /// one sentence.
    pub fn held_out_documents(&self, language: &str, sentences: usize) -> Vec<Document> {
        let join = |(i, part): (usize, &[&str])| Document {
            id: format!("held-out/{language}/{i}"),
            source: "pocket".to_owned(),
            language: language.to_owned(),
            domain: "news".to_owned(),
            text: part.join("\n"),
        };
        self.held_out(language).chunks(sentences.max(1)).enumerate().map(join).collect()
    }
}
