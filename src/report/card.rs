//! The model card: what an exported model is, what it was made of, and what it is not good for.

use super::claims::number;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// What a reader has to know of a model, as plain data; travels with it as `shikha.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Name of the run.
    pub name: String,
    /// Numbers in the model.
    pub parameters: u64,
    /// Tokens in the vocabulary.
    pub vocabulary: usize,
    /// Tokens in the window.
    pub context: usize,
    /// What it was trained on; absent when the model came from elsewhere.
    pub training: Option<CardTraining>,
    /// Held-out loss by language.
    pub losses: Vec<CardLoss>,
    /// The texts.
    pub sources: Vec<CardSource>,
}

/// How a model was trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardTraining {
    /// Training tokens seen.
    pub tokens: u64,
    /// Optimizer steps.
    pub steps: u64,
    /// Seed of all randomness.
    pub seed: u64,
    /// Share of the training windows by language.
    pub mix: Vec<(String, f64)>,
    /// Hours of the steps together.
    pub hours: f64,
    /// Energy in kilowatt hours, where it was measured.
    pub energy_kwh: Option<f64>,
    /// Trainable tensors whose gradient was checked before the first step; absent when a check failed.
    pub checked_tensors: Option<u64>,
}

/// Held-out loss of one language.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardLoss {
    /// Language code.
    pub language: String,
    /// Documents.
    pub documents: usize,
    /// Nats per character with its 95 % interval.
    pub per_character: [f64; 3],
    /// The same of the interpolated 5-gram model of the same text.
    pub ngram_per_character: [f64; 3],
}

/// One text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardSource {
    /// Id in the manifest.
    pub id: String,
    /// Language code.
    pub language: String,
    /// Where it is published, with its revision.
    pub origin: String,
    /// Licence as the source states it.
    pub licence: String,
    /// Whom to name.
    pub attribution: String,
}

impl Card {
    /// The card as the README of a Hugging Face directory.
    pub fn to_markdown(&self) -> String {
        let mut text = self.front_matter();
        let _ = writeln!(
            text,
            "\n# {}\n\nA decoder in the Llama layout with {} parameters, {} tokens in the vocabulary and a window of {} \
             tokens, trained by Shikha, a Bangla-first language model in Rust. It loads as `LlamaForCausalLM`. A text starts \
             after the token `<|endoftext|>`: put it before the prompt.\n",
            self.name,
            number(self.parameters as f64),
            self.vocabulary,
            self.context
        );
        self.write_training(&mut text);
        self.write_losses(&mut text);
        self.write_sources(&mut text);
        text += "## Licence\n\nThe code that made the model is MIT or Apache-2.0, at your choice. Each text keeps its own \
                 licence, named above; where one asks for attribution or for sharing alike, it asks the same of what is \
                 made with its text.\n\n## Limits\n\nA small model of little text: it continues text, follows no \
                 instructions, and states things that are not true. It was not made safe: it repeats what its sources say, \
                 in the manner of their time. Its losses hold for text like its sources, and are not to be compared between \
                 languages. Not for use where an error harms somebody.\n";
        text
    }

    fn front_matter(&self) -> String {
        let mut languages: Vec<&str> = self.sources.iter().map(|s| s.language.as_str()).collect();
        languages.sort_unstable();
        languages.dedup();
        let languages: String = languages.iter().map(|language| format!("- {language}\n")).collect();
        let languages = if languages.is_empty() { String::new() } else { format!("language:\n{languages}") };
        format!(
            "---\n{languages}license: other\nlicense_name: licences-of-the-texts\nlibrary_name: transformers\n\
             pipeline_tag: text-generation\n---\n"
        )
    }

    fn write_training(&self, text: &mut String) {
        *text += "## Training\n\n";
        let Some(training) = &self.training else {
            *text += "Not known: the model was read from files that do not say.\n\n";
            return;
        };
        let mix: Vec<String> =
            training.mix.iter().map(|(language, share)| format!("{language} {:.0} %", 100.0 * share)).collect();
        let energy = training.energy_kwh.map_or("not measured".to_owned(), |energy| format!("{} kWh", number(energy)));
        let checked = training.checked_tensors.map_or("not passed".to_owned(), |count| {
            format!("passed: every one of {count} trainable tensors had a finite, non-zero and right gradient")
        });
        let _ = writeln!(
            text,
            "{} tokens in {} steps, seed {}; windows by language: {}.\n\n- time: {} hours of training steps\n- energy: \
             {energy}\n- gradient check before the first step: {checked}\n",
            number(training.tokens as f64),
            training.steps,
            training.seed,
            mix.join(", "),
            number(training.hours)
        );
    }

    fn write_losses(&self, text: &mut String) {
        *text += "## Evaluation\n\n";
        if self.losses.is_empty() {
            *text += "Not measured.\n\n";
            return;
        }
        *text += "Loss on held-out documents in nats per character, 95 % bootstrap intervals over documents, beside an \
                  interpolated 5-gram model of the same training text.\n\n\
                  | language | documents | this model | 5-gram |\n| --- | --- | --- | --- |\n";
        let cell = |[value, low, high]: [f64; 3]| format!("{value:.3} [{low:.3}, {high:.3}]");
        for loss in &self.losses {
            let (own, ngram) = (cell(loss.per_character), cell(loss.ngram_per_character));
            let _ = writeln!(text, "| {} | {} | {own} | {ngram} |", loss.language, loss.documents);
        }
        text.push('\n');
    }

    fn write_sources(&self, text: &mut String) {
        *text += "## Data\n\n";
        if self.sources.is_empty() {
            *text += "Not known: the model was read from files that do not say.\n\n";
            return;
        }
        *text += "| text | language | from | licence | attribution |\n| --- | --- | --- | --- | --- |\n";
        for source in &self.sources {
            let cells = [&source.id, &source.language, &source.origin, &source.licence, &source.attribution];
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_said() {
        let text = Card { name: "x".to_owned(), parameters: 1_500_000, ..Card::default() }.to_markdown();
        assert!(text.starts_with("---\nlicense: other\n") && text.contains("1.500 M parameters"), "{text}");
        assert_eq!(text.matches("Not known").count(), 2, "{text}");
        assert!(text.contains("Not measured."), "{text}");
    }

    #[test]
    fn a_known_model_names_its_texts_licences_and_hours() {
        let source = CardSource {
            id: "tagore".to_owned(),
            language: "bn".to_owned(),
            origin: "github:a/b@1".to_owned(),
            licence: "public domain | CC0".to_owned(),
            attribution: "R. Tagore".to_owned(),
        };
        let training = CardTraining {
            tokens: 2_000_000,
            steps: 100,
            seed: 17,
            mix: vec![("bn".to_owned(), 0.7), ("en".to_owned(), 0.3)],
            hours: 1.25,
            energy_kwh: None,
            checked_tensors: Some(20),
        };
        let loss = CardLoss {
            language: "bn".to_owned(),
            documents: 9,
            per_character: [1.5, 1.4, 1.6],
            ngram_per_character: [1.7, 1.6, 1.8],
        };
        let (sources, losses, training) = (vec![source], vec![loss], Some(training));
        let text = Card { sources, losses, training, ..Card::default() }.to_markdown();
        for part in [
            "language:\n- bn\n",
            "2 M tokens in 100 steps, seed 17; windows by language: bn 70 %, en 30 %",
            "1.25 hours",
            "energy: not measured",
            "every one of 20 trainable tensors",
            "| bn | 9 | 1.500 [1.400, 1.600] | 1.700 [1.600, 1.800] |",
            "| tagore | bn | github:a/b@1 | public domain \\| CC0 | R. Tagore |",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
