//! The committed results, read from the repository that the notebook lies in.

use super::NotebookError;
use crate::arbiter::Verdict;
use crate::arbiter::faults::Score;
use crate::defects::meter::Efficiency;
use crate::defects::{Matrix, Outcomes, Record};
use crate::error::FileError;
use crate::eval::EvalReport;
use crate::eval::choice::ChoiceReport;
use crate::pipeline::{Exported, Measurement, TokenBalance, check_kept, load_study, read_json};
use crate::recipe::Recipe;
use crate::report::figure::Figure;
use crate::report::{Measurements, Table};
use crate::tokenizer::Tokenizer;
use crate::tokenizer::study::Study;
use crate::train::cost::CostPoint;
use crate::train::{Row, read_metrics};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const REFERENCE: &str = "checkpoints/reference";
/// Which directory is the repository: the one that has this file.
const MARK: &str = "checkpoints/reference/kept.json";

/// The committed results.
#[derive(Debug, Clone)]
pub struct Stored {
    root: PathBuf,
}

/// Finds the committed results: in the directory of the notebook or above it, else where this library was built.
///
/// # Errors
/// [`NotebookError::NoRepository`].
pub fn stored() -> Result<Stored, NotebookError> {
    let here = std::env::current_dir().map_err(FileError::at("find", Path::new(".")))?;
    let built = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = here.ancestors().chain([built]).find(|directory| directory.join(MARK).exists());
    found.map(|root| Stored { root: root.to_path_buf() }).ok_or(NotebookError::NoRepository)
}

