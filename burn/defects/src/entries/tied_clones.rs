//! Two clones of one parameter, as weight tying is easily written: one of them stays behind.

use crate::asked::ask;
use crate::catalogue::{Asked, CheckError, Entry, Kind, Training, Verdict};
use crate::gradients::{collect, shared};
use crate::probe::{device, furthest, numbers, tensor};
use crate::training::{RATE as ADAMW_RATE, adamw, by, start, train};
use burn::module::{Module, Param};
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::{DType, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-tied-clones",
    title: "two clones of one Param share an identity: one is updated, with the other's gradient, and they drift apart",
    kind: Kind::WrongGradient,
    report: None,
    reading: Some("possible: a wrong gradient from an idiom that every tied model needs"),
    reproduce: || judge(true),
    control: || judge(false),
    arbiter: Asked::Model(|defective| {
        let input = |n: usize| tensor([4, 6], 1 + n as u32, DType::F32, &device());
        let start = tensor([6, 5], 2, DType::F32, &device());
        ask(tied(start, defective), move |m: &Tied, n| loss(&input(n), m.embedding.val(), m.head()))
    }),
    training: Training::Runs(|defective, seed| {
        let of = |shape, name: &str| start(shape, seed, name, (&device(), DType::F32));
        train(tied(of([6, 5], "tied"), defective), by(adamw(), ADAMW_RATE), |m: &Tied, step| {
            loss(&(of([4, 6], &format!("batch/{step}")) * 2.0), m.embedding.val(), m.head())
        })
    }),
    workaround: "store one Param and use its val() in both places",
};

const RATE: f64 = 0.5;
const STEPS: usize = 3;

#[derive(Module, Debug)]
struct Tied {
    embedding: Param<Tensor<2>>,
    head: Option<Param<Tensor<2>>>,
}

impl Tied {
    fn head(&self) -> Tensor<2> {
        self.head.as_ref().unwrap_or(&self.embedding).val()
    }
}

fn tied(start: Tensor<2>, clones: bool) -> Tied {
    let embedding = Param::from_tensor(start);
    Tied { head: clones.then(|| embedding.clone()), embedding }
}

/// Embeds and projects back with the same weight, as a tied language model does.
fn loss(input: &Tensor<2>, embedding: Tensor<2>, head: Tensor<2>) -> Tensor<1> {
    (input.clone().matmul(embedding).tanh().matmul(head.transpose()) - 1).square().mean()
}

fn judge(clones: bool) -> Result<Verdict, CheckError> {
    let device = device();
    let input = tensor([4, 6], 1, DType::F32, &device);
    let start = tensor([6, 5], 2, DType::F32, &device);
    let mut model = tied(start.clone(), clones);
    let mut optimizer = SgdConfig::new().init();
    let mut by_hand = start;
    let mut names: Vec<String> = Vec::new();
    for _ in 0..STEPS {
        let gradients = loss(&input, model.embedding.val(), model.head()).backward();
        let seen = collect(&model, &gradients);
        names = shared(&seen).into_iter().flatten().map(str::to_owned).collect();
        let gradients = GradientsParams::from_grads(gradients, &model);
        model = optimizer.step(RATE, model, gradients);
        by_hand = step_by_hand(&input, by_hand)?;
    }
    let (expected, first) = (numbers(by_hand), numbers(model.embedding.val()));
    let second = numbers(model.head());
    let (wrong, apart) = (furthest(&first, &expected).max(furthest(&second, &expected)), furthest(&first, &second));
    let evidence = format!(
        "after {STEPS} SGD steps the two uses differ by up to {apart:.2e}, and by up to {wrong:.2e} from one weight \
         trained by hand; parameters that share an identity: {names:?}"
    );
    Ok(Verdict::when(wrong > 1e-5, evidence))
}

fn step_by_hand(input: &Tensor<2>, weight: Tensor<2>) -> Result<Tensor<2>, CheckError> {
    let leaf = weight.detach().require_grad();
    let gradients = loss(input, leaf.clone(), leaf.clone()).backward();
    let gradient = leaf.grad(&gradients).ok_or_else(|| CheckError::NoParameter("weight".to_owned()))?;
    Ok(leaf.detach() - Tensor::from_inner(gradient) * RATE)
}
