//! `rotary_emb::rope` with tables a sequence: tables longer than the input are read at the wrong rows.

use crate::arbiter::candle::Model;
use crate::defects::probe::tensor;
use crate::defects::training::Decoder;
use crate::defects::{Check, Entry, Kind, Training};
use candle_core::{DType, Result, Tensor, Var};
use candle_nn::rotary_emb::{rope, rope_i, rope_thd};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-rope-tables",
    title: "rope, rope_i and rope_thd read tables [batch, time, d/2] at the wrong rows when these are longer than the input",
    kind: Kind::WrongValue,
    report: None,
    reading: None,
    check: Check::Shown { defect, control, model },
    training: Training::Runs(train),
    workaround: "narrow the tables to the input's time and make them contiguous",
    source: include_str!("rope_tables.rs"),
};

// reproducer {
type Rope = fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>;

/// Largest difference between a batch of two in one call and its sequences one by one. The tables have `time`
/// positions a sequence, the input `[2, 1, 3, 4]` (for `rope_thd` `[2, 3, 1, 4]`) has 3.
fn difference(turn: Rope, dims: [usize; 4], time: usize) -> Result<f64> {
    let angles = tensor(&[2, 5, 2], 2, DType::F32)?.narrow(1, 0, time)?.contiguous()?;
    let (x, cos, sin) = (tensor(&dims, 1, DType::F32)?, angles.cos()?, angles.sin()?);
    let one = |i: usize| turn(&x.narrow(0, i, 1)?, &cos.get(i)?.narrow(0, 0, 3)?, &sin.get(i)?.narrow(0, 0, 3)?);
    let error = (turn(&x, &cos, &sin)? - Tensor::cat(&[one(0)?, one(1)?], 0)?)?;
    error.abs()?.max_all()?.to_dtype(DType::F64)?.to_scalar()
}

fn judge(time: usize) -> Result<(bool, String)> {
    let kinds: [(&str, Rope, [usize; 4]); 3] =
        [("rope", rope, [2, 1, 3, 4]), ("rope_i", rope_i, [2, 1, 3, 4]), ("rope_thd", rope_thd, [2, 3, 1, 4])];
    let (mut wrong, mut seen) = (false, format!("tables of {time} positions, input of 3; largest difference:"));
    for (name, turn, dims) in kinds {
        let worst = difference(turn, dims, time)?;
        wrong |= worst > 1e-6;
        seen += &format!(" {name} {worst:.2}");
    }
    Ok((wrong, seen))
}

fn defect() -> Result<(bool, String)> {
    judge(5)
}
// }

fn control() -> Result<(bool, String)> {
    judge(3)
}

/// The turned numbers times a variable: a wrong value with a right gradient.
fn model(defective: bool) -> Result<Model<'static>> {
    let time = if defective { 5 } else { 3 };
    let angles = tensor(&[2, 5, 2], 2, DType::F32)?.narrow(1, 0, time)?.contiguous()?;
    let turned = rope(&tensor(&[2, 1, 3, 4], 1, DType::F32)?, &angles.cos()?, &angles.sin()?)?;
    let (x, w) = (turned.to_dtype(DType::F64)?, Var::from_tensor(&tensor(&[4], 3, DType::F64)?)?);
    let used = w.clone();
    let loss = move |_: &[Tensor]| x.broadcast_mul(&used)?.sum_keepdim(2)?.sqr()?.sum_all();
    Ok(Model::from_vars(vec![("w".to_owned(), w)], Vec::new(), loss))
}

/// A decoder that turns by tables of twice its time, at the rows that `rope` would read, or at the right ones.
fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let turn: Rope = |x, cos, sin| {
        // Values of the fused op, derivative of the slow one, so that only the wrong rows differ.
        let batch = x.dim(0)?;
        let long = |table: &Tensor| {
            let (time, half) = table.dims2()?;
            let unused = Tensor::zeros((time, half), table.dtype(), table.device())?;
            Tensor::cat(&[table, &unused], 0)?.unsqueeze(0)?.repeat((batch, 1, 1))?.contiguous()
        };
        let slow = candle_nn::rotary_emb::rope_slow(x, cos, sin)?;
        let fused = rope(&x.contiguous()?, &long(cos)?, &long(sin)?)?;
        &slow + (fused - &slow)?.detach()
    };
    Decoder { turn: if defective { turn } else { Decoder::HEALTHY.turn }, ..Decoder::HEALTHY }.run(seed)
}
