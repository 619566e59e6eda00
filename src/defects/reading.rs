//! Which entries we take for the abstract's "five" in Candle and "three" in Burn, and why.
//!
//! We know the abstract only: it gives the numbers, names no entry but the class of fused kernels, a slow
//! backward pass and a segmentation fault. Everything else here is a reading, with how sure we are.

use super::Entry;
use std::fmt::Write;

/// One of the five or of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Its place among them, likeliest first, from 1.
    pub place: usize,
    /// What the defect is.
    pub what: &'static str,
    /// Why we think so, and how sure we are.
    pub why: &'static str,
}

/// Fused kernels without a backward pass.
pub const FUSED: Reading = Reading {
    place: 1,
    what: "fused kernels give no gradient, and the optimizer passes over it",
    why: "near certain as a class: the abstract names it, and a Llama-like decoder uses three of the four",
};
/// An optimizer that cannot be saved.
pub const STATE: Reading = Reading {
    place: 2,
    what: "AdamW's moments and step counter are private",
    why: "medium: a run of days on one GPU has to checkpoint",
};
/// Low precision.
pub const PRECISION: Reading = Reading {
    place: 3,
    what: "weights, moments, sums and losses in bf16 or f16 lose what is added to them",
    why: "medium: a run on an H100 is likely bf16; on CUDA only part of it holds, read and not run",
};
/// Memory of the backward pass.
pub const MEMORY: Reading = Reading {
    place: 4,
    what: "gradients keep the graph, and are computed for constants too",
    why: "medium: gradient accumulation on one card runs straight into it",
};
/// Attention without a backward pass.
pub const ATTENTION: Reading = Reading {
    place: 5,
    what: "attention kernels have no backward pass",
    why: "low to medium: the first thing one tries for speed",
};

/// The abstract's five in Candle.
pub const FIVE: [Reading; 5] = [FUSED, STATE, PRECISION, MEMORY, ATTENTION];

/// The abstract's three in Burn, with the entries of `burn/defects` they stand for.
pub const THREE: [(Reading, &[&str]); 3] = [
    (
        Reading {
            place: 1,
            what: "a backward pass at a few per cent of the machine's speed",
            why: "medium: the abstract gives 3 %; the batched weight gradient reaches that in an extreme shape only",
        },
        &["burn-linear-batched-weight-gradient", "burn-rank3-matmul"],
    ),
    (
        Reading {
            place: 2,
            what: "a segmentation fault of kernel fusion in the middle of training",
            why: "medium for the family: the abstract names it at billions of parameters, no public report is that large",
        },
        &["burn-fusion-segfault", "burn-fusion-handles"],
    ),
    (
        Reading {
            place: 3,
            what: "parameters that silently get no gradient",
            why: "low to medium: a gradient-flow check is the natural way to find one",
        },
        &[
            "burn-param-map",
            "burn-init-mapper",
            "burn-param-initialized",
            "burn-tied-clones",
            "burn-col-layout-leaf",
            "burn-alias-field",
        ],
    ),
];

/// Both readings for a reader, each with its entries.
pub fn readings(entries: &[Entry]) -> String {
    let mut text = "The abstract counts five in Candle and names one class; our reading, likeliest first:\n".to_owned();
    for reading in FIVE {
        let of = entries.iter().filter(|e| e.reading == Some(reading)).map(|e| e.id);
        write_reading(&mut text, &reading, &of.collect::<Vec<_>>());
    }
    text + &burn_readings()
}

/// Our reading of the three in Burn, for a reader.
pub fn burn_readings() -> String {
    let mut text = "The abstract counts three in Burn; our reading, likeliest first:\n".to_owned();
    for (reading, ids) in &THREE {
        write_reading(&mut text, reading, ids);
    }
    text
}

fn write_reading(text: &mut String, reading: &Reading, ids: &[&str]) {
    let Reading { place, what, why } = reading;
    let _ = writeln!(text, "  {place}. {what} ({why}): {}", ids.join(", "));
}
