//! `backward` on a tensor that is no scalar sums it without saying so.

use crate::defects::{Entry, Kind, Verdict};
use candle_core::{Device, Result, Tensor, Var};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-non-scalar-backward",
    title: "backward on a non-scalar loss succeeds and sums it",
    kind: Kind::Interface,
    report: None,
    reading: None,
    reproduce,
    control,
    workaround: "check the rank of the loss",
};

fn loss() -> Result<(Var, Tensor)> {
    let w = Var::new(&[1f64, 2.0, 3.0], &Device::Cpu)?;
    let loss = w.sqr()?;
    Ok((w, loss))
}

fn reproduce() -> Result<Verdict> {
    let (w, loss) = loss()?;
    let gradients = loss.backward();
    let gradient = gradients.as_ref().ok().and_then(|g| g.get(&w));
    let values: Option<Vec<f64>> = gradient.map(Tensor::to_vec1).transpose()?;
    Ok(Verdict::when(values.is_some(), format!("a loss of shape {:?} gives the gradient {values:?}", loss.dims())))
}

fn control() -> Result<Verdict> {
    let (_, loss) = loss()?;
    let scalar = loss.to_scalar::<f64>();
    Ok(Verdict::when(scalar.is_ok(), format!("asking for the scalar first is refused: {}", scalar.is_err())))
}
