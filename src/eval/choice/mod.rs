//! Multiple choice: the choice that the model finds likeliest, against chance.
//!
//! Each choice is scored as the continuation of its context: by the sum of its tokens' log-probabilities,
//! and by that sum divided by the characters of the choice (code points, the space before it aside), since
//! a longer choice has a smaller sum whatever it says. The first choice wins a tie.

mod layout;
mod load;
mod report;
mod score;

pub use load::{TASKS, load};
pub(crate) use report::drawn;
pub use report::{Accuracy, ChoiceReport, Control, LEVEL, Scoring, TaskReport, judge};
pub use score::{Scores, score};

/// One choice: what the model has read, and the continuation that is scored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What stands before.
    pub context: String,
    /// What is scored, with the space that joins it to the context.
    pub continuation: String,
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The choices, two or more.
    pub choices: Vec<Choice>,
    /// Index of the right one.
    pub gold: usize,
}

impl Item {
    /// A question whose choices share their context.
    fn shared(context: String, choices: impl IntoIterator<Item = String>, gold: usize) -> Self {
        let choice = |text: String| Choice { context: context.clone(), continuation: format!(" {}", text.trim()) };
        Item { choices: choices.into_iter().map(choice).collect(), gold }
    }
}
