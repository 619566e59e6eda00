//! Tests of export: another program's Llama gives the same logits, and nothing is lost on the way back.

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::llama::{Cache, Llama, LlamaConfig};
use shikha::model::{Config, Parameters, Session, WeightType, initialise};
use shikha::pipeline::{Exported, Options, Pipeline};
use shikha::recipe::{Recipe, TokenizerRecipe};
use shikha::report::Card;
use shikha::tokenizer::Tokenizer;
use std::collections::BTreeMap;
use std::path::Path;

/// A model of random weights with grouped heads, tied or not.
fn model(tied: bool) -> Exported {
    let recipe =
        TokenizerRecipe { pre_tokenizer: "marks".to_owned(), vocabulary: 290, mix: Default::default(), file: None };
    let tokenizer = Tokenizer::train(&[LINE.repeat(4).as_str()], &recipe).unwrap();
    let mut shape = Recipe::load("pocket").unwrap().model;
    (shape.layers, shape.hidden, shape.intermediate, shape.heads, shape.kv_heads) = (3, 48, 80, 6, 2);
    (shape.context, shape.tie_embeddings) = (40, tied);
    let config = Config::from_recipe(&shape, tokenizer.vocabulary_size(), tokenizer.end_of_text()).unwrap();
    let mut parameters: Parameters<f32> = initialise(&config, 3);
    // Gains start at 1 and outputs small: larger and uneven numbers let no mistake pass.
    parameters.flat.iter_mut().enumerate().for_each(|(i, x)| *x = *x * 3.0 + 0.01 * (i % 7) as f32);
    Exported { config, parameters, tokenizer, card: Card { name: "toy".to_owned(), ..Card::default() } }
}

/// The content of every file of a directory by name.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries.map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap())).collect()
}

/// The largest difference between our logits and those of candle-transformers after each of `lengths` of `ids`,
/// and the largest logit. `directory` is an exported model.
fn gap(directory: &Path, ids: &[u32], lengths: impl Iterator<Item = usize>) -> (f32, f32) {
    let ours = Exported::load(directory).unwrap();
    let text = std::fs::read(directory.join("config.json")).unwrap();
    let config = serde_json::from_slice::<LlamaConfig>(&text).unwrap().into_config(false);
    let weights = std::fs::read(directory.join("model.safetensors")).unwrap();
    let weights = VarBuilder::from_buffered_safetensors(weights, DType::F32, &Device::Cpu).unwrap();
    let theirs = Llama::load(weights, &config).unwrap();
    let (mut worst, mut size) = (0.0f32, 0.0f32);
    for length in lengths {
        let own = Session::new(&ours.config, &ours.parameters).extend(&ids[..length]).unwrap();
        let mut cache = Cache::new(false, DType::F32, &config, &Device::Cpu).unwrap();
        let input = Tensor::new(&ids[..length], &Device::Cpu).unwrap().unsqueeze(0).unwrap();
        let other = theirs.forward(&input, 0, &mut cache).unwrap().squeeze(0).unwrap().to_vec1::<f32>().unwrap();
        worst = own.iter().zip(&other).map(|(a, b)| (a - b).abs()).fold(worst, f32::max);
        size = own.iter().fold(size, |most, x| most.max(x.abs()));
    }
    (worst, size)
}

const LINE: &str = "আমার সোনার বাংলা, the sky is blue. ";

#[test]
fn candle_transformers_gives_the_same_logits() {
    for tied in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let ours = model(tied);
        ours.save(dir.path(), WeightType::F32).unwrap();
        let mut ids = vec![ours.tokenizer.end_of_text()];
        ids.extend(ours.tokenizer.encode(&LINE.repeat(4)).unwrap());
        ids.truncate(40);
        assert!(ids.len() > 12, "{}", ids.len());
        let (gap, size) = gap(dir.path(), &ids, 1..=ids.len());
        assert!(gap < 1e-4 && size > 0.5, "tied {tied}: {gap} of {size}");
    }
}

#[test]
fn candle_transformers_loads_the_reference_model() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("checkpoints/reference/model");
    let ours = Exported::load(&directory).unwrap();
    let mut ids = vec![ours.tokenizer.end_of_text()];
    ids.extend(ours.tokenizer.encode(&LINE.repeat(8)).unwrap());
    let (gap, size) = gap(&directory, &ids, [1, 2, 9, ids.len()].into_iter());
    assert!(gap < 1e-4 && size > 1.0, "{gap} of {size}");
}

