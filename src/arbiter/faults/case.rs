//! The corpus: healthy models, and faults planted in them.

use super::convolution::{CONVOLUTION, DEAD_UNITS};
use super::decoder::{DECODER, TIED_DECODER};
use super::encoder::ENCODER;
use super::family::Family;
use super::kit::{Plant, Tamper};
use super::mixture::{IDLE_EXPERT, MIXTURE};
use super::recurrent::RECURRENT;
use super::residual::{DROPOUT, FROZEN_INPUT, RESIDUAL, TINY, ZERO_BRANCH};
use super::trainer::StepFault;
use candle_core::DType;
use serde::{Deserialize, Serialize};

/// What sort of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// None.
    Healthy,
    /// No gradient reaches some parameters.
    CutGraph,
    /// None reaches some rows, or one of several ways.
    PartialCut,
    /// The derivative of another formula, or NaN.
    WrongValue,
    /// The right direction times a factor, or turned round.
    ScaleOrSign,
    /// Lost in a number type.
    Precision,
    /// The optimizer does something else than its rule.
    Optimizer,
    /// Something kept between steps is wrong.
    State,
    /// Parameters that should be one, or one that should count twice.
    Tying,
    /// Not the same twice.
    Repeatability,
    /// The data is wrong and every gradient right for it: out of scope, nothing here can see it.
    Data,
}

impl Kind {
    /// Every kind of fault that is in scope.
    pub const IN_SCOPE: [Kind; 9] = [
        Kind::CutGraph,
        Kind::PartialCut,
        Kind::WrongValue,
        Kind::ScaleOrSign,
        Kind::Precision,
        Kind::Optimizer,
        Kind::State,
        Kind::Tying,
        Kind::Repeatability,
    ];

    /// What it is called in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Healthy => "healthy",
            Kind::CutGraph => "cut graph",
            Kind::PartialCut => "partial cut",
            Kind::WrongValue => "wrong value",
            Kind::ScaleOrSign => "scale or sign",
            Kind::Precision => "precision",
            Kind::Optimizer => "optimizer",
            Kind::State => "state",
            Kind::Tying => "tying",
            Kind::Repeatability => "repeatability",
            Kind::Data => "data (out of scope)",
        }
    }

    /// Whether it is a fault of the gradient itself, before any optimizer.
    pub fn is_of_gradient(self) -> bool {
        matches!(self, Kind::CutGraph | Kind::PartialCut | Kind::WrongValue | Kind::ScaleOrSign)
    }
}

/// One model, healthy or with one fault.
#[derive(Clone, Copy)]
pub struct Case {
    /// What is wrong, in a few words.
    pub title: &'static str,
    /// What sort of fault.
    pub kind: Kind,
    /// The model.
    pub family: &'static Family,
    /// A fault in the backward pass.
    pub plant: Option<Plant>,
    /// A fault in the optimizer.
    pub step: Option<StepFault>,
    /// Type of the variables.
    pub dtype: DType,
    /// Type the model computes in.
    pub compute: DType,
    /// Learning rate of its optimizer.
    pub rate: f64,
    /// A second variable started as a copy of the first, and declared tied with it.
    pub clone_of: Option<(&'static str, &'static str)>,
    /// Whether the targets belong to other inputs.
    pub shuffled: bool,
}

const fn healthy(title: &'static str, family: &'static Family) -> Case {
    Case {
        title,
        kind: Kind::Healthy,
        family,
        plant: None,
        step: None,
        dtype: DType::F64,
        compute: DType::F64,
        rate: 3e-3,
        clone_of: None,
        shuffled: false,
    }
}

const fn planted(kind: Kind, family: &'static Family, site: &'static str, tamper: Tamper, title: &'static str) -> Case {
    Case { kind, plant: Some(Plant { site, tamper }), ..healthy(title, family) }
}

const fn stepping(kind: Kind, family: &'static Family, fault: StepFault, title: &'static str) -> Case {
    Case { kind, step: Some(fault), ..healthy(title, family) }
}

