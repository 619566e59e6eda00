//! The CPU generator cannot be seeded, so no run that draws from it can be repeated.

use crate::defects::probe::numbers;
use crate::defects::{Entry, Kind, Verdict};
use candle_core::{Device, Result, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-cpu-seed",
    title: "The CPU random generator cannot be seeded",
    kind: Kind::Reproducibility,
    report: Some("#2651"),
    reading: None,
    reproduce,
    control,
    workaround: "draw with rng::Stream and build the tensor from the numbers",
};

fn judge(seeded: bool, first: &[f64], second: &[f64]) -> Verdict {
    let same = first == second;
    Verdict::when(!(seeded && same), format!("seeding accepted: {seeded}; two draws of 8 equal: {same}"))
}

fn reproduce() -> Result<Verdict> {
    let mut seeded = true;
    let mut draw = || -> Result<Vec<f64>> {
        seeded &= Device::Cpu.set_seed(7).is_ok();
        Tensor::randn(0f64, 1.0, 8, &Device::Cpu)?.to_vec1()
    };
    let (first, second) = (draw()?, draw()?);
    Ok(judge(seeded, &first, &second))
}

fn control() -> Result<Verdict> {
    Ok(judge(true, &numbers(8, 7), &numbers(8, 7)))
}
