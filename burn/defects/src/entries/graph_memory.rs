//! A forward pass without a backward pass: its tape is kept until some later backward pass.

use crate::asked::ask;
use crate::catalogue::{Asked, CheckError, Entry, Kind, Training, Verdict};
use crate::probe::{bias, device, resident, tensor};
use crate::training::weight;
use burn::module::Module;
use burn::module::Param;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::DType;

pub(super) const ENTRY: Entry = Entry {
    id: "burn-graph-memory",
    title: "forward passes without a backward pass (an evaluation) keep their activations for ever",
    kind: Kind::Memory,
    report: Some("#2333, #3976"),
    reading: None,
    source: include_str!("graph_memory.rs"),
    reproduce: || judge(false),
    control: || judge(true),
    arbiter: Asked::Model(|defective| {
        // An evaluation before every pass that is trained on.
        let layer = Linear { weight: Param::from_tensor(weight([16, 8], 0)), bias: bias(8) };
        ask(layer, move |layer: &Linear, n| {
            let input = tensor([4, 16], 1 + n as u32, DType::F32, &device());
            let _evaluated =
                if defective { layer.forward(input.clone()) } else { layer.valid().forward(input.clone().inner()) };
            layer.forward(input).square().mean()
        })
    }),
    training: Training::NoCurve("an evaluation trains nothing; the next backward pass lets go of what it kept"),
    workaround: "evaluate on model.valid()",
};

const PASSES: usize = 200;
const MIB: f64 = 1024.0 * 1024.0;

fn judge(valid: bool) -> Result<Verdict, CheckError> {
    let device = device();
    let layers: Vec<Linear> = (0..3).map(|_| LinearConfig::new(256, 256).init(&device)).collect();
    let (layers, device) = if valid { (layers.valid(), device.inner()) } else { (layers, device) };
    let input = tensor([256, 256], 1, DType::F32, &device);
    let pass = || {
        let output = layers.iter().fold(input.clone(), |x, layer| layer.forward(x).tanh());
        output.mean().into_data()
    };
    // The first passes fill the allocator and initialise the weights.
    for _ in 0..5 {
        pass();
    }
    let before = resident()?;
    for _ in 0..PASSES {
        pass();
    }
    let grown = (resident()? as f64 - before as f64) / MIB;
    let evidence = format!(
        "{PASSES} forward passes of three Linear(256) on 256 rows: {grown:.1} MiB more, {:.3} MiB a pass",
        grown / PASSES as f64
    );
    // One activation of one layer is a quarter of a MiB; a tape that is let go keeps none.
    Ok(Verdict::when(grown > 0.25 * PASSES as f64, evidence))
}