/// The healthy models, hard ones among them.
pub fn healthy_models() -> Vec<Case> {
    let in_types = |case: Case, dtype, compute| Case { dtype, compute, ..case };
    vec![
        healthy("decoder, three tokens of the vocabulary unused", &DECODER),
        in_types(healthy("decoder in f32", &DECODER), DType::F32, DType::F32),
        in_types(healthy("decoder in bf16 over f32 weights", &DECODER), DType::F32, DType::BF16),
        healthy("decoder with a tied output layer", &TIED_DECODER),
        healthy("encoder with a key bias", &ENCODER),
        in_types(healthy("encoder in f32", &ENCODER), DType::F32, DType::F32),
        healthy("convolutional with ReLU", &CONVOLUTION),
        in_types(healthy("convolutional in f32", &CONVOLUTION), DType::F32, DType::F32),
        healthy("convolutional with dead ReLUs", &DEAD_UNITS),
        healthy("mixture of experts", &MIXTURE),
        healthy("mixture of experts, one idle", &IDLE_EXPERT),
        healthy("gated recurrent unit", &RECURRENT),
        in_types(healthy("gated recurrent unit in f32", &RECURRENT), DType::F32, DType::F32),
        healthy("residual network", &RESIDUAL),
        healthy("residual branch that starts at zero", &ZERO_BRANCH),
        healthy("tiny gradients", &TINY),
        healthy("seeded dropout", &DROPOUT),
        healthy("frozen input layer", &FROZEN_INPUT),
    ]
}

/// The faults, out-of-scope ones last.
pub fn faults() -> Vec<Case> {
    let mut all = backward_faults();
    all.extend(step_faults());
    let shuffled = |family| Case { kind: Kind::Data, shuffled: true, ..healthy("targets of other inputs", family) };
    all.extend([shuffled(&DECODER), shuffled(&CONVOLUTION)]);
    all
}

fn backward_faults() -> Vec<Case> {
    use Kind::{CutGraph, PartialCut, Precision, Repeatability, ScaleOrSign, State, Tying, WrongValue};
    use Tamper::{
        Accumulated, Cut, CutButLast, CutHalf, Formula, Noise, NotFinite, Roll, Rounded, Scale, Stale, Underflow,
    };
    vec![
        planted(CutGraph, &DECODER, "hidden", Cut, "everything before the output layer"),
        planted(CutGraph, &DECODER, "attention", Cut, "attention's output"),
        planted(CutGraph, &DECODER, "attention.norm", Cut, "the gain of a norm"),
        planted(CutGraph, &ENCODER, "weights", Cut, "attention's weights: no query or key learns"),
        planted(CutGraph, &CONVOLUTION, "features", Cut, "the first layer's features"),
        planted(CutGraph, &MIXTURE, "input-out", Cut, "the input layer's output"),
        planted(CutGraph, &RECURRENT, "last", Cut, "the last state"),
        planted(CutGraph, &RESIDUAL, "branch", Cut, "a residual branch"),
        planted(PartialCut, &DECODER, "attention.q", CutHalf, "half of a query matrix's inputs"),
        planted(PartialCut, &DECODER, "mlp.up", CutButLast, "all rows of a matrix but one"),
        planted(PartialCut, &DECODER, "values", CutHalf, "half of each head's values"),
        planted(PartialCut, &DECODER, "duplicates", Formula, "all but the last occurrence of a token"),
        planted(PartialCut, &ENCODER, "mixed", CutHalf, "half of attention's output"),
        planted(PartialCut, &CONVOLUTION, "conv1", CutButLast, "all channels of a kernel but one"),
        planted(PartialCut, &MIXTURE, "experts", CutButLast, "all experts but one"),
        planted(PartialCut, &RECURRENT, "past", Cut, "what a state keeps of the one before"),
        planted(WrongValue, &DECODER, "softmax", Formula, "softmax without the sum over the row"),
        planted(WrongValue, &DECODER, "rms-norm", Formula, "RMSNorm with the root taken for a constant"),
        planted(WrongValue, &DECODER, "rope-q", Formula, "a rotation turned the wrong way"),
        planted(WrongValue, &DECODER, "silu", Formula, "SiLU without the slope of its gate"),
        planted(WrongValue, &DECODER, "attention.v", Roll, "columns of a matrix shifted by one"),
        planted(WrongValue, &DECODER, "values", NotFinite, "a slope that is infinite"),
        planted(WrongValue, &ENCODER, "layer-norm-2", Formula, "LayerNorm with mean and deviation taken for constants"),
        planted(WrongValue, &ENCODER, "gelu", Formula, "GELU by erf with the slope of its tanh form"),
        planted(WrongValue, &CONVOLUTION, "relu", Formula, "ReLU with the slope of ELU"),
        planted(WrongValue, &MIXTURE, "shares", Formula, "router softmax without the sum over the row"),
        planted(WrongValue, &RECURRENT, "sigmoid", Formula, "a sigmoid gate with the slope of its logarithm"),
        planted(WrongValue, &RECURRENT, "tanh", Formula, "tanh passed straight through"),
        planted(ScaleOrSign, &DECODER, "scores", Formula, "attention scores without 1/√d"),
        planted(ScaleOrSign, &DECODER, "loss", Scale(0.5), "the loss halved"),
        planted(ScaleOrSign, &DECODER, "mlp.down", Scale(-1.0), "a matrix's sign turned"),
        planted(ScaleOrSign, &ENCODER, "pooled", Formula, "a mean with the slope of a sum"),
        planted(ScaleOrSign, &CONVOLUTION, "pooled", Scale(9.0), "average pooling with the slope of a sum"),
        planted(ScaleOrSign, &MIXTURE, "mixed", Scale(-1.0), "the experts' sign turned"),
        planted(ScaleOrSign, &RECURRENT, "output", Scale(1.01), "one per cent too large"),
        planted(Precision, &DECODER, "hidden", Rounded, "rounded to bf16 on its way"),
        planted(Precision, &ENCODER, "mixed", Rounded, "rounded to bf16 in attention"),
        planted(Precision, &RECURRENT, "last", Underflow, "f16 near underflow"),
        planted(State, &DECODER, "", Stale, "taken at other weights than the forward pass"),
        planted(State, &RECURRENT, "last", Accumulated, "added to that of the passes before"),
        planted(Tying, &TIED_DECODER, "output", Cut, "the output layer's share of a tied matrix lost"),
        planted(Tying, &TIED_DECODER, "lookup", Cut, "the embedding's share of a tied matrix lost"),
        planted(Tying, &TIED_DECODER, "output", Scale(2.0), "the output layer's share counted twice"),
        planted(Repeatability, &DECODER, "mlp", Noise(1e-9), "one part in a billion from pass to pass"),
        planted(Repeatability, &ENCODER, "normed", Noise(1e-6), "one part in a million from pass to pass"),
        planted(Repeatability, &CONVOLUTION, "features", Noise(1e-9), "one part in a billion in a convolution"),
    ]
}

