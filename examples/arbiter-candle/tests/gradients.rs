//! Every parameter of the classifier learns; with the fused norm in it, the arbiter says which does not and why.

use arbiter_candle::{Classifier, Norm};
use candle_core::{DType, Device, Tensor};
use candle_nn::{AdamW, Optimizer, VarBuilder, VarMap};
use shikha::arbiter::{Verdict, candle::Model};
use std::error::Error;

#[global_allocator]
static ALLOCATOR: shikha::arbiter::candle::Tracer = shikha::arbiter::candle::Tracer;

fn verdict(norm: Norm) -> Result<Verdict, Box<dyn Error + Send + Sync>> {
    let vars = VarMap::new();
    let model = Classifier::new(VarBuilder::from_varmap(&vars, DType::F32, &Device::Cpu), norm)?;
    let x = Tensor::randn(0f32, 1f32, (12, 8), &Device::Cpu)?;
    let classes = Tensor::from_vec((0..12u32).map(|i| i % 3).collect(), 12, &Device::Cpu)?;
    let mut optimizer = AdamW::new_lr(vars.all_vars(), 1e-3)?;
    Model::new(&vars, || model.loss(&x, &classes)).optimizer(|gradients| optimizer.step(gradients)).judge()
}

#[test]
fn every_parameter_learns() {
    let verdict = verdict(Norm::Composed).unwrap();
    assert!(verdict.passed(), "{}", verdict.report());
}

#[test]
fn the_fused_norm_is_caught_and_named() {
    let verdict = verdict(Norm::Fused).unwrap();
    print!("{}", verdict.report());
    let missing: Vec<&str> = verdict.findings.iter().map(|f| f.parameter.as_str()).collect();
    assert_eq!(missing, ["first.bias", "first.weight", "gain"]);
    let cut = verdict.cut.unwrap();
    assert!(cut.contains("candle_nn::ops::rms_norm") && cut.contains("arbiter_candle::Classifier::loss"), "{cut}");
}
