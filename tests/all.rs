//! Tests of the program as its users meet it, in one binary so that it links once.

// Names the op that cut a graph, for the tests of the arbiter.
#[global_allocator]
static ALLOCATOR: shikha::arbiter::candle::Tracer = shikha::arbiter::candle::Tracer;

#[path = "all/arbiter.rs"]
mod arbiter;
#[path = "all/arbiter_candle.rs"]
mod arbiter_candle;
#[path = "all/arbiter_faults.rs"]
mod arbiter_faults;
#[path = "all/arbiter_tensors.rs"]
mod arbiter_tensors;
#[path = "all/bench.rs"]
mod bench;
#[path = "all/choice.rs"]
mod choice;
#[path = "all/command.rs"]
mod command;
#[path = "../benches/composed/mod.rs"]
mod composed;
#[path = "all/corpus.rs"]
mod corpus;
#[path = "all/corpus_download.rs"]
mod corpus_download;
#[path = "all/corpus_source.rs"]
mod corpus_source;
#[path = "all/corpus_stream.rs"]
mod corpus_stream;
#[path = "all/corpus_stream_process.rs"]
mod corpus_stream_process;
#[path = "all/cuda.rs"]
mod cuda;
#[path = "all/defects.rs"]
mod defects;
#[path = "all/eval.rs"]
mod eval;
#[path = "all/export.rs"]
mod export;
#[path = "all/kept.rs"]
mod kept;
#[path = "all/model.rs"]
mod model;
#[path = "all/notebooks.rs"]
mod notebooks;
#[path = "all/ops.rs"]
mod ops;
#[path = "all/ops_arbiter.rs"]
mod ops_arbiter;
#[path = "all/ops_candle.rs"]
mod ops_candle;
#[path = "all/ops_lengths.rs"]
mod ops_lengths;
#[path = "all/ops_optimizer.rs"]
mod ops_optimizer;
#[path = "all/ops_refusals.rs"]
mod ops_refusals;
#[path = "all/paper.rs"]
mod paper;
#[path = "all/parquet_file.rs"]
mod parquet_file;
#[path = "all/pipeline.rs"]
mod pipeline;
#[path = "all/record.rs"]
mod record;
#[path = "all/report.rs"]
mod report;
#[path = "all/robust.rs"]
mod robust;
#[path = "all/robust_faults.rs"]
mod robust_faults;
#[path = "all/robust_fuzz.rs"]
mod robust_fuzz;
#[path = "all/robust_kill.rs"]
mod robust_kill;
#[path = "all/robust_load.rs"]
mod robust_load;
#[path = "all/robust_numbers.rs"]
mod robust_numbers;
#[path = "all/robust_parsers.rs"]
mod robust_parsers;
#[path = "all/robust_unsafe.rs"]
mod robust_unsafe;
#[path = "all/study.rs"]
mod study;
#[path = "all/tokenizer.rs"]
mod tokenizer;
#[path = "all/tokenizer_fast.rs"]
mod tokenizer_fast;
#[path = "all/tokenizer_fertility.rs"]
mod tokenizer_fertility;
#[path = "all/tokenizer_load.rs"]
mod tokenizer_load;
#[path = "all/tokenizer_pattern.rs"]
mod tokenizer_pattern;
#[path = "all/tokenizer_release.rs"]
mod tokenizer_release;
#[path = "all/train.rs"]
mod train;
#[path = "all/typst_source.rs"]
mod typst_source;
