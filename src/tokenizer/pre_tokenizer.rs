//! Where merges may never cross: the patterns that cut text into pieces before BPE begins.
//!
//! A piece is one match of the pattern, tried from left to right; the alternatives are tried in their
//! order. All patterns are standard `Split` regular expressions, so that a `tokenizer.json` made with
//! them means the same to every program that reads one.

use super::TokenizerError;
use std::str::FromStr;

/// GPT-2's pattern (A. Radford et al. 2019): a word is letters, and marks are punctuation.
const GPT2: &str = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// The pattern of `cl100k_base` (GPT-3.5 and 4): contractions in either case, any one character
/// before a word, numbers of at most three digits, line ends kept with punctuation.
const CL100K: &str = concat!(
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// The pattern of `o200k_base` (GPT-4o): a word may change once from capitals to small letters, marks
/// belong to either kind, and a contraction stays with its word.
const O200K: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'(?:[sdmt]|ll|ve|re))?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'(?:[sdmt]|ll|ve|re))?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// GPT-2's with the combining marks and joiners after a letter or digit kept in its word. Those after a
/// symbol stay with the symbol, as GPT-2 has them: emoji are made of symbols, joiners and U+FE0F.
const MARKS: &str = concat!(
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}[\p{L}\p{M}\x{200C}\x{200D}]*| ?\p{N}[\p{N}\p{M}\x{200C}\x{200D}]*",
    r"| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
);

/// `MARKS` for a large vocabulary: an English contraction, and one full stop, danda or comma that ends the word, stay
/// with it. They are most of the punctuation of running text, so a frequent word saves a token; the price is a second
/// entry for it, which a small vocabulary cannot spare.
const MARKS_STOP: &str = concat!(
    r" ?\p{L}[\p{L}\p{M}\x{200C}\x{200D}]*(?:['’](?:[sdmt]|ll|ve|re)(?!\p{L}))?(?:[।,.](?![\p{L}\p{N}]))?",
    r"| ?\p{N}[\p{N}\p{M}\x{200C}\x{200D}]*| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
);

/// `MARKS` with words joined by single spaces as one piece: where the merges of a second stage may cross.
pub(super) const SUPERWORDS: &str = concat!(
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}[\p{L}\p{M}\x{200C}\x{200D}]*(?: \p{L}[\p{L}\p{M}\x{200C}\x{200D}]*)*",
    r"| ?\p{N}[\p{N}\p{M}\x{200C}\x{200D}]*| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
);

/// A word of `MARKS_STOP`.
macro_rules! stopped {
    () => {
        r"\p{L}[\p{L}\p{M}\x{200C}\x{200D}]*(?:['’](?:[sdmt]|ll|ve|re)(?!\p{L}))?(?:[।,.](?![\p{L}\p{N}]))?"
    };
}

/// `MARKS_STOP` with words joined by single spaces as one piece.
pub(super) const STOP_SUPERWORDS: &str = concat!(
    r" ?",
    stopped!(),
    r"(?: ",
    stopped!(),
    r")*| ?\p{N}[\p{N}\p{M}\x{200C}\x{200D}]*| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
);

/// What continues a grapheme cluster: Unicode's Extend, SpacingMark and ZWJ (UAX 29, table 2).
macro_rules! extend {
    () => {
        r"\p{M}\x{200C}\x{200D}\x{0E33}\x{0EB3}\x{FF9E}\x{FF9F}\x{1F3FB}-\x{1F3FF}\x{E0020}-\x{E007F}"
    };
}

/// What begins a grapheme cluster and takes the next character in: Unicode's Prepend.
macro_rules! prepend {
    () => {
        concat!(
            r"\x{0600}-\x{0605}\x{06DD}\x{070F}\x{0890}\x{0891}\x{08E2}\x{0D4E}\x{110BD}\x{110CD}\x{111C2}\x{111C3}",
            r"\x{113D1}\x{1193F}\x{11941}\x{11A3A}\x{11A84}-\x{11A89}\x{11D46}\x{11F02}"
        )
    };
}

/// `MARKS` built from whole clusters: each character is taken with what precedes and continues it.
/// U+2139 is a letter that emoji sequences may hold, so it goes with the symbols; CR LF is never cut.
const GRAPHEME: &str = concat!(
    r"'(?:[sdmt]|ll|ve|re)(?![",
    extend!(),
    r"])| ?(?:[",
    prepend!(),
    r"]*[\p{L}&&[^\x{2139}",
    prepend!(),
    r"]][",
    extend!(),
    r"]*)+| ?(?:[",
    prepend!(),
    r"]*\p{N}[",
    extend!(),
    r"]*)+| ?(?:[",
    prepend!(),
    r"]*[[^\s\p{L}\p{N}\x{2139}",
    prepend!(),
    r"]\x{2139}][",
    extend!(),
    r"]*)+| ?[",
    prepend!(),
    r"]+(?:[\s&&[^\r\n]][",
    extend!(),
    r"]*)?|\s+(?!\S|(?<=\r)\n)|\s+[",
    extend!(),
    r"]*"
);

/// Where merges may never cross.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreTokenizer {
    /// GPT-2's pattern, the naive choice: cuts at every combining mark.
    Gpt2,
    /// The pattern of `cl100k_base`: cuts at every combining mark, but a mark joins the letters after it.
    Cl100k,
    /// The pattern of `o200k_base`: marks belong to words, joiners do not.
    O200k,
    /// GPT-2's pattern with combining marks and joiners kept in words.
    Marks,
    /// As `Marks`, with contractions and one stop kept on the word.
    MarksStop,
    /// As `Marks`, and no cut falls inside an extended grapheme cluster.
    Grapheme,
}

impl PreTokenizer {
    /// All of them, the naive ones first.
    pub const ALL: [PreTokenizer; 6] = [
        PreTokenizer::Gpt2,
        PreTokenizer::Cl100k,
        PreTokenizer::O200k,
        PreTokenizer::Marks,
        PreTokenizer::MarksStop,
        PreTokenizer::Grapheme,
    ];

    /// Those that the fertility study sets side by side: they differ in where a word ends, not in punctuation.
    pub const STUDIED: [PreTokenizer; 5] =
        [PreTokenizer::Gpt2, PreTokenizer::Cl100k, PreTokenizer::O200k, PreTokenizer::Marks, PreTokenizer::Grapheme];

    /// The pattern that a piece of text matches.
    pub fn pattern(self) -> &'static str {
        match self {
            PreTokenizer::Gpt2 => GPT2,
            PreTokenizer::Cl100k => CL100K,
            PreTokenizer::O200k => O200K,
            PreTokenizer::Marks => MARKS,
            PreTokenizer::MarksStop => MARKS_STOP,
            PreTokenizer::Grapheme => GRAPHEME,
        }
    }

    /// The name in recipes and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            PreTokenizer::Gpt2 => "gpt2",
            PreTokenizer::Cl100k => "cl100k",
            PreTokenizer::O200k => "o200k",
            PreTokenizer::Marks => "marks",
            PreTokenizer::MarksStop => "marks-stop",
            PreTokenizer::Grapheme => "grapheme",
        }
    }
}

impl FromStr for PreTokenizer {
    type Err = TokenizerError;
    fn from_str(name: &str) -> Result<Self, TokenizerError> {
        let known = Self::ALL.into_iter().find(|known| known.name() == name);
        known.ok_or_else(|| TokenizerError::PreTokenizer(name.to_owned()))
    }
}
