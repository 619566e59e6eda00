//! What Markdown and HTML readers share: front matter, comments, tags and character references.

/// The text after the YAML front matter, which lies between `---` lines at the very start.
pub fn without_front_matter(text: &str) -> &str {
    let text = text.trim_start_matches('\u{feff}');
    let Some(rest) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) else { return text };
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        end += line.len();
        if line.trim_end() == "---" {
            return &rest[end..];
        }
    }
    text
}

/// The text without what stands between `<!--` and `-->`; an open comment reaches to the end.
pub fn without_comments(text: &str) -> String {
    without_between(text, "<!--", "-->")
}

/// The text without what stands between two marks, marks included.
pub fn without_between(text: &str, open: &str, close: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once(open) {
        kept.push_str(before);
        rest = inside.split_once(close).map_or("", |(_, after)| after);
    }
    kept + rest
}

/// The text with `&amp;`, `&#2453;`, `&#x995;` and the like replaced by what they stand for.
pub fn decode_references(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        match reference(after) {
            Some((c, used)) => {
                decoded.push(c);
                rest = &after[used..];
            }
            None => {
                decoded.push('&');
                rest = after;
            }
        }
    }
    decoded + rest
}

/// The character of a reference and its length up to and with the semicolon.
fn reference(after: &str) -> Option<(char, usize)> {
    let end = after.bytes().take(12).position(|b| b == b';')?;
    let name = &after[..end];
    let c = if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok()?,
            None => number.parse().ok()?,
        };
        char::from_u32(code)?
    } else {
        NAMED.iter().find(|(n, _)| *n == name)?.1
    };
    Some((c, end + 1))
}

/// The named references that occur in the sources.
const NAMED: [(&str, char); 36] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", ' '),
    ("ensp", ' '),
    ("emsp", ' '),
    ("thinsp", ' '),
    ("shy", '\u{ad}'),
    ("zwnj", '\u{200c}'),
    ("zwj", '\u{200d}'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("sbquo", '‚'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("bdquo", '„'),
    ("ndash", '–'),
    ("mdash", '—'),
    ("hellip", '…'),
    ("bull", '•'),
    ("middot", '·'),
    ("sect", '§'),
    ("deg", '°'),
    ("times", '×'),
    ("frac12", '½'),
    ("frac14", '¼'),
    ("pound", '£'),
    ("acute", '´'),
    ("frac34", '¾'),
    ("copy", '©'),
    ("spades", '♠'),
    ("Acirc", 'Â'),
    ("Oslash", 'Ø'),
    ("oelig", 'œ'),
];

/// The text with every run of white space, line breaks included, made one space.
pub fn collapse(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text with the full stop `।` where U+09F7, a currency sign that looks alike, was typed for it.
pub fn full_stops(text: &str) -> String {
    text.replace('\u{9f7}', "।")
}

/// Whether a text has more Bangla than Latin letters.
pub fn is_mostly_bangla(text: &str) -> bool {
    let (bangla, latin) = bangla_and_latin(text);
    bangla > latin
}

/// Numbers of code points of the Bangla block and of ASCII letters.
pub fn bangla_and_latin(text: &str) -> (usize, usize) {
    let bangla = text.chars().filter(|c| matches!(c, '\u{980}'..='\u{9ff}')).count();
    (bangla, text.chars().filter(char::is_ascii_alphabetic).count())
}

/// The text without tags: `<` and a letter or slash, up to `>`.
pub fn without_tags(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        kept.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let is_tag = after.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '>');
        match after.find('>') {
            Some(end) if is_tag => rest = &after[end + 1..],
            _ if is_tag => return kept,
            _ => {
                kept.push('<');
                rest = after;
            }
        }
    }
    kept + rest
}

/// `_word_` marks italics; an underscore inside a word stays.
pub fn without_italics(line: &str) -> String {
    let characters: Vec<char> = line.chars().collect();
    let is_letter = |at: Option<usize>| at.and_then(|at| characters.get(at)).is_some_and(|c| c.is_alphanumeric());
    let kept = characters
        .iter()
        .enumerate()
        .filter(|&(at, &c)| c != '_' || (is_letter(at.checked_sub(1)) && is_letter(Some(at + 1))));
    kept.map(|(_, c)| c).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_decoded_and_broken_ones_stay() {
        assert_eq!(decode_references("&#2453;&#x995; &amp;amp; &nbsp;&lsquo;"), "কক &amp;  ‘");
        for broken in ["&", "a & b", "&;", "&#;", "&#x110000;", "&#xD800;", "&nosuch;", "&ক;", "&amp"] {
            assert_eq!(decode_references(broken), broken);
        }
    }

    #[test]
    fn front_matter_and_comments_go() {
        assert_eq!(without_front_matter("---\na: 1\n---\nx\n---\n"), "x\n---\n");
        assert_eq!(without_front_matter("---\nnever closed"), "---\nnever closed");
        assert_eq!(without_comments("a<!-- b\n-->c<!-- d"), "ac");
    }
}
