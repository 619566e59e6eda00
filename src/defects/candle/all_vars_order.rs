//! `VarMap` is a hash map, so state that is saved by position lands on another tensor.

use crate::defects::{Entry, Kind, Verdict};
use candle_core::{DType, Device, Result};
use candle_nn::{Init, VarMap};
use std::collections::BTreeMap;

pub(super) const ENTRY: Entry = Entry {
    id: "candle-all-vars-order",
    title: "VarMap::all_vars gives another order in every map, so state kept by position is mixed up",
    kind: Kind::Reproducibility,
    report: None,
    reading: None,
    reproduce,
    control,
    workaround: "sort by name",
};

fn map() -> Result<VarMap> {
    let map = VarMap::new();
    for size in 1..=8usize {
        map.get(size, &format!("layer{size}"), Init::Const(0.0), DType::F32, &Device::Cpu)?;
    }
    Ok(map)
}

fn judge(sizes: impl Fn() -> Result<Vec<usize>>) -> Result<Verdict> {
    let orders = (0..10).map(|_| sizes()).collect::<Result<Vec<_>>>()?;
    let other = orders.iter().filter(|order| **order != orders[0]).count();
    Ok(Verdict::when(other > 0, format!("{other} of 9 equal maps list their 8 variables in another order")))
}

fn reproduce() -> Result<Verdict> {
    judge(|| Ok(map()?.all_vars().iter().map(|v| v.elem_count()).collect()))
}

fn control() -> Result<Verdict> {
    judge(|| {
        let map = map()?;
        let data = map.data().lock().map_err(|e| candle_core::Error::Msg(e.to_string()))?;
        let sorted: BTreeMap<_, _> = data.iter().collect();
        Ok(sorted.values().map(|v| v.elem_count()).collect())
    })
}
