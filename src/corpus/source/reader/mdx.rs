//! Documentation in MDX: Markdown with components, of which the translated prose is kept.

use super::markup::{
    collapse, decode_references, is_mostly_bangla, without_between, without_comments, without_front_matter,
    without_italics, without_tags,
};
use super::paragraphs::Sections;

/// Stand for the brackets of code while those of links are taken out.
const OPEN: char = '\u{1}';
const CLOSE: char = '\u{2}';
/// Components whose whole content is code or drawing.
const DROPPED: [&str; 6] =
    ["Sandpack", "DiagramGroup", "Diagram", "TerminalBlock", "ConsoleBlock", "ConsoleBlockMulti"];

/// The paragraphs with more Bangla than Latin letters, cut into documents at headings of level 1 and 2.
pub fn documents(text: &str) -> Vec<String> {
    let mut text = without_comments(without_front_matter(text));
    for name in DROPPED {
        text = without_component(&text, name);
    }
    let text = without_between(&text, "{/*", "*/}");
    let mut sections = Sections::default();
    for paragraph in without_fences(&text).split("\n\n") {
        add(&mut sections, paragraph);
    }
    sections.documents()
}

fn add(sections: &mut Sections, paragraph: &str) {
    let lines = paragraph.lines().map(plain_line).filter(|line| !line.is_empty());
    let mut kept = String::new();
    for line in lines.filter(|line| is_mostly_bangla(line)) {
        if let Some(heading) = line.strip_prefix("# ").or_else(|| line.strip_prefix("## ")) {
            sections.heading(heading.trim());
            continue;
        }
        if !kept.is_empty() {
            kept.push('\n');
        }
        kept.push_str(line.trim_start_matches('#').trim_start());
    }
    sections.paragraph(&kept);
}

/// The text without `<name …>` … `</name>`; a component inside one of the same name ends with it.
fn without_component(text: &str, name: &str) -> String {
    let (open, close) = (format!("<{name}"), format!("</{name}>"));
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once(&open) {
        kept.push_str(before);
        if inside.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            kept.push_str(&open); // Another component whose name starts alike.
            rest = inside;
        } else {
            rest = inside.split_once(&close).map_or("", |(_, after)| after);
        }
    }
    kept + rest
}

/// The lines that are not inside a fence of three backticks, which may be indented.
fn without_fences(text: &str) -> String {
    let mut inside = false;
    let mut kept = String::with_capacity(text.len());
    for line in text.lines() {
        if line.trim_start().trim_start_matches('>').trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            kept.push_str(line.trim_end());
            kept.push('\n');
        }
    }
    kept
}

/// A line as it is read: without tags, link targets, emphasis and table bars.
fn plain_line(line: &str) -> String {
    let line = line.trim_start_matches(['>', ' ']);
    let line = line.strip_prefix("* ").or_else(|| line.strip_prefix("- ")).unwrap_or(line);
    let mut plain = String::with_capacity(line.len());
    for (at, piece) in line.split('`').enumerate() {
        // Every second piece is code, whose signs are its own.
        if at % 2 == 1 {
            plain.extend(
                piece.chars().map(|c| if c == '[' { OPEN } else { c }).map(|c| if c == ']' { CLOSE } else { c }),
            );
        } else {
            plain.push_str(&decode_references(&without_tags(piece).replace(['*', '|'], "")));
        }
    }
    collapse(&without_links(&without_italics(&plain)).replace(OPEN, "[").replace(CLOSE, "]"))
}

/// `[text](target)` and `![text](target)` become `text`.
fn without_links(line: &str) -> String {
    let mut kept = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("](") {
        kept.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    (kept + rest).replace("![", "").replace(['[', ']'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn translated_prose_is_kept_and_code_goes() {
        let text = "---\ntitle: x\n---\n<Intro>\n\nReact একটা *লাইব্রেরি* যার [কাজ ও `দায়`](/learn) <b>`<App>`</b> _ও_ `a_b[0]` রেন্ডার করা।\n\n</Intro>\n\n\
                    ## কম্পোনেন্ট {/*anchor*/}\n\n* **প্রথম** ধাপ\n* second step only\n\n<Sandpack>\n\n```js\nকোড\n```\n\n</Sandpack>\n\n\
                    <DiagramGroup>\n<Diagram>ছবি</Diagram>\nছবি\n</DiagramGroup>\n\n  ```js\nকোড\n  ```\nশেষ কথা।\n";
        assert_eq!(
            documents(text),
            ["React একটা লাইব্রেরি যার কাজ ও দায় <App> ও a_b[0] রেন্ডার করা।", "কম্পোনেন্ট\n\nপ্রথম ধাপ\n\nশেষ কথা।"]
        );
    }
}
