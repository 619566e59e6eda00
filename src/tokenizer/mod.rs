//! Byte-level BPE with a choice of pre-tokenizer, and what it does to a text.
//!
//! The pre-tokenizer decides where merges may never cross. GPT-2's pattern takes a word to be letters
//! only; Bangla vowel signs and the hasanta are combining marks, so it cuts nearly every syllable
//! apart before BPE has begun. `marks` keeps the marks with their letters.

mod alphabet;
mod bpe;
mod encoder;
mod error;
mod fast;
pub mod fertility;
pub mod load;
mod pre_tokenizer;
mod stream;
pub mod study;
mod train;

pub use bpe::{END_OF_TEXT, Tokenizer};
pub use encoder::{Encoded, Encoder};
pub use error::TokenizerError;
pub use pre_tokenizer::PreTokenizer;
pub use stream::TextStream;
pub use train::Training;
