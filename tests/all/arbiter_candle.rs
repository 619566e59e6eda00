//! Tests of the arbiter's Candle adapter: the parameter and the op that cut its gradient are named.

use candle_core::{CpuStorage, CustomOp1, D, DType, Device, Layout, Result, Shape, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW, VarMap, rotary_emb};
use shikha::arbiter::candle::Model;
use shikha::arbiter::{Expectation, Question, Rule, Verdict};
use shikha::ops;
use shikha::rng::Stream;

fn var(name: &str, shape: &[usize], scale: f64, dtype: DType) -> (String, Var) {
    let stream = Stream::new(7, name);
    let values: Vec<f64> = (0..shape.iter().product()).map(|i: usize| scale * stream.normal(i as u64)).collect();
    let tensor = Tensor::from_vec(values, shape, &Device::Cpu).unwrap().to_dtype(dtype).unwrap();
    (name.to_owned(), Var::from_tensor(&tensor).unwrap())
}

/// `x W₁`, an op on `[2, 2, 4, 6]` or `[2, 4, 12]`, `W₂`, squared sum: W₁ and the gain stand behind the op.
struct Sandwich {
    vars: Vec<(String, Var)>,
    x: Tensor,
}

impl Sandwich {
    fn new(dtype: DType) -> Self {
        let gain = ("gain".to_owned(), Var::ones(12, dtype, &Device::Cpu).unwrap());
        let vars = vec![var("first", &[5, 12], 0.3, dtype), gain, var("second", &[12, 3], 0.3, dtype)];
        let x = var("x", &[2, 4, 5], 1.0, dtype).1.as_tensor().detach();
        Sandwich { vars, x }
    }

    fn judge(&self, op: impl Fn(&Tensor, &Tensor) -> Result<Tensor>) -> Verdict {
        let [first, gain, second] = [0, 1, 2].map(|i| self.vars[i].1.as_tensor().clone());
        let uses_gain = Tensor::ones(12, self.x.dtype(), &Device::Cpu).unwrap();
        let loss = move |inputs: &[Tensor]| {
            let hidden = inputs[0].contiguous()?.broadcast_matmul(&first)?;
            let hidden = op(&hidden, &gain)?.broadcast_mul(&(&gain * 0.1)?.broadcast_add(&uses_gain)?)?;
            hidden.contiguous()?.broadcast_matmul(&second)?.sqr()?.sum_all()
        };
        let mut model = Model::from_vars(self.vars.clone(), vec![self.x.clone()], loss);
        model.judge().unwrap()
    }
}

/// A user's own op without a backward pass.
struct Doubled;

impl CustomOp1 for Doubled {
    fn name(&self) -> &'static str {
        "doubled"
    }
    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let doubled = storage.as_slice::<f32>()?.iter().map(|x| 2.0 * x).collect();
        Ok((CpuStorage::F32(doubled), layout.shape().clone()))
    }
}

fn heads(x: &Tensor) -> Result<Tensor> {
    x.reshape((2, 4, 2, 6))?.transpose(1, 2)?.contiguous()
}

fn merge(x: &Tensor) -> Result<Tensor> {
    x.transpose(1, 2)?.contiguous()?.reshape((2, 4, 12))
}

fn angles(dtype: DType) -> [Tensor; 2] {
    let angles = Tensor::arange(0f32, 12.0, &Device::Cpu).unwrap().reshape((4, 3)).unwrap().to_dtype(dtype).unwrap();
    [angles.cos().unwrap(), angles.sin().unwrap()]
}

