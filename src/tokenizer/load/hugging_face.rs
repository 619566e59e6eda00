//! `tokenizer.json`, of any kind the `tokenizers` crate reads.

use serde_json::Value;
use tokenizers::Tokenizer;

/// Reads the file. What would make a measure random or cut the text (dropout, truncation, padding) is
/// switched off.
pub(super) fn read(bytes: &[u8]) -> Result<Tokenizer, String> {
    let mut json: Value = serde_json::from_slice(bytes).map_err(|e| match e.is_eof() {
        true => format!("it is cut off: {e}"),
        false => e.to_string(),
    })?;
    let Some(model) = json.get_mut("model").and_then(Value::as_object_mut) else {
        return Err("it is JSON without a `model`; give the tokenizer.json, not a configuration".to_owned());
    };
    if model.contains_key("dropout") {
        model.insert("dropout".to_owned(), Value::Null);
    }
    super::merges::check(&json["model"])?;
    let mut tokenizer = Tokenizer::from_bytes(json.to_string()).map_err(|e| e.to_string())?;
    tokenizer.with_truncation(None).map_err(|e| e.to_string())?;
    tokenizer.with_padding(None);
    if tokenizer.get_vocab_size(true) == 0 {
        return Err("its vocabulary is empty".to_owned());
    }
    Ok(tokenizer)
}
