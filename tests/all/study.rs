//! Tests of the stored fertility study: its figures are those of the repository, and it shows what it says.

use shikha::pipeline::{draw_study, load_study};
use shikha::tokenizer::study::{Study, Trained};
use std::path::Path;

const STORED: &str = "checkpoints/fertility";

fn row<'a>(study: &'a Study, pre_tokenizer: &str, text: &str, asked: usize) -> &'a Trained {
    let is = |row: &&Trained| {
        row.model == "BPE" && row.pre_tokenizer == pre_tokenizer && row.text == text && row.asked == asked && row.nfc
    };
    study.trained.iter().find(is).unwrap()
}

#[test]
fn figures_and_tables_are_redrawn_from_the_stored_measurements() {
    let dir = tempfile::tempdir().unwrap();
    let stored = dir.path().join("study");
    std::fs::create_dir(&stored).unwrap();
    for name in ["study.json", "study.hash.json"] {
        std::fs::copy(Path::new(STORED).join(name), stored.join(name)).unwrap();
    }
    let printed = draw_study(&stored, dir.path()).unwrap();
    assert!(printed.contains("tokenizers measured"), "{printed}");
    let same = |a: &Path, b: &Path| assert!(std::fs::read(a).unwrap() == std::fs::read(b).unwrap(), "{}", a.display());
    for id in ["fertility-cause", "fertility-vocabulary"] {
        for kind in ["svg", "csv"] {
            let name = format!("{id}.{kind}");
            same(&Path::new("figures").join(&name), &dir.path().join(&name));
        }
    }
    same(&Path::new(STORED).join("study.md"), &stored.join("study.md"));
    let path = stored.join("study.json");
    let text = std::fs::read_to_string(&path).unwrap().replacen("\"bangla\": ", "\"bangla\": 1", 1);
    std::fs::write(&path, text).unwrap();
    let message = draw_study(&stored, dir.path()).unwrap_err().to_string();
    assert!(message.contains("study.json") && message.contains("changed"), "{message}");
}

#[test]
fn the_study_shows_the_trap_the_cure_and_the_cause() {
    let study = load_study(Path::new(STORED)).unwrap();
    assert!(study.measured() >= 12 && study.cause.languages.len() >= 40);
    let ratio = |pre_tokenizer: &str, text: &str, language: &str| {
        let row = row(&study, pre_tokenizer, text, 32_768);
        let found = row.measured.iter().find(|m| m.texts == "par-ntrex" && m.language == language).unwrap();
        assert_eq!(found.fertility.texts, 1997);
        found.fertility.characters_per_token
    };
    for text in ["all", "balanced", "with news"] {
        let (trap, cure) = (ratio("gpt2", text, "bn"), ratio("marks", text, "bn"));
        assert!(trap.high < 1.5 && cure.low > 2.5 * trap.high, "{text}: {trap:?} {cure:?}");
        let (before, after) = (ratio("gpt2", text, "en"), ratio("marks", text, "en"));
        assert!(after.value < before.value && after.value > 0.9 * before.value, "{text}: {before:?} {after:?}");
    }
    assert!(study.cause.correlation.low > 0.8, "{:?}", study.cause.correlation);
    let without = study.cause.languages.iter().filter(|l| l.marks == 0.0);
    assert!(without.clone().count() > 10 && without.clone().all(|l| l.loss.value.abs() < 0.05));
    let lost = |row: &Trained| row.measured.iter().map(|m| m.fertility.round_trip_failures).sum::<usize>();
    assert!(study.trained.iter().all(|row| lost(row) == 0));
    assert!(study.spellings.iter().filter(|s| s.nfc).all(|s| s.lone_bytes == 0), "{:?}", study.spellings);
}
