//! What went wrong, one line each: `file:line:column: message`.

use crate::world::{self, Repository};
use std::collections::BTreeMap;
use typst::diag::SourceDiagnostic;
use typst::layout::{Frame, FrameItem};
use typst::syntax::DiagSpan;
use typst::{World, WorldExt};
use typst_layout::PagedDocument;

/// One line a diagnostic, with the calls that led to it and typst's hints.
pub fn lines(repository: &Repository, diagnostics: &[SourceDiagnostic]) -> Vec<String> {
    diagnostics.iter().map(|diagnostic| line(repository, diagnostic)).collect()
}

fn line(repository: &Repository, diagnostic: &SourceDiagnostic) -> String {
    let mut text = diagnostic.message.to_string().replace('\n', " ");
    for point in &diagnostic.trace {
        text += &format!(", {}", point.v);
        if let Some(place) = place(repository, point.span.into()) {
            text += &format!(" at {place}");
        }
    }
    for hint in &diagnostic.hints {
        text += &format!("; hint: {}", hint.v.to_string().replace('\n', " "));
    }
    match place(repository, diagnostic.span) {
        Some(place) => format!("{place}: {text}"),
        None => text,
    }
}

/// `file:line:column`, both counted from 1.
fn place(repository: &Repository, span: DiagSpan) -> Option<String> {
    let id = span.id()?;
    let name = world::name(id).ok()?;
    let at = repository.range(span).zip(repository.source(id).ok()).and_then(|(range, source)| {
        let (line, column) = source.lines().byte_to_line_column(range.start)?;
        Some(format!("{name}:{}:{}", line + 1, column + 1))
    });
    Some(at.unwrap_or(name.to_owned()))
}

/// What would show as an empty box: letters that no font has, in the text and in the figures.
pub fn boxes(repository: &Repository, document: &PagedDocument) -> Vec<String> {
    let mut found = BTreeMap::new();
    for (page, at) in document.pages().iter().zip(1..) {
        without_glyph(&page.frame, at, &mut found);
    }
    let text = found.into_iter().map(|(text, page)| format!("page {page}: no font has `{text}`"));
    let figures = repository.figures_without_a_font();
    text.chain(figures.into_iter().map(|(name, missing)| format!("{name}: no font has `{missing}`"))).collect()
}

fn without_glyph(frame: &Frame, page: usize, found: &mut BTreeMap<String, usize>) {
    for (_, item) in frame.items() {
        match item {
            FrameItem::Group(group) => without_glyph(&group.frame, page, found),
            FrameItem::Text(text) => {
                let missing = text.glyphs.iter().filter(|glyph| glyph.id == 0);
                missing.for_each(|glyph| _ = found.entry(text.text[glyph.range()].to_owned()).or_insert(page));
            }
            _ => {}
        }
    }
}