impl Stored {
    /// The path of a file of the repository.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn text(&self, name: &str) -> Result<Option<String>, NotebookError> {
        let path = self.path(name);
        if !path.exists() {
            return Ok(None);
        }
        Ok(Some(std::fs::read_to_string(&path).map_err(FileError::at("read", &path))?))
    }

    fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T, NotebookError> {
        Ok(read_json(&self.path(name))?)
    }

    fn reference<T: DeserializeOwned>(&self, name: &str) -> Result<T, NotebookError> {
        self.json(&format!("{REFERENCE}/{name}"))
    }

    /// A figure of the report, as it is committed.
    ///
    /// # Errors
    /// [`NotebookError::Unknown`] when there is none of that name.
    pub fn figure(&self, id: &'static str) -> Result<Figure, NotebookError> {
        let [svg, csv] = ["svg", "csv"].map(|kind| self.text(&format!("figures/{id}.{kind}")));
        match (svg?, csv?) {
            (Some(svg), Some(csv)) => Ok(Figure { id, svg, csv }),
            _ => Err(NotebookError::Unknown { what: "figure", name: id.to_owned() }),
        }
    }

    /// A table of the report, as it is committed.
    ///
    /// # Errors
    /// [`NotebookError::Unknown`] when there is none of that name.
    pub fn table(&self, id: &str) -> Result<Table, NotebookError> {
        let unknown = || NotebookError::Unknown { what: "table", name: id.to_owned() };
        let text = self.text(&format!("paper/generated/{id}.csv"))?.ok_or_else(unknown)?;
        Table::from_csv(id, &text).ok_or_else(unknown)
    }

    /// A number of the report as its readers see it, by its key in `paper/generated/numbers.json`.
    ///
    /// # Errors
    /// [`NotebookError::Unknown`] when there is no such key.
    pub fn number(&self, key: &str) -> Result<String, NotebookError> {
        let numbers: BTreeMap<String, String> = self.json("paper/generated/numbers.json")?;
        numbers.get(key).cloned().ok_or_else(|| NotebookError::Unknown { what: "number", name: key.to_owned() })
    }

    /// Checks every file of the reference run against its hash; how many there are.
    ///
    /// # Errors
    /// When one was changed.
    pub fn check_reference(&self) -> Result<usize, NotebookError> {
        Ok(check_kept(&self.path(REFERENCE))?)
    }

    /// The recipe of the reference run.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn recipe(&self) -> Result<Recipe, NotebookError> {
        Ok(Recipe::from_file(&self.path(REFERENCE).join("recipe.toml"))?)
    }

    /// The metrics of the reference run, a row a step.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn metrics(&self) -> Result<Vec<Row>, NotebookError> {
        Ok(read_metrics(&self.path(REFERENCE).join("metrics.jsonl"))?)
    }

    /// Its evaluation on held-out documents.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn eval(&self) -> Result<EvalReport, NotebookError> {
        self.reference("eval.json")
    }

    /// Its multiple-choice results.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn choice(&self) -> Result<ChoiceReport, NotebookError> {
        self.reference("choice.json")
    }

    /// What its two tokenizers cost, on held-out and parallel text.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn fertility(&self) -> Result<Vec<Measurement>, NotebookError> {
        self.reference("fertility.json")
    }

    /// The balance of its training text under each tokenizer.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn balance(&self) -> Result<Vec<TokenBalance>, NotebookError> {
        self.reference("balance.json")
    }

    /// What the arbiter said before its first step.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn verdict(&self) -> Result<Verdict, NotebookError> {
        self.reference("arbiter.json")
    }

    /// What it says to the claims of the abstract.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn measurements(&self) -> Result<Measurements, NotebookError> {
        self.reference("measurements.json")
    }

    /// Its model with its tokenizer.
    ///
    /// # Errors
    /// When a part is missing or they do not belong together.
    pub fn model(&self) -> Result<Exported, NotebookError> {
        Ok(Exported::load(&self.path(REFERENCE).join("model"))?)
    }

    /// The released tokenizer.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn tokenizer(&self) -> Result<Tokenizer, NotebookError> {
        Ok(Tokenizer::load(&self.path("checkpoints/tokenizer/tokenizer.json"))?)
    }

    /// The fertility study.
    ///
    /// # Errors
    /// When it cannot be read, or was changed.
    pub fn study(&self) -> Result<Study, NotebookError> {
        Ok(load_study(&self.path("checkpoints/fertility"))?)
    }

    /// The score of the arbiter on its corpus of planted faults.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn score(&self) -> Result<Score, NotebookError> {
        self.json("checkpoints/arbiter/score.json")
    }

    /// A run of the catalogue of Candle's defects.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn defects(&self) -> Result<Outcomes, NotebookError> {
        self.json("defects/outcomes.json")
    }

    /// The record of one entry of that run.
    ///
    /// # Errors
    /// [`NotebookError::Unknown`] when it has no such entry.
    pub fn defect(&self, id: &str) -> Result<Record, NotebookError> {
        let unknown = || NotebookError::Unknown { what: "catalogue entry", name: id.to_owned() };
        self.defects()?.records.into_iter().find(|record| record.id == id).ok_or_else(unknown)
    }

    /// A run of the catalogue of Burn's defects.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn burn(&self) -> Result<Outcomes, NotebookError> {
        self.json("defects/burn.json")
    }

    /// How fast the layers of each framework go forward and backward.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn efficiency(&self) -> Result<Efficiency, NotebookError> {
        self.json("defects/backward-efficiency.json")
    }

    /// Which version of Candle has which defect.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn versions(&self) -> Result<Matrix, NotebookError> {
        self.json("defects/matrix/candle.json")
    }

    /// What a training step costs when one size grows.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn cost(&self) -> Result<Vec<CostPoint>, NotebookError> {
        self.json("checkpoints/bench/cost.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_committed_reads_back() {
        let stored = stored().unwrap();
        assert!(stored.check_reference().unwrap() > 10);
        assert_eq!(stored.metrics().unwrap().len() as u64, stored.recipe().unwrap().train.steps);
        assert!(stored.eval().unwrap().language("bn").is_some());
        assert_eq!(stored.choice().unwrap().tasks.len(), 8);
        assert!(!stored.fertility().unwrap().is_empty() && !stored.balance().unwrap().is_empty());
        assert!(stored.verdict().unwrap().passed() && stored.score().unwrap().missed().is_empty());
        assert_eq!(stored.defect("candle-rms-norm").unwrap().verdict(), "present");
        assert!(!stored.burn().unwrap().records.is_empty() && stored.efficiency().unwrap().gemm_peak > 0.0);
        assert!(!stored.versions().unwrap().names().is_empty() && !stored.cost().unwrap().is_empty());
        assert!(!stored.study().unwrap().trained.is_empty() && stored.measurements().unwrap().values.len() > 5);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let stored = stored().unwrap();
        let message = stored.figure("no-such").unwrap_err().to_string();
        assert!(message.contains("no figure called `no-such`") && message.contains("registry"), "{message}");
        assert!(stored.number("no-such").is_err() && stored.defect("no-such").is_err());
        assert!(stored.table("claims").unwrap().len() > 10 && !stored.number("study.languages").unwrap().is_empty());
    }
}