fn step_faults() -> Vec<Case> {
    use Kind::{Optimizer, Precision, State, Tying};
    use StepFault::{
        Ascends, ClipsEach, CouplesDecay, ForgetsMoments, LargeEpsilon, MixesUp, MovesHeld, NoBiasCorrection, NoDecay,
        OldGradient, Omits, RateOf, Restores, RoundsMoments, StepsTwice, SwapsMoments,
    };
    let bf16 = healthy("weights kept in bf16 alone, at a rate of 10⁻⁴", &DECODER);
    let bf16 = Case { kind: Precision, dtype: DType::BF16, compute: DType::F32, rate: 1e-4, ..bf16 };
    let cloned =
        Case { kind: Tying, clone_of: Some(("head", "embedding")), ..healthy("a tied matrix cloned", &DECODER) };
    let mixed = Case { step: Some(Omits("head")), title: "a tied matrix cloned, the copy left out", ..cloned };
    vec![
        bf16,
        stepping(Precision, &DECODER, RoundsMoments, "moments kept in bf16"),
        stepping(Optimizer, &DECODER, Omits("mlp.gate"), "a matrix left out"),
        stepping(Optimizer, &CONVOLUTION, Omits("conv1.bias"), "a bias left out"),
        stepping(Optimizer, &RECURRENT, Ascends, "uphill"),
        stepping(Optimizer, &ENCODER, RateOf("class", 1e3), "one matrix a thousand times too fast"),
        stepping(Optimizer, &MIXTURE, RateOf("router", 1e-3), "one matrix a thousand times too slow"),
        stepping(Optimizer, &FROZEN_INPUT, MovesHeld, "a frozen layer moved"),
        stepping(Optimizer, &CONVOLUTION, StepsTwice, "two steps on one gradient"),
        stepping(Optimizer, &DECODER, NoDecay, "weight decay left out"),
        stepping(Optimizer, &ENCODER, CouplesDecay, "weight decay added to the gradient"),
        stepping(Optimizer, &RESIDUAL, LargeEpsilon, "ε of 10⁻³ for 10⁻⁸"),
        stepping(
            Optimizer,
            &DECODER,
            MixesUp("attention.q", "attention.k"),
            "one matrix stepped by another's gradient",
        ),
        stepping(Optimizer, &RESIDUAL, ClipsEach, "clipped tensor by tensor to 10⁻³"),
        stepping(State, &DECODER, ForgetsMoments, "moments forgotten after every step"),
        stepping(State, &MIXTURE, NoBiasCorrection, "no bias correction, as after a lost step counter"),
        stepping(
            State,
            &DECODER,
            SwapsMoments("attention.q", "attention.v"),
            "moments of two matrices swapped at the second step",
        ),
        stepping(State, &CONVOLUTION, OldGradient, "the gradient of the step before"),
        stepping(State, &RECURRENT, Restores("state.h"), "a matrix put back every second step"),
        cloned,
        mixed,
    ]
}
