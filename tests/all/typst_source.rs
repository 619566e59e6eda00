//! Reads as much of Typst's grammar as the report uses, to find the digits that a reader would see.

use std::collections::BTreeSet;

/// What a source holds.
#[derive(Debug, Default)]
pub struct Found {
    /// Line and column of each run of typed digits, counted from 1.
    pub digits: Vec<(usize, usize)>,
    /// Arguments of `n(…)`.
    pub keys: BTreeSet<String>,
    /// First arguments of `fig(…)`.
    pub figures: BTreeSet<String>,
    /// Line and column of each semicolon after a call in the text: Typst ends the call with it and prints none.
    pub swallowed: Vec<(usize, usize)>,
    /// First arguments of `tab(…)`.
    pub tables: BTreeSet<String>,
}

/// Names of things that hold a digit.
const NAMES: [&str; 6] = ["GPT-2", "bf16", "f16", "f32", "f64", "H100"];
/// Functions whose texts name files, columns or addresses, and are checked where they are used.
const DOORS: [&str; 5] = ["n", "fig", "tab", "link", "bibliography"];
const UNITS: [&str; 8] = ["pt", "em", "cm", "mm", "in", "fr", "deg", "%"];

/// Finds every typed digit outside of comments, raw text, labels, references, lengths in code and the texts of
/// `DOORS`.
pub fn scan(source: &str) -> Found {
    let mut scanner = Scanner { text: source.chars().collect(), at: 0, found: Found::default() };
    while scanner.at < scanner.text.len() {
        scanner.markup(None);
        scanner.at += 1;
    }
    scanner.found
}

struct Scanner {
    text: Vec<char>,
    at: usize,
    found: Found,
}

impl Scanner {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn starts(&self, what: &str) -> bool {
        what.chars().enumerate().all(|(i, c)| self.text.get(self.at + i) == Some(&c))
    }

    /// Passes over characters as long as they are such, and returns them.
    fn take(&mut self, such: impl Fn(char) -> bool) -> String {
        let rest = &self.text[self.at..];
        let taken: String = rest.iter().copied().take_while(|c| such(*c)).collect();
        self.at += taken.chars().count();
        taken
    }

    /// Passes over all up to and including `end`.
    fn past(&mut self, end: &str) {
        while self.at < self.text.len() && !self.starts(end) {
            self.at += 1;
        }
        self.at = (self.at + end.chars().count()).min(self.text.len());
    }

    fn place(&self) -> (usize, usize) {
        let before = &self.text[..self.at];
        let line = before.iter().filter(|c| **c == '\n').count() + 1;
        let column = before.iter().rev().take_while(|c| **c != '\n').count() + 1;
        (line, column)
    }

    fn digit(&mut self) {
        self.found.digits.push(self.place());
        self.take(char::is_numeric);
    }

    /// A comment or raw text at this place, passed over.
    fn passes(&mut self) -> bool {
        let after_colon = self.at > 0 && self.text[self.at - 1] == ':';
        if self.starts("//") && !after_colon {
            self.take(|c| c != '\n');
        } else if self.starts("/*") {
            self.past("*/");
        } else if self.peek() == Some('`') {
            let ticks = self.take(|c| c == '`');
            if ticks.len() != 2 {
                self.past(&ticks);
            }
        } else {
            return false;
        }
        true
    }

    /// Markup up to `end`, which is left to the caller, or to the end of the text.
    fn markup(&mut self, end: Option<char>) {
        while let Some(c) = self.peek() {
            if end == Some(c) {
                return;
            }
            if self.passes() {
                continue;
            }
            match c {
                '\\' if self.text.get(self.at + 1).is_some_and(|c| !c.is_alphanumeric()) => self.at += 2,
                '$' => self.math(),
                '#' => self.hash(),
                '[' => self.block(),
                '@' => {
                    self.at += 1;
                    self.take(label);
                }
                '<' if self.text.get(self.at + 1).is_some_and(|c| c.is_alphabetic()) => {
                    self.at += 1;
                    self.take(label);
                }
                _ if c.is_alphanumeric() => self.word(),
                _ => self.at += 1,
            }
        }
    }