#[test]
fn each_severing_op_is_named_with_its_replacement_and_the_healthy_twin_passes() {
    type Op = Box<dyn Fn(&Tensor, &Tensor) -> Result<Tensor>>;
    let dtype = DType::F32; // Candle's fused norms know no f64
    let [cos, sin] = angles(dtype);
    let bias = Tensor::zeros(12, dtype, &Device::Cpu).unwrap();
    let (c1, s1, c2, s2, c3, s3) = (cos.clone(), sin.clone(), cos.clone(), sin.clone(), cos.clone(), sin.clone());
    let (b1, b2) = (bias.clone(), bias);
    let cases: Vec<(&str, Op, Op)> = vec![
        (
            "ops::rms_norm ",
            Box::new(|x, gain| candle_nn::ops::rms_norm(x, gain, 1e-5)),
            Box::new(|x, gain| ops::candle::rms_norm(x, gain, 1e-5)),
        ),
        (
            "ops::layer_norm ",
            Box::new(move |x, gain| candle_nn::ops::layer_norm(x, gain, &b1, 1e-5)),
            Box::new(move |x, gain| candle_nn::ops::layer_norm_slow(x, gain, &b2, 1e-5)),
        ),
        (
            "ops::softmax_last_dim",
            Box::new(|x, _| candle_nn::ops::softmax_last_dim(x)),
            Box::new(|x, _| candle_nn::ops::softmax(x, D::Minus1)),
        ),
        (
            "rotary_emb::rope ",
            Box::new(move |x, _| merge(&rotary_emb::rope(&heads(x)?, &c1, &s1)?)),
            Box::new(move |x, _| merge(&rotary_emb::rope_slow(&heads(x)?, &cos, &sin)?)),
        ),
        (
            "rotary_emb::rope_i ",
            Box::new(move |x, _| merge(&rotary_emb::rope_i(&heads(x)?, &c2, &s2)?)),
            Box::new(move |x, _| merge(&rotary_emb::rope_i_slow(&heads(x)?, &angles(dtype)[0], &angles(dtype)[1])?)),
        ),
        (
            "rotary_emb::rope_thd ",
            Box::new(move |x, _| rotary_emb::rope_thd(&x.reshape((2, 4, 2, 6))?, &c3, &s3)?.reshape((2, 4, 12))),
            Box::new(|x, _| x.reshape((2, 4, 2, 6))?.reshape((2, 4, 12))),
        ),
    ];
    let sandwich = Sandwich::new(dtype);
    for (op, broken, healthy) in cases {
        let verdict = sandwich.judge(broken);
        let named = verdict.findings.iter().any(|f| f.parameter == "first" && f.question == Question::Present);
        assert!(named, "{op}: {}", verdict.report());
        let cut = verdict.cut.clone().unwrap_or_default() + " ";
        assert!(cut.contains(op) && cut.contains("use "), "{op}: {cut}");
        assert_eq!(cut.matches("has no backward pass").count(), 1, "{op} is named once: {cut}");
        assert!(!verdict.findings.iter().any(|f| f.parameter == "second"), "{op}: {}", verdict.report());
        let verdict = sandwich.judge(healthy);
        assert!(verdict.passed() && verdict.cut.is_none(), "{op}: {}", verdict.report());
    }
}

#[test]
fn a_custom_op_without_a_backward_pass_is_told_by_its_entry_and_detach_is_hinted_at() {
    let sandwich = Sandwich::new(DType::F32);
    let detached = sandwich.judge(|x, _| Ok(x.detach()));
    assert!(detached.cut.as_ref().is_some_and(|cut| cut.contains("detach()")), "{}", detached.report());
    let custom = sandwich.judge(|x, _| x.contiguous()?.apply_op1_no_bwd(&Doubled));
    assert!(custom.cut.as_ref().is_some_and(|cut| cut.contains("apply_op1_no_bwd")), "{}", custom.report());
}

#[test]
fn a_layout_that_loses_gradients_is_found_though_the_usual_one_is_whole() {
    let w = var("w", &[3, 4], 0.5, DType::F32);
    let x = var("x", &[3, 4], 1.0, DType::F32).1.as_tensor().detach();
    let tensor = w.1.as_tensor().clone();
    // The fused norm runs on contiguous inputs only; here the layout of the data decides.
    let mut model = Model::from_vars(vec![w], vec![x], move |inputs| {
        let fused = !inputs[0].is_contiguous();
        let hidden = (&tensor * inputs[0].contiguous()?)?;
        let gain = Tensor::ones(4, DType::F32, &Device::Cpu)?;
        let normed = if fused { candle_nn::ops::rms_norm(&hidden, &gain, 1e-5)? } else { hidden };
        normed.powf(3.0)?.sum_all()
    });
    let verdict = model.judge().unwrap();
    assert_eq!(verdict.findings.len(), 1, "{}", verdict.report());
    assert!(verdict.findings[0].evidence.starts_with("with inputs that are not contiguous: has no gradient"));
}

fn linear(dtype: DType) -> (VarMap, impl Fn(&[Tensor]) -> Result<Tensor>) {
    let map = VarMap::new();
    for (name, shape) in [("w", vec![4, 3]), ("b", vec![4]), ("v", vec![2, 4])] {
        map.data().lock().unwrap().insert(name.to_owned(), var(name, &shape, 0.4, dtype).1);
    }
    let get = |name: &str| map.data().lock().unwrap()[name].as_tensor().clone();
    let (w, b, v) = (get("w"), get("b"), get("v"));
    let loss = move |inputs: &[Tensor]| {
        let hidden = inputs[0].matmul(&w.t()?)?.broadcast_add(&b)?.tanh()?;
        (hidden.matmul(&v.t()?)? - 1.0)?.sqr()?.sum_all()
    };
    (map, loss)
}

