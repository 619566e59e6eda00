//! The CPU generator cannot be seeded, so no run that draws from it can be repeated.

use crate::arbiter::candle::Model;
use crate::defects::training::{normal, weight};
use crate::defects::{Check, Entry, Kind, Training};
use candle_core::{DType, Device, Result, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-cpu-seed",
    title: "The CPU random generator cannot be seeded",
    kind: Kind::Reproducibility,
    report: Some("#2651"),
    reading: None,
    check: Check::Shown { defect, control, model },
    training: Training::NoCurve("one curve cannot show that a second run would differ"),
    workaround: "draw with rng::Stream and build the tensor from the numbers",
    source: include_str!("cpu_seed.rs"),
};

// reproducer {
fn judge(seeded: bool, first: &[f32], second: &[f32]) -> (bool, String) {
    let same = first == second;
    (!(seeded && same), format!("seeding accepted: {seeded}; two draws of 8 equal: {same}"))
}

fn defect() -> Result<(bool, String)> {
    let mut seeded = true;
    let mut draw = || -> Result<Vec<f32>> {
        seeded &= Device::Cpu.set_seed(7).is_ok();
        Tensor::randn(0f32, 1.0, 8, &Device::Cpu)?.to_vec1()
    };
    let (first, second) = (draw()?, draw()?);
    Ok(judge(seeded, &first, &second))
}
// }

fn control() -> Result<(bool, String)> {
    let draw = || normal(&[8], 1.0, 7, "draw")?.to_vec1();
    Ok(judge(true, &draw()?, &draw()?))
}

/// Noise on the hidden layer, as in dropout: from Candle's generator, or from ours under a seed.
fn model(defective: bool) -> Result<Model<'static>> {
    let w = weight(&[8], 1.0, 1, "w", DType::F32)?;
    let used = w.clone();
    let loss = move |_: &[Tensor]| {
        let _ = Device::Cpu.set_seed(7);
        let noise = if defective { Tensor::randn(0f32, 1.0, 8, &Device::Cpu)? } else { normal(&[8], 1.0, 7, "noise")? };
        (used.as_tensor() * noise)?.sqr()?.sum_all()
    };
    Ok(Model::from_vars(vec![("w".to_owned(), w)], Vec::new(), loss))
}
