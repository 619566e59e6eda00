//! Merge lists: made from a ranked vocabulary, and checked as they stand in a file.

use std::collections::HashMap;
use std::hash::Hash;

/// Every way to make a token of two others, in the order of the tokens' ranks (the lowest first): what
/// a rule "join the neighbours whose union ranks first" means as a list of merges. `vocabulary` holds
/// each token as its smallest units.
pub(super) fn by_rank<'a, U: Hash + Eq, R: Ord>(vocabulary: &[(&'a [U], R)]) -> Vec<(&'a [U], &'a [U])> {
    let known: HashMap<&[U], ()> = vocabulary.iter().map(|(token, _)| (*token, ())).collect();
    let mut ranked: Vec<&(&[U], R)> = vocabulary.iter().collect();
    ranked.sort_by(|a, b| a.1.cmp(&b.1));
    let mut merges = Vec::new();
    for (token, _) in ranked {
        let halves = (1..token.len()).map(|at| token.split_at(at));
        merges.extend(halves.filter(|(left, right)| known.contains_key(left) && known.contains_key(right)));
    }
    merges
}

/// What is wrong with the merges of a `tokenizer.json`, before the library sees them: parts that are
/// not in the vocabulary, a result that is not, and a merge that gives one of its own parts. Other models have none.
pub(in crate::tokenizer) fn check(model: &serde_json::Value) -> Result<(), String> {
    // The library reads a model that does not say what it is as the first kind that it fits.
    if model["type"] != "BPE" && model.get("merges").is_none() {
        return Ok(());
    }
    let Some(merges) = model["merges"].as_array() else {
        return Err("its BPE model has no list of `merges`".to_owned());
    };
    let Some(vocabulary) = model["vocab"].as_object() else {
        return Err("its BPE model has no `vocab`".to_owned());
    };
    let prefix = model["continuing_subword_prefix"].as_str().unwrap_or_default();
    for (i, merge) in merges.iter().enumerate() {
        let parts = match merge {
            serde_json::Value::String(line) => line.split_once(' '),
            pair => pair[0].as_str().zip(pair[1].as_str()).filter(|_| pair.as_array().is_some_and(|p| p.len() == 2)),
        };
        let Some((left, right)) = parts else {
            return Err(format!("merge {i} is {merge}, expected two tokens"));
        };
        let Some(tail) = right.strip_prefix(prefix) else {
            return Err(format!("merge {i} (`{left}` `{right}`) joins a token without the prefix `{prefix}`"));
        };
        let result = format!("{left}{tail}");
        if let Some(lost) = [left, right, &result].into_iter().find(|token| !vocabulary.contains_key(*token)) {
            return Err(format!("merge {i} (`{left}` `{right}`) needs `{lost}`, which is not in its vocabulary"));
        }
        if result == left || result == right {
            return Err(format!("merge {i} (`{left}` `{right}`) gives `{result}` again: the merges are cyclic"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn merges_come_in_the_order_of_their_results() {
        let words: [(&[u8], u32); 6] = [(b"a", 0), (b"b", 1), (b"c", 2), (b"abc", 3), (b"bc", 4), (b"ab", 5)];
        let found = by_rank(&words);
        let expected: [(&[u8], &[u8]); 4] = [(b"a", b"bc"), (b"ab", b"c"), (b"b", b"c"), (b"a", b"b")];
        assert_eq!(found, expected);
    }

    #[test]
    fn wrong_merges_are_named() {
        let model = |merges: serde_json::Value, prefix: &str| {
            let vocab = json!({"": 0, "a": 1, "b": 2, "ab": 3, "##b": 4, "##": 5});
            check(&json!({"vocab": vocab, "merges": merges, "continuing_subword_prefix": prefix}))
        };
        assert_eq!(model(json!(["a b", ["a", "b"]]), ""), Ok(()));
        assert_eq!(model(json!([["a", "##b"]]), "##"), Ok(()));
        assert!(model(json!([["a", "b"]]), "##").unwrap_err().contains("without the prefix `##`"));
        assert!(model(json!(["b a"]), "").unwrap_err().contains("needs `ba`"));
        assert!(model(json!([["a", ""]]), "").unwrap_err().contains("cyclic"));
        assert!(model(json!([["a", "##"]]), "##").unwrap_err().contains("cyclic"));
        assert!(model(json!([["a"]]), "").unwrap_err().contains("expected two tokens"));
        assert!(model(json!(null), "").unwrap_err().contains("no list of `merges`"));
    }
}