fn sorted(map: &VarMap) -> Vec<(String, Var)> {
    let mut vars: Vec<_> = map.data().lock().unwrap().iter().map(|(n, v)| (n.clone(), v.clone())).collect();
    vars.sort_by(|a, b| a.0.cmp(&b.0));
    vars
}

fn adamw(map: &VarMap, learning_rate: f64) -> (AdamW, Rule) {
    let p = ParamsAdamW { lr: learning_rate, ..Default::default() };
    let (beta1, beta2, epsilon, weight_decay) = (p.beta1, p.beta2, p.eps, p.weight_decay);
    let rule = Rule::AdamW { learning_rate, beta1, beta2, epsilon, weight_decay };
    (AdamW::new(map.all_vars(), p).unwrap(), rule)
}

#[test]
fn candles_adamw_keeps_its_rule_in_f32_and_loses_a_bf16_parameter() {
    for (dtype, learning_rate, healthy) in
        [(DType::F64, 1e-3, true), (DType::F32, 1e-3, true), (DType::BF16, 1e-4, false)]
    {
        let (map, loss) = linear(dtype);
        let x = |n: u64| var(&format!("x{n}"), &[5, 3], 1.0, dtype).1.as_tensor().detach();
        let (mut optimizer, rule) = adamw(&map, learning_rate);
        let mut model = Model::from_vars(sorted(&map), vec![x(0)], loss)
            .optimizer(move |g| optimizer.step(g))
            .batches((1..4).map(|n| vec![x(n)]).collect())
            .rule(rule);
        let verdict = model.judge().unwrap();
        assert_eq!(verdict.passed(), healthy, "{dtype:?}: {}", verdict.report());
        assert_eq!(verdict.failed(Question::Applied), !healthy, "{dtype:?}: {}", verdict.report());
        assert!(verdict.asked.contains(&Question::Applied));
    }
}

/// The tolerance of a question goes by it.
#[test]
fn a_parameter_is_of_the_number_type_of_its_variable() {
    use shikha::arbiter::{Precision, Subject};
    let types = [
        (DType::F64, Precision::F64),
        (DType::F32, Precision::F32),
        (DType::F16, Precision::F16),
        (DType::BF16, Precision::Bf16),
    ];
    for (dtype, expected) in types {
        let (map, loss) = linear(dtype);
        let x = var("x", &[5, 3], 1.0, dtype).1.as_tensor().detach();
        let model = Model::from_vars(sorted(&map), vec![x], loss);
        let found: Vec<Precision> = model.parameters().iter().map(|parameter| parameter.precision).collect();
        assert_eq!(found, vec![expected; found.len()], "{dtype:?}");
    }
}

#[test]
fn a_variable_left_out_of_the_optimizer_is_found_unless_it_is_declared() {
    let run = |declared: bool| {
        let (map, loss) = linear(DType::F32);
        let x = var("x", &[5, 3], 1.0, DType::F32).1.as_tensor().detach();
        let vars = sorted(&map);
        let kept = vars.iter().filter(|(name, _)| name != "b").map(|(_, var)| var.clone()).collect();
        let mut optimizer = AdamW::new_lr(kept, 1e-3).unwrap();
        let mut model = Model::from_vars(vars, vec![x], loss).optimizer(move |g| optimizer.step(g));
        if declared {
            model = model.expect("b", Expectation::Held).unwrap();
        }
        model.judge().unwrap()
    };
    assert!(run(true).passed(), "{}", run(true).report());
    let verdict = run(false);
    assert!(verdict.findings.len() == 1 && verdict.findings[0].parameter == "b", "{}", verdict.report());
    assert!(verdict.findings[0].evidence.contains("moved"), "{}", verdict.report());
}

#[test]
fn an_unknown_name_in_a_declaration_is_an_error_that_lists_the_known_ones() {
    let (map, loss) = linear(DType::F32);
    let model = Model::from_vars(sorted(&map), Vec::new(), loss);
    let error = model.expect("bias", Expectation::Frozen).err().unwrap().to_string();
    assert!(error.contains("`bias`") && error.contains("b, v, w"), "{error}");
}

#[test]
fn the_variables_of_a_map_are_judged_in_the_order_of_their_names() {
    let (map, loss) = linear(DType::F32);
    let x = var("x", &[5, 3], 1.0, DType::F32).1.as_tensor().detach();
    let verdict = Model::new(&map, move || loss(std::slice::from_ref(&x))).judge().unwrap();
    let names: Vec<&str> = verdict.norms.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["b", "v", "w"]);
    assert!(verdict.passed(), "{}", verdict.report());
}
