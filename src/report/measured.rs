//! Measurements of a run, by the claim they speak to.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One measured value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// The value, in the claim's unit.
    pub value: f64,
    /// Its 95 % interval, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// The artifact it was read from.
    pub source: String,
}

/// Measurements of one run with the scale they hold at.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurements {
    /// Name of the run.
    pub run: String,
    /// Its size, for example `0.98 M parameters, 0.8 M tokens`.
    pub scale: String,
    /// By claim id.
    pub values: BTreeMap<String, Measured>,
}
