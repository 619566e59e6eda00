//! Tests of multiple choice: every published layout, the scores by hand, the stage of a run.

use shikha::eval::choice::{Item, TASKS, load, score};
use shikha::model::{Config, Decoder, Parameters, Window, initialise};
use shikha::progress::Progress;
use shikha::recipe::{Recipe, TokenizerRecipe};
use shikha::tokenizer::Tokenizer;

fn read(task: &str, files: &[(&str, &str)]) -> Result<Vec<Item>, String> {
    let files: Vec<(String, Vec<u8>)> = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).into())).collect();
    load(task, &files)
}

/// The one question of a file: contexts and continuations with `|` between, and the right one.
fn one(task: &str, path: &str, text: &str) -> (String, usize) {
    let items = read(task, &[(path, text)]).unwrap();
    assert_eq!(items.len(), 1, "{task} {path}");
    let choices: Vec<String> =
        items[0].choices.iter().map(|choice| format!("{}|{}", choice.context, choice.continuation)).collect();
    (choices.join("\n\n"), items[0].gold)
}

#[test]
fn the_layouts_of_one_task_give_the_same_prompts() {
    let arc = ("Question: Q: what?\nAnswer:| one\n\nQuestion: Q: what?\nAnswer:| two".to_owned(), 1);
    let official = r#"{"id": "x", "question": {"stem": "Q: what?", "choices": [{"text": "one", "label": "A"}, {"text": "two", "label": "B"}]}, "answerKey": "B"}"#;
    let hub =
        r#"{"question_stem": "Q: what?", "choices": {"text": ["one", "two"], "label": ["1", "2"]}, "answerKey": "2"}"#;
    let copy = r#"[{"instruction": "Please choose the correct answer to the question: Q: what?\n\nAnswer1: one Answer2: two\n\nAnswer format: answer1/answer2", "input": "", "output": "the correct answer is answer2", "answer": "answer2"}]"#;
    for (path, text) in [("test.jsonl", official), ("test.jsonl", hub), ("test.json", copy)] {
        for task in ["arc-easy", "arc-challenge", "openbookqa"] {
            assert_eq!(one(task, path, text), arc, "{task}: {text}");
        }
    }
    let winogrande = ("A dog| barked at it.\n\nA cat| barked at it.".to_owned(), 0);
    let official =
        r#"{"qID": "x", "sentence": "A _ barked at it.", "option1": "dog", "option2": "cat", "answer": "1"}"#;
    let copy = r#"[{"instruction": "Please choose the correct answer to fill in the blank to complete the given sentence: A _ barked at it.\n\nOption1: dog Option2: cat Answer format: option1/option2", "input": "", "output": "", "answer": "option1"}]"#;
    assert_eq!(one("winogrande", "dev.jsonl", official), winogrande);
    assert_eq!(one("winogrande", "test.json", copy), winogrande);
    let copa = ("It rained because| it was wet.\n\nIt rained because| the sky.".to_owned(), 1);
    let xml = r#"<?xml version="1.0"?><copa-corpus version="1.0"><item id="1" asks-for="cause" most-plausible-alternative="2"><p>It rained.</p><a1>It was wet.</a1><a2>The sky.</a2></item></copa-corpus>"#;
    let glue = r#"{"premise": "It rained.", "choice1": "It was wet.", "choice2": "The sky.", "question": "cause", "label": 1, "idx": 0}"#;
    assert_eq!(one("copa", "copa-dev.xml", xml), copa);
    assert_eq!(one("copa", "val.jsonl", glue), copa);
    let hellaswag = ("Roof: A man. he| sits.\n\nRoof: A man. he| flies.".to_owned(), 0);
    let official = r#"{"ind": 3, "activity_label": "Roof", "ctx_a": "A man.", "ctx_b": "he", "ctx": "A man. he", "endings": ["sits.", "[substeps] flies."], "label": 0}"#;
    assert_eq!(one("hellaswag", "hellaswag_val.jsonl", official), hellaswag);
    let four = one("hellaswag", "val.txt", "Roof: A man. he\n0\nsits.\nflies.\na\nb\n").0;
    assert!(four.starts_with(&hellaswag.0), "{four}");
    let boolq = ("P.\nQuestion: is it?\nAnswer:| no\n\nP.\nQuestion: is it?\nAnswer:| yes".to_owned(), 1);
    for answer in ["\"answer\": true", "\"answer\":\"True\"", "\"label\": true"] {
        let text = format!(r#"{{"question": "is it", "title": "T", {answer}, "passage": "P."}}"#);
        assert_eq!(one("boolq", "dev.jsonl", &text), boolq);
    }
    let row = r#"{"goal": "G", "sol1": "a", "sol2": "b"}"#;
    let piqa = read("piqa", &[("valid.jsonl", row), ("valid-labels.lst", "1\n")]).unwrap();
    assert_eq!((piqa[0].choices[1].context.as_str(), piqa[0].gold), ("Question: G\nAnswer:", 1));
    assert_eq!(read("piqa", &[("valid.jsonl", &row.replace("}", ", \"label\": 1}"))]).unwrap(), piqa);
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let row = r#"{"goal": "G", "sol1": "a", "sol2": "b"}"#;
    for (task, files, word) in [
        ("piqa", vec![("valid.jsonl", row)], "question 1 has no label"),
        ("piqa", vec![("valid.jsonl", row), ("l.lst", "0\n1\n")], "1 questions and 2 labels"),
        ("piqa", vec![("valid.jsonl", row), ("l.lst", "2\n")], "an answer that is none of them"),
        ("piqa", vec![("valid.jsonl", "{\"goal\": 3}")], "row 1 has none of the layouts"),
        ("piqa", vec![("valid.jsonl", "{")], "line 1 is no JSON"),
        ("boolq", vec![("dev.jsonl", "")], "holds no question"),
        ("boolq", vec![("dev.jsonl", r#"{"question": "q", "passage": "p", "answer": "maybe"}"#)], "states no answer"),
        ("hellaswag", vec![("v.txt", "a\n0\nb\n")], "no multiple of 6"),
        ("copa", vec![("d.xml", "<item asks-for=\"cause\"><p>x</p></item>")], "item 1 is not complete"),
        ("arithmetic", vec![], "is no task"),
    ] {
        let error = read(task, &files).unwrap_err();
        assert!(error.contains(word), "{task}: {error}");
    }
}

fn tiny() -> (Tokenizer, Config, Parameters<f32>) {
    let recipe =
        TokenizerRecipe { pre_tokenizer: "marks".to_owned(), vocabulary: 300, mix: Default::default(), file: None };
    let tokenizer =
        Tokenizer::train(&["the sky is blue and the sea is deep, no or yes ".repeat(5).as_str()], &recipe).unwrap();
    let mut model = Recipe::load("pocket").unwrap().model;
    (model.layers, model.hidden, model.intermediate, model.heads, model.kv_heads, model.context) =
        (1, 16, 24, 2, 1, 24);
    let config = Config::from_recipe(&model, tokenizer.vocabulary_size(), tokenizer.end_of_text()).unwrap();
    let parameters = initialise(&config, 5);
    (tokenizer, config, parameters)
}

#[test]
fn scores_are_the_log_probabilities_of_the_choice_after_its_context() {
    let (tokenizer, config, parameters) = tiny();
    let long = "the sea is deep and the sky is blue ".repeat(3);
    let rows = [("the sky is", "blue"), ("the sea", "is deep and blue"), (long.as_str(), "no")]
        .map(|(goal, sol)| format!(r#"{{"goal": "{goal}", "sol1": "{sol}", "sol2": "yes or no", "label": 0}}"#));
    let items = read("piqa", &[("valid.jsonl", &rows.join("\n"))]).unwrap();
    let mut decoder = Decoder::new(config.clone(), false).unwrap();
    let scores = score(&mut decoder, &parameters, &tokenizer, &items, &mut Progress::hidden(9)).unwrap();
    for (item, scores) in items.iter().zip(&scores) {
        for (i, choice) in item.choices.iter().enumerate() {
            let context = tokenizer.encode(&choice.context).unwrap();
            let scored = tokenizer.encode(&choice.continuation).unwrap();
            let ids: Vec<u32> = [vec![tokenizer.end_of_text()], context, scored.clone()].concat();
            let ids = &ids[ids.len().saturating_sub(config.max_position_embeddings + 1)..];
            let window = Window { inputs: &ids[..ids.len() - 1], targets: &ids[1..], time: ids.len() - 1 };
            let losses = decoder.token_losses(&parameters, window).unwrap();
            let sum = -losses[losses.len() - scored.len()..].iter().sum::<f64>();
            assert!((scores.sums[i] - sum).abs() < 1e-4, "{choice:?}: {} {sum}", scores.sums[i]);
            let characters = choice.continuation.trim().chars().count() as f64;
            assert!((scores.by_character[i] - sum / characters).abs() < 1e-5);
        }
    }
}

#[test]
fn every_task_of_the_mirror_is_read_whole() {
    use shikha::corpus::source::{Manifest, Store};
    let Some(mirror) = std::env::var_os("SHIKHA_MIRROR").filter(|path| !path.is_empty()) else {
        eprintln!("left out: SHIKHA_MIRROR is not set");
        return;
    };
    let cache = tempfile::tempdir().unwrap();
    let store = Store::new(Some(mirror.into()), cache.path().to_path_buf());
    let manifest = Manifest::load("eval").unwrap();
    let counts = [1838, 10042, 2376, 1172, 500, 1267, 1000, 3270];
    for (task, count) in TASKS.iter().zip(counts) {
        let source = manifest.sources.iter().find(|s| s.id == format!("eval-{task}")).unwrap();
        let files: Vec<(String, Vec<u8>)> =
            source.files.iter().map(|file| (file.path.clone(), store.bytes(source, file).unwrap())).collect();
        let items = load(task, &files).unwrap();
        assert_eq!(items.len(), count, "{task}");
        let choices = items.iter().flat_map(|item| &item.choices);
        let empty = choices.filter(|choice| choice.continuation.trim().is_empty()).count();
        assert!(empty == 0, "{task}: {empty} empty choices");
    }
}

/// A manifest with PIQA of `count` questions as a local source, in `folder`.
fn manifest(folder: &std::path::Path, count: usize) -> String {
    let rows: String = (0..count)
        .map(|i| format!("{{\"goal\": \"do {i}\", \"sol1\": \"one way\", \"sol2\": \"another {i}\"}}\n"))
        .collect();
    let labels: String = (0..count).map(|i| format!("{}\n", i % 2)).collect();
    let file = |(path, text): (&str, &String)| {
        std::fs::write(folder.join(path), text).unwrap();
        let hash = shikha::artifact::hash_bytes(text.as_bytes());
        format!("{{ path = \"{path}\", bytes = {}, sha256 = \"{hash}\" }}", text.len())
    };
    let files = [("valid.jsonl", &rows), ("valid-labels.lst", &labels)].map(file).join(", ");
    let path = folder.join("tasks.toml");
    let text = format!(
        "[[source]]\nid = \"eval-piqa\"\nlanguage = \"en\"\nrole = \"eval\"\ndomain = \"task\"\norigin = \"local:.\"\n\
         licence = \"CC0-1.0\"\nlicence_risk = \"none\"\nattribution = \"nobody\"\nreader = \"task\"\nfiles = [{files}]\n"
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_recipe_with_tasks_has_the_stage_the_figure_and_the_claim() {
    use shikha::artifact::Made;
    use shikha::pipeline::{Options, Pipeline};
    let dir = tempfile::tempdir().unwrap();
    let mut recipe = Recipe::load("pocket").unwrap();
    recipe.tokenizer.vocabulary = 1000;
    (recipe.model.layers, recipe.model.hidden, recipe.model.intermediate) = (1, 32, 64);
    (recipe.train.steps, recipe.train.warmup_steps, recipe.train.checkpoint_every) = (6, 2, 6);
    (recipe.eval.documents, recipe.eval.bootstrap, recipe.eval.items) = (10, 20, 30);
    recipe.eval.tasks = vec!["piqa".to_owned()];
    recipe.eval.task_manifest = manifest(dir.path(), 40);
    let run = |recipe: &Recipe| {
        let options = Options { run_dir: Some(dir.path().join("run")), ..Options::default() };
        let mut pipeline = Pipeline::open(recipe.clone(), &options).unwrap();
        let claims = pipeline.reproduce().unwrap();
        let now = pipeline.log().iter().filter(|(_, made)| *made == Made::Now).map(|(name, _)| name.clone());
        (claims, now.collect::<Vec<String>>())
    };
    let (claims, stages) = run(&recipe);
    assert!(stages.contains(&"choice".to_owned()) && claims.contains("percentage points"), "{claims}");
    let report: shikha::eval::choice::ChoiceReport =
        serde_json::from_slice(&std::fs::read(dir.path().join("run/choice.json")).unwrap()).unwrap();
    let task = &report.tasks[0];
    assert_eq!((task.items, task.available, task.chance, report.dropped_documents), (30, 40, 0.5, None));
    for file in ["figures/choice.svg", "figures/choice.csv", "tables/choice.md", "tables/choice.csv"] {
        let text = std::fs::read_to_string(dir.path().join("run").join(file)).unwrap();
        assert!(text.contains("piqa"), "{file}");
    }
    assert!(run(&recipe).1.is_empty());
    recipe.eval.items = 20;
    assert_eq!(run(&recipe).1, ["choice", "figures"], "the held-out loss does not depend on the tasks");
    recipe.eval.tasks = vec!["copa".to_owned()];
    let options = Options { run_dir: Some(dir.path().join("run")), ..Options::default() };
    let error = Pipeline::open(recipe, &options).unwrap().choice().unwrap_err().to_string();
    assert!(error.contains("no source `eval-copa`"), "{error}");
}
