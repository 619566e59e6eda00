//! Acts of the laws of Bangladesh, as the pages of a template.

use super::html::{Event, events};
use super::markup::{collapse, full_stops};
use super::paragraphs::cut;

/// Elements whose content is no part of the act.
const IGNORED: [&str; 8] = ["script", "style", "nav", "header", "button", "form", "sup", "title"];
/// Stands for the number of a footnote while the marks are taken out.
const FOOTNOTE: char = '\u{1}';
/// Elements that end the line before and after them.
const BLOCKS: [&str; 16] =
    ["div", "p", "li", "ul", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "tr", "td", "section", "table"];

/// The act of a page, cut into documents.
///
/// # Errors
/// A message when the page has no act.
pub fn documents(page: &str) -> Result<Vec<String>, String> {
    let act = act(page).ok_or("no section of class `bg-act-section`, where an act starts")?;
    let mut act_text = String::new();
    let mut ignored: Option<(String, usize)> = None;
    for event in events(act) {
        if let Some((name, depth)) = &mut ignored {
            match &event {
                Event::Open(open, _) if open == name => *depth += 1,
                Event::Close(close) if close == name => *depth -= 1,
                _ => {}
            }
            if *depth == 0 {
                ignored = None;
            }
            continue;
        }
        match event {
            Event::Text(text) => act_text.push_str(&text.replace('\n', " ")),
            Event::Open(name, attributes) if is_ignored(&name, attributes) => {
                act_text.extend((name == "sup").then_some(FOOTNOTE));
                ignored = Some((name, 1));
            }
            Event::Open(name, _) | Event::Close(name) if BLOCKS.contains(&name.as_str()) => act_text.push('\n'),
            Event::Open(..) | Event::Close(_) => {}
        }
    }
    let paragraphs: Vec<String> = without_footnote_marks(&act_text).lines().filter_map(paragraph).collect();
    Ok(cut(&paragraphs))
}

/// Elements without content have no end tag to wait for.
fn is_ignored(name: &str, attributes: &str) -> bool {
    let is_void = ["img", "input", "br", "hr", "link", "meta"].contains(&name);
    !is_void && (IGNORED.contains(&name) || attributes.contains("no-print"))
}

/// The part of the page from the act's title to its footnotes.
fn act(page: &str) -> Option<&str> {
    let start = page.find("bg-act-section")?;
    let start = page[..start].rfind('<')?;
    let act = &page[start..];
    let end = act.find("footnoteListAll").or_else(|| act.find("<footer"))?;
    Some(&act[..act[..end].rfind('<').unwrap_or(end)])
}

/// A line of the act in its final form; `None` when there is nothing to read in it.
fn paragraph(line: &str) -> Option<String> {
    let text = collapse(&full_stops(line));
    // Text converted from an 8-bit font has this fraction where a dash was.
    let text = text.strip_suffix('¾').map_or(text.clone(), |before| format!("{before}—"));
    text.chars().any(char::is_alphanumeric).then_some(text)
}

/// Amended words stand in brackets behind the number of a footnote: `¹[words]` becomes `words`,
/// `[* * *]` goes, and so does a closing bracket that nothing opened.
fn without_footnote_marks(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut is_mark = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['[', ']', FOOTNOTE, '♣', '♦', '♠']) {
        kept.push_str(&rest[..at]);
        let found = rest[at..].chars().next().unwrap_or(FOOTNOTE);
        rest = &rest[at + found.len_utf8()..];
        match found {
            '[' => {
                let stars = rest.find(|c: char| !matches!(c, '*' | ' ')).unwrap_or(rest.len());
                if stars > 0 && rest[stars..].starts_with(']') {
                    rest = &rest[stars + 1..];
                    continue;
                }
                let digits = kept.trim_end_matches(|c: char| c.is_numeric()).len();
                let behind_footnote = kept.ends_with(FOOTNOTE);
                is_mark.push(behind_footnote || digits < kept.len());
                if !behind_footnote {
                    kept.truncate(digits);
                }
                kept.extend((is_mark.last() == Some(&false)).then_some('['));
            }
            ']' => kept.extend((is_mark.pop() == Some(false)).then_some(']')),
            FOOTNOTE => kept.push(FOOTNOTE),
            _ => {}
        }
    }
    kept.push_str(rest);
    kept.replace(FOOTNOTE, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_is_its_titles_and_sections() {
        let page = "<nav>menu</nav><section class=\"bg-act-section x\"><h3>\n আইন,\n ২০১৬</h3><p class='no-print'>back</p></section>\
                    <button>print</button><div class=\"txt-head\">সংজ্ঞা</div><div class=\"txt-details\">১৷ <sup>1</sup>[এই \
                    <a href='/x'>আইন</a>ে] 2[যাহা] [* **] [ক]<div class=\"clbr\">&nbsp;</div>(২) শেষ৷</div>\
                    <div class=\"footnoteListAll\">note</div><footer>f</footer>";
        assert_eq!(documents(page).unwrap(), ["আইন, ২০১৬\n\nসংজ্ঞা\n\n১। এই আইনে যাহা [ক]\n\n(২) শেষ।"]);
        assert!(documents("<p>another page</p>").is_err());
    }
}