    /// A word: one of the names, or one whose digits count.
    fn word(&mut self) {
        let start = self.at;
        let word = self.take(|c| c.is_alphanumeric() || c == '-');
        if NAMES.contains(&word.trim_end_matches('-')) {
            return;
        }
        let end = std::mem::replace(&mut self.at, start);
        while self.at < end {
            if self.text[self.at].is_numeric() { self.digit() } else { self.at += 1 }
        }
    }

    /// `[…]`
    fn block(&mut self) {
        self.at += 1;
        self.markup(Some(']'));
        self.at += 1;
    }

    /// `$…$`: a formula may hold a single digit, a result has more.
    fn math(&mut self) {
        self.at += 1;
        while let Some(c) = self.peek().filter(|c| *c != '$') {
            let lone = |c: Option<&char>| !c.is_some_and(|c| c.is_numeric() || *c == '.');
            let single = lone(self.text.get(self.at + 1)) && lone(self.text.get(self.at.wrapping_sub(1)));
            if c.is_numeric() && !single { self.digit() } else { self.at += 1 }
        }
        self.at += 1;
    }

    /// Code after a `#`, to the end of its statement or expression.
    fn hash(&mut self) {
        self.at += 1;
        if self.peek().is_some_and(char::is_numeric) {
            return self.number();
        }
        let name = self.take(identifier);
        match name.as_str() {
            "import" => self.past("\n"),
            "set" | "show" | "let" => self.code("", '\n'),
            "" => match self.peek() {
                Some('[') => self.block(),
                Some('(') => self.arguments("", ')'),
                Some('{') => self.arguments("", '}'),
                Some('"') => self.string(""),
                _ => {}
            },
            _ => {
                self.calls(&name);
                if self.peek() == Some(';') {
                    self.found.swallowed.push(self.place());
                }
            }
        }
    }

    /// What follows a name: arguments, content, fields.
    fn calls(&mut self, name: &str) {
        let mut name = name.to_owned();
        while let Some(c) = self.peek() {
            match c {
                '(' => self.arguments(&name, ')'),
                '[' => self.block(),
                '.' if self.text.get(self.at + 1).is_some_and(|c| c.is_alphabetic()) => {
                    self.at += 1;
                    name = self.take(identifier);
                }
                _ => return,
            }
        }
    }

    /// `(…)` or `{…}` with its ends.
    fn arguments(&mut self, of: &str, end: char) {
        self.at += 1;
        self.code(of, end);
        self.at += 1;
    }

    /// Code up to `end`; `of` is the function whose arguments it is.
    fn code(&mut self, of: &str, end: char) {
        while let Some(c) = self.peek().filter(|c| *c != end) {
            if self.passes() {
                continue;
            }
            match c {
                '$' => self.math(),
                '[' => self.block(),
                '(' => self.arguments(of, ')'),
                '{' => self.arguments(of, '}'),
                '"' => self.string(of),
                _ if c.is_alphabetic() => {
                    let name = self.take(identifier);
                    self.calls(&name);
                }
                _ if c.is_numeric() => self.number(),
                _ => self.at += 1,
            }
        }
    }

    /// A number in code: fine when it is a length.
    fn number(&mut self) {
        let start = self.at;
        self.take(|c| c.is_numeric() || c == '.');
        if !UNITS.iter().any(|unit| self.starts(unit)) {
            let end = std::mem::replace(&mut self.at, start);
            self.digit();
            self.at = end;
        }
    }

    /// `"…"`
    fn string(&mut self, of: &str) {
        let start = self.at + 1;
        self.at = start;
        while self.peek().is_some_and(|c| c != '"') {
            match of {
                _ if self.peek() == Some('\\') => self.at += 2,
                _ if DOORS.contains(&of) => self.at += 1,
                _ if self.text[self.at].is_numeric() => self.digit(),
                _ => self.at += 1,
            }
        }
        let text: String = self.text[start..self.at.min(self.text.len())].iter().collect();
        self.at += 1;
        let before: String = self.text[..start - 1].iter().collect();
        let ids = match of {
            "n" => &mut self.found.keys,
            "fig" => &mut self.found.figures,
            "tab" => &mut self.found.tables,
            _ => return,
        };
        if before.trim_end().ends_with(&format!("{of}(")) {
            ids.insert(text);
        }
    }
}

fn identifier(c: char) -> bool {
    c.is_alphanumeric() || c == '-' || c == '_'
}

fn label(c: char) -> bool {
    identifier(c) || c == ':' || c == '.'
}