#[test]
fn export_import_export_is_byte_identical() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let ours = model(true);
    for (kind, name) in [(WeightType::F32, "f32"), (WeightType::Bf16, "bf16")] {
        let [first, imported, second] = ["first", "imported", "second"].map(|part| path(&format!("{part}-{name}")));
        ours.save(&first, kind).unwrap();
        Exported::load(&first).unwrap().save(&imported, WeightType::F32).unwrap();
        Exported::load(&imported).unwrap().save(&second, kind).unwrap();
        let (first, second) = (files(&first), files(&second));
        let names: Vec<&str> = first.keys().map(String::as_str).collect();
        let expected = [
            "README.md",
            "config.json",
            "generation_config.json",
            "model.safetensors",
            "shikha.json",
            "special_tokens_map.json",
            "tokenizer.json",
            "tokenizer_config.json",
        ];
        assert_eq!(names, expected);
        assert!(first == second, "{name}");
    }
    let size = |name: &str| std::fs::metadata(path(name).join("model.safetensors")).unwrap().len();
    assert!(size("first-bf16") < size("first-f32") * 6 / 10);
    let config = std::fs::read_to_string(path("first-bf16").join("config.json")).unwrap();
    assert!(config.contains("\"torch_dtype\": \"bfloat16\"") && config.contains("LlamaForCausalLM"), "{config}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = || Exported::load(dir.path()).err().unwrap().to_string();
    assert!(refused().contains("neither a run"), "{}", refused());
    model(true).save(dir.path(), WeightType::F32).unwrap();
    let path = dir.path().join("config.json");
    let config = std::fs::read_to_string(&path).unwrap();
    for (from, to, word) in [
        ("\"attention_bias\": false", "\"attention_bias\": true", "has biases"),
        ("\"rope_scaling\": null", "\"rope_scaling\": {\"factor\": 2.0}", "rotary"),
        ("\"hidden_size\": 48", "\"hidden_size\": 60", "has shape"),
        ("\"model_type\": \"llama\"", "\"model_type\": \"gpt2\"", "is not a Llama"),
        ("\"num_hidden_layers\": 3", "\"num_hidden_layers\": 4", "is missing"),
        ("\"num_hidden_layers\": 3", "\"num_hidden_layers\": 2", "is not part of the model"),
    ] {
        assert!(config.contains(from), "{config}");
        std::fs::write(&path, config.replace(from, to)).unwrap();
        assert!(refused().contains(word), "{}", refused());
    }
    std::fs::write(&path, &config).unwrap();
    std::fs::write(dir.path().join("recipe.toml"), "").unwrap();
    let error = model(true).save(dir.path(), WeightType::F32).unwrap_err().to_string();
    assert!(error.contains("--out"), "{error}");
}

#[test]
fn a_run_is_exported_with_its_texts_and_licences() {
    let dir = tempfile::tempdir().unwrap();
    let mut recipe = Recipe::load("pocket").unwrap();
    recipe.tokenizer.vocabulary = 1000;
    (recipe.model.layers, recipe.model.hidden, recipe.model.intermediate) = (1, 32, 64);
    (recipe.train.steps, recipe.train.warmup_steps, recipe.train.checkpoint_every) = (4, 2, 4);
    (recipe.eval.documents, recipe.eval.bootstrap) = (10, 20);
    let (run, out) = (dir.path().join("run"), dir.path().join("out"));
    let options = Options { run_dir: Some(run.clone()), ..Options::default() };
    Pipeline::open(recipe, &options).unwrap().evaluate().unwrap();
    let exported = Exported::load(&run).unwrap();
    exported.save(&out, WeightType::F32).unwrap();
    let card = std::fs::read_to_string(out.join("README.md")).unwrap();
    for part in
        ["# pocket", "- bn", "energy: not measured", "in 4 steps", "| bn | 10 |", "lingua-bengali-language-model"]
    {
        assert!(card.contains(part), "{part}: {card}");
    }
    let read = Exported::load(&out).unwrap();
    assert_eq!((read.card, read.parameters.flat), (exported.card, exported.parameters.flat));
}
