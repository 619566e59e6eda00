//! candle-flash-attn has a forward kernel only; without a backward it fails with a clean error.

use crate::defects::{Entry, Kind, Verdict};
use candle_core::Result;

pub(super) const ENTRY: Entry = Entry {
    id: "candle-flash-attention-cuda",
    title: "candle-flash-attn (CUDA) has no backward pass; it fails loudly",
    kind: Kind::MissingGradient,
    report: None,
    reading: None,
    reproduce,
    control,
    workaround: "composed attention",
};

fn reproduce() -> Result<Verdict> {
    let how = "a CUDA device and the crate candle-flash-attn 0.11.1: call flash_attn on a Var and backward on its sum";
    Ok(Verdict::NeedsHardware(how.to_owned()))
}

fn control() -> Result<Verdict> {
    Ok(Verdict::NeedsHardware("a CUDA device".to_owned()))
}
