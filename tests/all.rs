//! Tests of the program as its users meet it, in one binary so that it links once.

#[path = "all/arbiter.rs"]
mod arbiter;
#[path = "all/command.rs"]
mod command;
#[path = "all/corpus.rs"]
mod corpus;
#[path = "all/corpus_download.rs"]
mod corpus_download;
#[path = "all/corpus_source.rs"]
mod corpus_source;
#[path = "all/defects.rs"]
mod defects;
#[path = "all/eval.rs"]
mod eval;
#[path = "all/model.rs"]
mod model;
#[path = "all/ops.rs"]
mod ops;
#[path = "all/pipeline.rs"]
mod pipeline;
#[path = "all/tokenizer.rs"]
mod tokenizer;
#[path = "all/tokenizer_fertility.rs"]
mod tokenizer_fertility;
#[path = "all/tokenizer_load.rs"]
mod tokenizer_load;
#[path = "all/tokenizer_pattern.rs"]
mod tokenizer_pattern;
#[path = "all/train.rs"]
mod train;
