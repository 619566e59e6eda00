//! Generated parts of a hand-written document: what lies between `<!-- name -->` and `<!-- /name -->`.

use super::ReportError;
use std::collections::BTreeMap;

/// `document` with the content of every block replaced.
///
/// # Errors
/// [`ReportError::Table`] naming a block that the document has not, or not once.
pub fn fill(document: &str, blocks: &BTreeMap<&str, String>) -> Result<String, ReportError> {
    let mut filled = document.to_owned();
    for (name, content) in blocks {
        let marks = [format!("<!-- {name} -->\n"), format!("<!-- /{name} -->")];
        let failed = |message: &str| ReportError::Table { name: (*name).to_owned(), message: message.to_owned() };
        let [start, end] = marks.each_ref().map(|mark| filled.find(mark));
        let (Some(start), Some(end)) = (start, end) else {
            return Err(failed(&format!("the document has no block between `{}` and `{}`", marks[0].trim(), marks[1])));
        };
        let start = start + marks[0].len();
        if end < start || marks.iter().any(|mark| filled.matches(mark.as_str()).count() != 1) {
            return Err(failed("the document has its marks twice or the wrong way round"));
        }
        filled.replace_range(start..end, content);
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_between_the_marks_changes_and_again_to_the_same() {
        let document = "a\n<!-- x -->\nold\n<!-- /x -->\nb <!-- y -->\n<!-- /y -->";
        let blocks = BTreeMap::from([("x", "1\n2\n".to_owned()), ("y", "3\n".to_owned())]);
        let filled = fill(document, &blocks).unwrap();
        assert_eq!(filled, "a\n<!-- x -->\n1\n2\n<!-- /x -->\nb <!-- y -->\n3\n<!-- /y -->");
        assert_eq!(fill(&filled, &blocks).unwrap(), filled);
    }

    #[test]
    fn a_block_that_is_missing_or_there_twice_is_named() {
        let blocks = BTreeMap::from([("x", String::new())]);
        for document in ["", "<!-- x -->\n", "<!-- /x --><!-- x -->\n", "<!-- x -->\n<!-- x -->\n<!-- /x -->"] {
            let error = fill(document, &blocks).unwrap_err().to_string();
            assert!(error.contains("`x`"), "{error}");
        }
    }
}
