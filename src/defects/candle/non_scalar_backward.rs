//! `backward` on a tensor that is no scalar sums it without saying so.

use crate::arbiter::candle::Model;
use crate::defects::training::Decoder;
use crate::defects::{Check, Entry, Kind, Training};
use candle_core::{D, Device, Result, Tensor, Var};
use candle_nn::loss::cross_entropy;

pub(super) const ENTRY: Entry = Entry {
    id: "candle-non-scalar-backward",
    title: "backward on a non-scalar loss succeeds and sums it",
    kind: Kind::Interface,
    report: None,
    reading: None,
    check: Check::Shown { defect, control, model },
    training: Training::Runs(train),
    workaround: "check the rank of the loss",
    source: include_str!("non_scalar_backward.rs"),
};

// reproducer {
fn loss() -> Result<(Var, Tensor)> {
    let w = Var::new(&[1f64, 2.0, 3.0], &Device::Cpu)?;
    let loss = w.sqr()?;
    Ok((w, loss))
}

fn defect() -> Result<(bool, String)> {
    let (w, loss) = loss()?;
    let gradients = loss.backward();
    let gradient = gradients.as_ref().ok().and_then(|g| g.get(&w));
    let values: Option<Vec<f64>> = gradient.map(Tensor::to_vec1).transpose()?;
    Ok((values.is_some(), format!("a loss of shape {:?} gives the gradient {values:?}", loss.dims())))
}
// }

fn control() -> Result<(bool, String)> {
    let (_, loss) = loss()?;
    let scalar = loss.to_scalar::<f64>();
    Ok((scalar.is_ok(), format!("asking for the scalar first is refused: {}", scalar.is_err())))
}

fn model(defective: bool) -> Result<Model<'static>> {
    let (w, _) = loss()?;
    let used = w.clone();
    let loss = move |_: &[Tensor]| if defective { used.sqr() } else { used.sqr()?.mean_all() };
    Ok(Model::from_vars(vec![("w".to_owned(), w)], Vec::new(), loss))
}

/// The cross-entropy a position, its mean not taken; what is drawn is the mean.
fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let each: fn(&Tensor, &Tensor) -> Result<Tensor> =
        |logits, targets| candle_nn::ops::log_softmax(logits, D::Minus1)?.gather(&targets.unsqueeze(1)?, 1)?.neg();
    Decoder { loss: if defective { each } else { cross_entropy }, ..Decoder::HEALTHY }.run(seed)
}
