//! The arbiter catches every silent gradient defect of Burn by the parameter's name, and passes the workaround.

use burn::module::{Module, Param, ParamId};
use burn::nn::{Linear, LinearConfig};
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::{DType, Device, Tensor, TensorData, activation};
use shikha::arbiter::{Question, Verdict};
use shikha_burn::Model;

fn device() -> Device {
    let device = Device::flex().autodiff();
    device.seed(7);
    device
}

fn tensor<const D: usize>(shape: [usize; D], seed: u32, device: &Device) -> Tensor<D> {
    let count = shape.iter().product();
    let values: Vec<f64> = (0..count).map(|i: usize| (1.7 * i as f64 + f64::from(seed)).sin() * 0.9).collect();
    Tensor::from_data(TensorData::new(values, shape).convert_dtype(DType::F32), (device, DType::F32))
}

fn judge<M: Module + 'static>(module: M, loss: impl Fn(&M, usize) -> Tensor<1>) -> Verdict {
    let mut optimizer = SgdConfig::new().init();
    let mut model = Model::new(module, loss).optimizer(move |module, mut tape| {
        let gradients = GradientsParams::from_module(&mut tape, &module);
        optimizer.step(0.05, module, gradients)
    });
    model.judge().expect("the first pass runs")
}

fn linear(layer: Linear) -> Verdict {
    judge(layer, |l: &Linear, n| l.forward(tensor([4, 16], 1 + n as u32, &device())).square().mean())
}

fn fresh() -> Linear {
    LinearConfig::new(16, 8).init(&device())
}

fn names(verdict: &Verdict, question: Question) -> Vec<&str> {
    verdict.findings.iter().filter(|f| f.question == question).map(|f| f.parameter.as_str()).collect()
}

#[test]
fn missing_gradients_are_caught_by_name() {
    let mapped = fresh();
    let mapped = Linear { weight: mapped.weight.map(|w| w * 0.02), bias: mapped.bias };
    let late = fresh();
    let _ = late.weight.val();
    let late = Linear { weight: late.weight.init_mapper(|w| w * 0.02), bias: late.bias };
    let weight = Param::initialized(ParamId::new(), tensor([16, 8], 2, &device()));
    let initialised = Linear { weight, bias: fresh().bias };
    let plain = Linear { weight: Param::from_tensor(tensor([16, 8], 2, &Device::flex())), bias: fresh().bias };
    for (case, layer) in [("map", mapped), ("init_mapper", late), ("initialized", initialised), ("plain device", plain)]
    {
        let verdict = linear(layer);
        assert!(names(&verdict, Question::Present).contains(&"weight"), "{case}: {}", verdict.report());
    }
    let moved = fresh();
    let _ = (moved.weight.val(), moved.bias.as_ref().map(Param::val));
    // Something that is trained, so that the loss has a tape at all.
    let anchor = tensor([8], 4, &device()).require_grad();
    let verdict = judge(moved.to_device(&device()), |l: &Linear, n| {
        let input = tensor([4, 16], 1 + n as u32, &device());
        (l.forward(input) + anchor.clone().unsqueeze()).square().mean()
    });
    assert_eq!(names(&verdict, Question::Present), ["weight", "bias"], "{}", verdict.report());
}

#[test]
fn the_workarounds_pass() {
    let layer = fresh();
    let weight = layer.weight.map(|w| (w * 0.02).detach().require_grad());
    for layer in [fresh(), Linear { weight, bias: layer.bias }] {
        let verdict = linear(layer);
        assert!(verdict.passed(), "{}", verdict.report());
    }
}

#[derive(Module, Debug)]
struct Tied {
    embedding: Param<Tensor<2>>,
    head: Option<Param<Tensor<2>>>,
}

#[test]
fn clones_of_one_parameter_are_caught_as_they_part() {
    let loss = |m: &Tied, n: usize| {
        let input = tensor([4, 6], 1 + n as u32, &device());
        let head = m.head.as_ref().unwrap_or(&m.embedding).val();
        (input.matmul(m.embedding.val()).tanh().matmul(head.transpose()) - 1).square().mean()
    };
    let embedding = Param::from_tensor(tensor([6, 5], 2, &device()));
    let verdict = judge(Tied { head: Some(embedding.clone()), embedding: embedding.clone() }, loss);
    assert!(names(&verdict, Question::Applied).contains(&"head"), "{}", verdict.report());
    let verdict = judge(Tied { head: None, embedding }, loss);
    assert!(verdict.passed(), "{}", verdict.report());
}

#[derive(Module, Debug)]
struct Point {
    x: Param<Tensor<1>>,
}

#[test]
fn the_wrong_derivative_of_gelu_is_caught() {
    // Deprecated, and still the one CPU backend that takes the default gradient, as the GPU backends do.
    #[allow(deprecated)]
    let device = Device::ndarray().autodiff();
    let point = || {
        let x = Tensor::<1>::from_data(TensorData::from([-2.0f64, 0.5, 2.0]), (&device, DType::F64));
        Point { x: Param::from_tensor(x) }
    };
    let verdict = judge(point(), |p: &Point, _| activation::gelu(p.x.val()).sum());
    assert_eq!(names(&verdict, Question::Right), ["x"], "{}", verdict.report());
    let verdict = judge(point(), |p: &Point, _| activation::gelu_approximate(p.x.val()).sum());
    assert!(verdict.passed(), "{}", verdict.report());
}
