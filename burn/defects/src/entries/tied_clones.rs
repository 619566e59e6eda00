//! Two clones of one parameter, as weight tying is easily written: one of them stays behind.

use crate::asked::ask;
use crate::catalogue::{Asked, CheckError, Entry, Kind, Training, Verdict};
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
    source: include_str!("tied_clones.rs"),
    reproduce: || judge(true),
    control: || judge(false),
    arbiter: Asked::Model(|defective| {
        let input = |n: usize| tensor([4, 6], 1 + n as u32, DType::F32, &device());
        let start = tensor([6, 5], 2, DType::F32, &device());
        ask(tied(start, defective), move |m: &Tied, n| loss(&input(n), m.embedding.val(), head(m)))
    }),
    training: Training::Runs(|defective, seed| {
        let of = |shape, name: &str| start(shape, seed, name, (&device(), DType::F32));
        train(tied(of([6, 5], "tied"), defective), by(adamw(), ADAMW_RATE), |m: &Tied, step| {
            loss(&(of([4, 6], &format!("batch/{step}")) * 2.0), m.embedding.val(), head(m))
        })
    }),
    workaround: "store one Param and use its val() in both places",
};

const RATE: f64 = 0.5;

#[derive(Module, Debug)]
struct Tied {
    embedding: Param<Tensor<2>>,
    head: Option<Param<Tensor<2>>>,
}

fn head(model: &Tied) -> Tensor<2> {
    model.head.as_ref().unwrap_or(&model.embedding).val()
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
    let of = |shape, seed| tensor(shape, seed, DType::F32, &device());
    let (input, mut by_hand) = (of([4, 6], 1), of([6, 5], 2));
    let (mut model, mut optimizer) = (tied(by_hand.clone(), clones), SgdConfig::new().init());
    for _ in 0..3 {
        let tape = loss(&input, model.embedding.val(), head(&model)).backward();
        model = optimizer.step(RATE, model.clone(), GradientsParams::from_grads(tape, &model));
        by_hand = step_by_hand(&input, by_hand);
    }
    let [first, second, expected] = [model.embedding.val(), head(&model), by_hand].map(numbers);
    let (wrong, apart) = (furthest(&first, &expected).max(furthest(&second, &expected)), furthest(&first, &second));
    let evidence =
        format!("3 SGD steps: the two uses differ by {apart:.2e}, and by {wrong:.2e} from one weight by hand");
    Ok(Verdict::when(wrong > 1e-5, evidence))
}

fn step_by_hand(input: &Tensor<2>, weight: Tensor<2>) -> Tensor<2> {
    let leaf = weight.detach().require_grad();
    let gradient = leaf.grad(&loss(input, leaf.clone(), leaf.clone()).backward());
    gradient.map_or(leaf.clone(), |g| leaf.detach() - Tensor::from_inner(g) * RATE)
}
