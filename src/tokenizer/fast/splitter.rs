//! Cutting text where a pattern says, by hand for the patterns that are read left to right.

use super::class::{Class, class};
use crate::tokenizer::PreTokenizer;
use fancy_regex::Regex;

/// Cuts text into the pieces of a pre-tokenizer's pattern.
#[derive(Debug, Clone)]
pub(super) enum Splitter {
    /// GPT-2's pattern.
    Gpt2,
    /// The one that keeps marks and joiners in words.
    Marks,
    /// The one that keeps contractions and a stop on them too.
    MarksStop,
    /// Any other pattern.
    Regex(Box<Regex>),
}

impl Splitter {
    /// The splitter of a pattern; `None` when it is no regular expression.
    pub(super) fn new(pattern: &str) -> Option<Self> {
        match PreTokenizer::ALL.into_iter().find(|known| known.pattern() == pattern) {
            Some(PreTokenizer::Gpt2) => Some(Splitter::Gpt2),
            Some(PreTokenizer::Marks) => Some(Splitter::Marks),
            Some(PreTokenizer::MarksStop) => Some(Splitter::MarksStop),
            _ => Regex::new(pattern).ok().map(|regex| Splitter::Regex(Box::new(regex))),
        }
    }

    /// Calls `each` with the pieces of `text`, in order; together they are the text. The message of
    /// the regular expression when it gives up.
    pub(super) fn split<'t>(&self, text: &'t str, each: &mut dyn FnMut(&'t str)) -> Result<(), String> {
        match self {
            Splitter::Gpt2 => by_hand::<false, false>(text, each),
            Splitter::Marks => by_hand::<true, false>(text, each),
            Splitter::MarksStop => by_hand::<true, true>(text, each),
            Splitter::Regex(regex) => return by_regex(regex, text, each),
        }
        Ok(())
    }
}

/// Text between two matches is a piece too.
fn by_regex<'t>(regex: &Regex, text: &'t str, each: &mut dyn FnMut(&'t str)) -> Result<(), String> {
    let mut end = 0;
    for found in regex.find_iter(text) {
        let found = found.map_err(|e| e.to_string())?;
        for piece in [&text[end..found.start()], found.as_str()] {
            if !piece.is_empty() {
                each(piece);
            }
        }
        end = found.end();
    }
    if end < text.len() {
        each(&text[end..]);
    }
    Ok(())
}

fn by_hand<'t, const MARKS: bool, const STOP: bool>(text: &'t str, each: &mut dyn FnMut(&'t str)) {
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(first_piece::<MARKS, STOP>(rest));
        each(piece);
        rest = after;
    }
}

/// Bytes of the first piece: the alternatives of the pattern in their order.
fn first_piece<const MARKS: bool, const STOP: bool>(text: &str) -> usize {
    if !STOP && let Some(length) = contraction(text.as_bytes()) {
        return length;
    }
    let space = usize::from(text.as_bytes()[0] == b' ');
    let kind = text[space..].chars().next().map_or(Class::Space, class);
    let keeps = |c: char| match (kind, class(c)) {
        (Class::Letter, Class::Letter) | (Class::Number, Class::Number) => true,
        (Class::Letter | Class::Number, Class::Mark) => MARKS,
        (Class::Mark | Class::Other, Class::Mark | Class::Other) => true,
        _ => false,
    };
    match kind {
        Class::Space => spaces(text),
        Class::Letter if STOP => {
            let word = space + run(&text[space..], keeps);
            let shortened = word + shortening(&text[word..]);
            shortened + stop(&text[shortened..])
        }
        _ => space + run(&text[space..], keeps),
    }
}

/// Bytes of `['’](?:[sdmt]|ll|ve|re)(?!\p{L})` at the head of `text`, or 0.
fn shortening(text: &str) -> usize {
    let Some(rest) = text.strip_prefix(['\'', '’']) else { return 0 };
    let ends = |after: &&str| !begins(after, &[Class::Letter]);
    let endings = ["s", "d", "m", "t", "ll", "ve", "re"];
    let after = endings.iter().filter_map(|ending| rest.strip_prefix(ending)).find(ends);
    after.map_or(0, |after| text.len() - after.len())
}

/// Bytes of `[।,.](?![\p{L}\p{N}])` at the head of `text`, or 0.
fn stop(text: &str) -> usize {
    let Some(after) = text.strip_prefix(['।', ',', '.']) else { return 0 };
    if begins(after, &[Class::Letter, Class::Number]) { 0 } else { text.len() - after.len() }
}

/// Whether the first character of `text` is of one of the classes.
fn begins(text: &str, classes: &[Class]) -> bool {
    text.chars().next().is_some_and(|c| classes.contains(&class(c)))
}

/// `'(?:[sdmt]|ll|ve|re)`.
fn contraction(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [b'\'', b's' | b'd' | b'm' | b't', ..] => Some(2),
        [b'\'', b'l', b'l', ..] | [b'\'', b'v' | b'r', b'e', ..] => Some(3),
        _ => None,
    }
}

/// `\s+(?!\S)|\s+`: white space before other text leaves its last character to the next piece.
fn spaces(text: &str) -> usize {
    let end = run(text, |c| class(c) == Class::Space);
    let last = text[..end].char_indices().next_back().map_or(0, |(at, _)| at);
    if end == text.len() || last == 0 { end } else { last }
}

/// Bytes of the longest beginning whose characters all are what `keeps` says.
fn run(text: &str, keeps: impl Fn(char) -> bool) -> usize {
    text.char_indices().find(|(_, c)| !keeps(*c)).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(splitter: &Splitter, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        splitter.split(text, &mut |piece| found.push(piece.to_owned())).unwrap();
        found
    }

    #[test]
    fn words_keep_their_marks_or_do_not() {
        let [gpt2, marks, stop] = [Splitter::Gpt2, Splitter::Marks, Splitter::MarksStop];
        assert_eq!(pieces(&marks, "আমি গাই।  x's"), ["আমি", " গাই", "।", " ", " x", "'s"]);
        assert_eq!(pieces(&gpt2, "গাই।"), ["গ", "া", "ই", "।"]);
        assert_eq!(pieces(&stop, "আমি গাই। it's x.y,"), ["আমি", " গাই।", " it's", " x", ".", "y,"]);
        assert_eq!(pieces(&stop, "'s it'sa... ৫।"), ["'", "s", " it", "'", "sa.", "..", " ৫", "।"]);
        assert_eq!(pieces(&marks, " \n"), [" \n"]);
        assert_eq!(pieces(&marks, "\n\nক"), ["\n", "\n", "ক"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 400, ..ProptestConfig::default() })]
        #[test]
        fn by_hand_and_by_regular_expression_are_the_same(
            text in "(\\PC|[ \n\r\t\u{a0}'’sdmtlverক-হা-্\u{9bc}\u{200c}\u{200d}০-৯।,.½☺\u{fe0f}\u{3000}]){0,40}"
        ) {
            for known in [PreTokenizer::Gpt2, PreTokenizer::Marks, PreTokenizer::MarksStop] {
                let by_hand = Splitter::new(known.pattern()).unwrap();
                let regex = Splitter::Regex(Box::new(Regex::new(known.pattern()).unwrap()));
                prop_assert_eq!(pieces(&by_hand, &text), pieces(&regex, &text));
            }
        }
    }
}
