//! Tests of `eval`: every token scored once, the twin at chance, baselines as defined.

use shikha::corpus::Document;
use shikha::eval::{EvalError, Evaluation, MODELS, Ngram, evaluate};
use shikha::model::{Config, Decoder, Parameters, Window, initialise};
use shikha::progress::Progress;
use shikha::recipe::{Recipe, TokenizerRecipe};
use shikha::tokenizer::Tokenizer;

const TEXT: &str = "আমার সোনার বাংলা আমি তোমায় ভালোবাসি। a small text with some words, some of them twice. ";

fn tokenizer() -> Tokenizer {
    let recipe =
        TokenizerRecipe { pre_tokenizer: "marks".to_owned(), vocabulary: 300, mix: Default::default(), file: None };
    Tokenizer::train(&[&TEXT.repeat(5)], &recipe).unwrap()
}

fn config(vocabulary: usize) -> Config {
    let mut model = Recipe::load("pocket").unwrap().model;
    (model.layers, model.hidden, model.intermediate, model.heads, model.kv_heads, model.context) = (1, 16, 24, 2, 1, 8);
    Config::from_recipe(&model, vocabulary, 0).unwrap()
}

fn documents() -> Vec<Document> {
    let document = |i: usize, language: &str, domain: &str, text: &str| Document {
        id: format!("d{i}"),
        source: "s".to_owned(),
        language: language.to_owned(),
        domain: domain.to_owned(),
        text: text.to_owned(),
    };
    vec![
        document(0, "bn", "verse", "আমার সোনার বাংলা"),
        document(1, "bn", "prose", "আমি তোমায় ভালোবাসি। আমি তোমায় ভালোবাসি।"),
        document(2, "en", "prose", "some of them, a text with some words of more than one window of the model"),
        document(3, "en", "prose", "a"),
        document(4, "en", "prose", "not taken: the recipe asks for two"),
    ]
}

/// Training text: verse of another language, prose of both.
fn training() -> Vec<Document> {
    let mut training = documents();
    training[0].language = "en".to_owned();
    training
}

fn stream(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    let mut ids = tokenizer.encode(text).unwrap();
    ids.push(tokenizer.end_of_text());
    ids
}

#[test]
fn every_token_is_scored_once_and_the_sums_agree_with_the_model() {
    let tokenizer = tokenizer();
    let config = config(tokenizer.vocabulary_size());
    let trained: Parameters<f32> = initialise(&config, 99);
    let mut recipe = Recipe::load("pocket").unwrap().eval;
    (recipe.documents, recipe.bootstrap) = (2, 50);
    let counts = vec![3; config.vocab_size];
    let streams: Vec<Vec<u32>> = documents().iter().map(|d| stream(&tokenizer, &d.text)).collect();
    let streams: Vec<&[u32]> = streams.iter().map(Vec::as_slice).collect();
    let ngram = Ngram::train(&streams, config.vocab_size, tokenizer.end_of_text());
    let training = training();
    let evaluation = Evaluation {
        config: &config,
        parameters: &trained,
        seed: 7,
        tokenizer: &tokenizer,
        token_counts: &counts,
        ngram: &ngram,
        training: &training,
        recipe: &recipe,
    };
    let report = evaluate(&evaluation, &documents(), &mut Progress::hidden(5)).unwrap();
    let names: Vec<(&str, &str, usize)> =
        report.groups.iter().map(|g| (g.language.as_str(), g.domain.as_str(), g.documents)).collect();
    assert_eq!(names, [("bn", "all", 2), ("bn", "prose", 1), ("bn", "verse", 1), ("en", "all", 2), ("en", "prose", 2)]);
    let chance = (config.vocab_size as f64).ln();
    assert_eq!(report.chance, chance);
    for group in &report.groups {
        let [trained, ngram, unigram, twin] = MODELS.map(|name| group.models[name]);
        assert!((twin.per_token.value - chance).abs() < 0.1, "{group:?}");
        assert!(ngram.per_token.value < 1.0, "it was trained on these very documents: {ngram:?}");
        let over = trained.per_character.value - ngram.per_character.value;
        assert!((group.gain_over_ngram_per_character.value - over).abs() < 1e-9);
        assert!((unigram.per_token.value - chance).abs() < 1e-9, "equal counts know nothing");
        let nats = trained.per_token.value * group.tokens as f64;
        assert!((trained.per_character.value * group.characters as f64 - nats).abs() < 1e-6);
        assert!((trained.per_byte.value * group.bytes as f64 - nats).abs() < 1e-6);
        assert!(
            twin.per_character.low <= twin.per_character.value && twin.per_character.value <= twin.per_character.high
        );
    }
    // One document by hand, window after window.
    let mut ids = vec![tokenizer.end_of_text()];
    ids.extend(tokenizer.encode(&documents()[0].text).unwrap());
    let mut decoder = Decoder::new(config.clone(), false).unwrap();
    let mut nats = 0.0;
    for start in (0..ids.len() - 1).step_by(8) {
        let end = (start + 8).min(ids.len() - 1);
        let window = Window { inputs: &ids[start..end], targets: &ids[start + 1..=end], time: end - start };
        nats += decoder.loss(&trained, window).unwrap().nats;
    }
    let training: Vec<(&str, usize)> = report.memorisation.iter().map(|m| (m.language.as_str(), m.documents)).collect();
    assert_eq!(training, [("bn", 1), ("en", 2)], "as many of a domain as were held out, where there are");
    for row in &report.memorisation {
        let gap = row.held_out.per_character.value - row.training.per_character.value;
        assert!((row.gap_per_character.value - gap).abs() < 1e-9, "{row:?}");
        assert_eq!(row.held_out, report.language(&row.language).unwrap().models["trained"]);
    }
    let group = &report.groups[2];
    assert_eq!(group.tokens as usize, ids.len() - 1);
    assert!((group.models["trained"].per_token.value * group.tokens as f64 - nats).abs() < 1e-4);
}

#[test]
fn a_model_of_another_vocabulary_is_refused() {
    let tokenizer = tokenizer();
    let config = config(tokenizer.vocabulary_size() + 1);
    let parameters: Parameters<f32> = initialise(&config, 1);
    let recipe = Recipe::load("pocket").unwrap().eval;
    let counts = vec![0; config.vocab_size];
    let ngram = Ngram::train(&[], config.vocab_size, 0);
    let training = training();
    let evaluation = Evaluation {
        config: &config,
        parameters: &parameters,
        seed: 1,
        tokenizer: &tokenizer,
        token_counts: &counts,
        ngram: &ngram,
        training: &training,
        recipe: &recipe,
    };
    let error = evaluate(&evaluation, &documents(), &mut Progress::hidden(5)).unwrap_err();
    assert!(
        matches!(error, EvalError::Vocabulary { .. }) && error.to_string().contains("use the tokenizer"),
        "{error}"
    );
}
