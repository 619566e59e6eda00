//! candle-flash-attn has a forward kernel only; without a backward it fails with a clean error.

use crate::defects::{ATTENTION, Check, Entry, Kind, Training};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-flash-attention-cuda",
    title: "candle-flash-attn (CUDA) has no backward pass; it fails loudly",
    kind: Kind::MissingGradient,
    report: None,
    reading: Some(ATTENTION),
    check: Check::Elsewhere(
        "a CUDA device and the crate candle-flash-attn 0.11.1: call flash_attn on a Var and backward on its sum",
    ),
    training: Training::NoCurve("it needs a CUDA device"),
    workaround: "composed attention",
    source: include_str!("flash_attention_cuda.rs"),
};
