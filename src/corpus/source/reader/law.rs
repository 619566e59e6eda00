//! Acts of the laws of Bangladesh, as the pages of a template.

use super::html::{Event, events};
use super::markup::collapse;
use super::paragraphs::cut;

/// Elements whose content is no part of the act.
const IGNORED: [&str; 8] = ["script", "style", "nav", "header", "button", "form", "sup", "title"];
/// Elements that end the line before and after them.
const BLOCKS: [&str; 16] =
    ["div", "p", "li", "ul", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "tr", "td", "section", "table"];

/// The act of a page, cut into documents.
///
/// # Errors
/// A message when the page has no act.
pub fn documents(page: &str) -> Result<Vec<String>, String> {
    let act = act(page).ok_or("no section of class `bg-act-section`, where an act starts")?;
    let mut paragraphs = Vec::new();
    let mut paragraph = String::new();
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
            Event::Text(text) => paragraph.push_str(&text),
            Event::Open(name, attributes) if is_ignored(&name, attributes) => {
                ignored = Some((name, 1));
            }
            Event::Open(name, _) | Event::Close(name) if BLOCKS.contains(&name.as_str()) => {
                end(&mut paragraphs, &mut paragraph);
            }
            Event::Open(..) | Event::Close(_) => {}
        }
    }
    end(&mut paragraphs, &mut paragraph);
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

fn end(paragraphs: &mut Vec<String>, paragraph: &mut String) {
    let text = collapse(&without_footnote_marks(paragraph)).replace('\u{9f7}', "।");
    if text.chars().any(char::is_alphanumeric) {
        paragraphs.push(text);
    }
    paragraph.clear();
}

/// Amended words stand in brackets with a number before: `1[words]` becomes `words`, `[***]` goes.
fn without_footnote_marks(text: &str) -> String {
    let mut kept: Vec<char> = Vec::with_capacity(text.len());
    let mut is_mark = Vec::new();
    let text = text.replace("[***]", "").replace("[* * *]", "");
    for c in text.chars() {
        match c {
            '[' => {
                let digits = kept.iter().rev().take_while(|c| c.is_numeric()).count();
                is_mark.push(digits > 0);
                kept.truncate(kept.len() - digits);
                kept.extend((digits == 0).then_some('['));
            }
            ']' => kept.extend((!is_mark.pop().unwrap_or(false)).then_some(']')),
            c => kept.push(c),
        }
    }
    kept.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_is_its_titles_and_sections() {
        let page = "<nav>menu</nav><section class=\"bg-act-section x\"><h3>\n আইন,\n ২০১৬</h3><p class='no-print'>back</p></section>\
                    <button>print</button><div class=\"txt-head\">সংজ্ঞা</div><div class=\"txt-details\">১৷ <sup>1</sup>এই \
                    <a href='/x'>আইন</a>ে 2[যাহা] [***] [ক]<div class=\"clbr\">&nbsp;</div>(২) শেষ৷</div>\
                    <div class=\"footnoteListAll\">note</div><footer>f</footer>";
        assert_eq!(documents(page).unwrap(), ["আইন, ২০১৬\n\nসংজ্ঞা\n\n১। এই আইনে যাহা [ক]\n\n(২) শেষ।"]);
        assert!(documents("<p>another page</p>").is_err());
    }
}
