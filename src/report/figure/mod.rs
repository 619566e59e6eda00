//! Figures: SVG with one visual language, and the numbers of each as CSV beside it.
//!
//! The same inputs give the same bytes: no fonts are measured, no time is written, and machine speed
//! is drawn in the cost curve alone. Every caption says the scale, the sample and the seed.

mod arbiter;
mod balance;
mod cause;
mod choice;
mod consequence;
mod cost;
mod dead_parameters;
mod efficiency;
mod fertility;
mod loss;
mod matrix;
mod style;
mod taxonomy;
mod training;
mod vocabulary;
mod words;

pub use arbiter::{DetectorBar, arbiter};
pub use balance::{Share, balance};
pub use cause::cause;
pub use choice::{ChoiceRow, Mark, choice};
pub use consequence::consequence;
pub use cost::cost;
pub use dead_parameters::{CurvePair, dead_parameters};
pub use efficiency::efficiency;
pub use fertility::{Bar, fertility};
pub use loss::{LossPoint, loss};
pub use matrix::versions;
pub use taxonomy::{Tally, taxonomy};
pub use training::{Curve, training};
pub use vocabulary::vocabulary;
pub use words::Words;

use super::ReportError;
use crate::artifact::write_atomic;
use std::path::Path;

/// A drawn figure and its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// File name without extension.
    pub id: &'static str,
    /// SVG text.
    pub svg: String,
    /// The numbers, CSV with a header line.
    pub csv: String,
}

impl Figure {
    /// Writes `<id>.svg` and `<id>.csv` into `directory`.
    ///
    /// # Errors
    /// [`ReportError::File`].
    pub fn save(&self, directory: &Path) -> Result<(), ReportError> {
        write_atomic(&directory.join(format!("{}.svg", self.id)), self.svg.as_bytes())?;
        Ok(write_atomic(&directory.join(format!("{}.csv", self.id)), self.csv.as_bytes())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::defects::Matrix;
    use std::collections::BTreeMap;

    fn bar(language: &str, value: f64) -> Bar {
        let (language, pre_tokenizer) = (language.to_owned(), "marks".to_owned());
        Bar { language, pre_tokenizer, value, interval: [value - 0.1, value + 0.1] }
    }

    #[test]
    fn figures_show_their_labels_values_and_caption_and_are_the_same_every_time() {
        let draw = || fertility(&[bar("bn", 3.35), bar("en", 3.49)], "3 texts, seed 1.").unwrap();
        let figure = draw();
        for text in ["Bangla, marks", "English, marks", "3.35", "characters per token", "3 texts, seed 1."] {
            assert!(figure.svg.contains(text), "{text}");
        }
        assert_eq!(figure.csv.lines().nth(1), Some("bn,marks,3.35,3.25,3.45"));
        assert_eq!(figure, draw());
    }

    #[test]
    fn the_training_curve_has_its_line_of_chance_and_every_language() {
        let validation = BTreeMap::from([("bn".to_owned(), vec![(10.0, 5.0)]), ("en".to_owned(), vec![(10.0, 4.99)])]);
        let curve = Curve { training: vec![(5.0, 6.0), (10.0, 5.1)], validation, chance: 6.2, caption: "c".to_owned() };
        let figure = training(&curve).unwrap();
        for text in ["ln(vocabulary)", "Bangla", "English", "training tokens", "nats per token"] {
            assert!(figure.svg.contains(text), "{text}");
        }
        assert_eq!(figure.csv.lines().count(), 1 + 2 + 2 + 1);
        assert!(figure.csv.ends_with("chance,0,6.2\n"));
    }

    #[test]
    fn nothing_to_draw_is_an_error_that_names_the_figure() {
        for error in [
            training(&Curve::default()).unwrap_err(),
            fertility(&[], "").unwrap_err(),
            balance(&[], "").unwrap_err(),
            loss(&[], "").unwrap_err(),
            choice(&[], "").unwrap_err(),
            taxonomy(&[], "").unwrap_err(),
            dead_parameters(&[], "").unwrap_err(),
            versions(&Matrix::default(), &["a"], "").unwrap_err(),
        ] {
            assert!(error.to_string().contains("to draw"), "{error}");
        }
    }

    #[test]
    fn defects_are_counted_by_what_gives_them_away_and_their_curves_drawn() {
        let questions = vec![("right", 2)];
        let kind = "wrong gradient".to_owned();
        let tally = Tally { kind, entries: 4, curve: 1, beside: 0, presence: 0, questions, arbiter: 2 };
        let figure = taxonomy(&[tally], "c").unwrap();
        assert!(figure.svg.contains("wrong gradient (4)") && figure.svg.contains("any question"));
        assert_eq!(figure.csv.lines().nth(1), Some("wrong gradient,4,curve alone,1"));
        let (healthy, defective) = (vec![vec![2.0, 1.0], vec![2.5, 1.5]], vec![vec![2.0, 1.8]]);
        let figure = dead_parameters(&[CurvePair { name: "rope".to_owned(), healthy, defective }], "c").unwrap();
        assert!(figure.svg.contains("rope") && figure.svg.contains("with the defect"));
        assert_eq!(figure.csv.lines().nth(1), Some("rope,healthy,1,2,2.25,2.5"));
    }

    #[test]
    fn shares_and_losses_name_language_and_value() {
        let shares = vec![("bn".to_owned(), 0.25), ("en".to_owned(), 0.75)];
        let figure = balance(&[Share { unit: "bytes".to_owned(), shares }], "c").unwrap();
        assert!(figure.svg.contains("Bangla 25 %") && figure.svg.contains("one half"));
        let point = LossPoint { language: "bn".to_owned(), model: "twin".to_owned(), value: 2.5, interval: [2.4, 2.6] };
        assert!(loss(&[point], "c").unwrap().svg.contains("2.50"));
    }

    #[test]
    fn a_task_shows_its_questions_its_chance_and_three_marks() {
        let mark = (0.5, [0.4, 0.6]);
        let task = ChoiceRow {
            task: "copa".to_owned(),
            items: 100,
            chance: 0.5,
            majority: 0.55,
            by_sum: mark,
            by_character: mark,
            control: mark,
        };
        let figure = choice(&[task], "c").unwrap();
        for text in ["copa (100)", "per character", "control", "accuracy", "chance"] {
            assert!(figure.svg.contains(text), "{text}");
        }
        assert_eq!(figure.csv.lines().nth(3), Some("copa,100,0.5,0.55,control,0.5,0.4,0.6"));
    }
}
