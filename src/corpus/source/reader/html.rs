//! A reader of HTML that was written by a template: tags and text in order, nothing repaired.

use super::markup::decode_references;

/// What stands next in a page.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A start tag: its name in small letters and what stands after it.
    Open(String, &'a str),
    /// An end tag.
    Close(String),
    /// Text with its references decoded.
    Text(String),
}

/// Elements whose content is not text.
const RAW: [&str; 2] = ["script", "style"];

/// The events of a page. Comments, declarations, scripts and styles are left out; an unfinished tag
/// at the end is dropped.
pub fn events(page: &str) -> Vec<Event<'_>> {
    let mut events = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        push_text(&mut events, &rest[..at]);
        let after = &rest[at + 1..];
        if let Some(comment) = after.strip_prefix("!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        if !after.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')) {
            push_text(&mut events, "<");
            rest = after;
            continue;
        }
        let Some(end) = tag_end(after) else { return events };
        let tag = &after[..end];
        rest = &after[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            events.push(Event::Close(name.trim().to_ascii_lowercase()));
        } else if !tag.starts_with(['!', '?']) {
            let (name, attributes) =
                tag.split_at(tag.find(|c: char| c.is_whitespace() || c == '/').unwrap_or(tag.len()));
            let name = name.to_ascii_lowercase();
            if RAW.contains(&name.as_str()) {
                let close = rest.to_ascii_lowercase().find(&format!("</{name}"));
                rest = close.map_or("", |at| &rest[at..]);
            }
            events.push(Event::Open(name, attributes));
        }
    }
    push_text(&mut events, rest);
    events
}

fn push_text(events: &mut Vec<Event<'_>>, text: &str) {
    if !text.is_empty() {
        events.push(Event::Text(decode_references(text)));
    }
}

/// Where the tag ends; `>` inside quotes belongs to it.
fn tag_end(tag: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if byte == open => quote = None,
            _ => {}
        }
    }
    // A stray quote must not swallow the page.
    tag.find('>')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_text_and_raw_elements_are_told_apart() {
        let page = "<!doctype html><P class=\"a>b\">1 &lt; 2<br/><!-- <p> --><script>if (a < b) {}</script>x < y</p><unfinished";
        let open = |name: &str, attributes| Event::Open(name.to_owned(), attributes);
        let text = |text: &str| Event::Text(text.to_owned());
        let expected = [
            open("p", " class=\"a>b\""),
            text("1 < 2"),
            open("br", "/"),
            open("script", ""),
            Event::Close("script".into()),
            text("x "),
            text("<"),
            text(" y"),
            Event::Close("p".into()),
        ];
        assert_eq!(events(page), expected);
    }
}
