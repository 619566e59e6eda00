//! The small models that the catalogue trains with and without a defect.

use crate::rng::Stream;
use candle_core::{D, DType, Device, Result, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW, loss, ops, rotary_emb};

/// Steps of a run.
pub const STEPS: usize = 80;
/// The learning rate of AdamW, without weight decay.
pub const RATE: f64 = 1e-2;

const VOCABULARY: usize = 16;
const WIDTH: usize = 16;
const HEADS: usize = 2;
const HEAD: usize = WIDTH / HEADS;
const TIME: usize = 12;
const BATCH: usize = 4;
const LAYERS: usize = 2;

/// Normal numbers of the stream `name` under `seed`, times `scale`.
pub fn normal(shape: &[usize], scale: f64, seed: u64, name: &str) -> Result<Tensor> {
    let stream = Stream::new(seed, name);
    let values = (0..shape.iter().product::<usize>() as u64).map(|i| (scale * stream.normal(i)) as f32).collect();
    Tensor::from_vec::<_, f32>(values, shape, &Device::Cpu)
}

/// A variable that starts with [`normal`] numbers.
pub fn weight(shape: &[usize], scale: f64, seed: u64, name: &str, dtype: DType) -> Result<Var> {
    Var::from_tensor(&normal(shape, scale, seed, name)?.to_dtype(dtype)?)
}

/// Candle's AdamW over `vars`.
///
/// # Errors
/// When a variable is not made of floats.
pub fn adamw(vars: &[Var]) -> Result<AdamW> {
    AdamW::new(vars.to_vec(), ParamsAdamW { lr: RATE, weight_decay: 0.0, ..ParamsAdamW::default() })
}

/// Trains `vars` for [`STEPS`] steps on `loss(step)`; gives the losses.
pub fn train(vars: &[Var], loss: impl Fn(usize) -> Result<Tensor>) -> Result<Vec<f64>> {
    let mut optimizer = adamw(vars)?;
    let step = |step| {
        let loss = loss(step)?;
        optimizer.backward_step(&loss)?;
        scalar(&loss)
    };
    (0..STEPS).map(step).collect()
}

/// The loss as a number.
pub fn scalar(loss: &Tensor) -> Result<f64> {
    loss.to_dtype(DType::F64)?.mean_all()?.to_scalar()
}

/// Two layers with `middle` between them, on a fixed target: x·A → `middle` → ·B, mean squared error.
///
/// `shape` is what `middle` is given, its first axis the batch of 16.
pub fn sandwich(middle: impl Fn(&Tensor) -> Result<Tensor>, shape: &[usize], seed: u64) -> Result<Vec<f64>> {
    let (rows, inner) = (shape[0], shape[1..].iter().product());
    let a = weight(&[8, inner], 0.5, seed, "a", DType::F32)?;
    let outer = middle(&Tensor::zeros(shape, DType::F32, &Device::Cpu)?)?.elem_count() / rows;
    let b = weight(&[outer, 4], 0.5 / (outer as f64).sqrt(), seed, "b", DType::F32)?;
    let teacher = normal(&[8, 4], 0.7, seed, "teacher")?;
    train(&[a.clone(), b.clone()], |step| {
        let x = normal(&[rows, 8], 1.0, seed, &format!("batch/{step}"))?;
        let target = x.matmul(&teacher)?.tanh()?;
        let hidden = middle(&x.matmul(&a)?.reshape(shape)?)?.reshape((rows, outer))?;
        loss::mse(&hidden.matmul(&b)?, &target)
    })
}

/// An op of three tensors.
pub type Ternary = fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>;

/// The places of a small decoder that a defect can stand in.
#[derive(Clone, Copy)]
pub struct Decoder {
    /// Norm of [rows, WIDTH] with a gain.
    pub norm: fn(&Tensor, &Tensor) -> Result<Tensor>,
    /// Turns [batch, heads, time, head] by tables of cos and sin.
    pub turn: Ternary,
    /// Softmax over the last axis.
    pub softmax: fn(&Tensor) -> Result<Tensor>,
    /// Attention of its own over turned queries, keys and values, in place of the composed one.
    pub attend: Option<Ternary>,
    /// The loss of logits [rows, vocabulary].
    pub loss: fn(&Tensor, &Tensor) -> Result<Tensor>,
    /// Type of the variables.
    pub stored: DType,
}

impl Decoder {
    /// Every part with a right gradient.
    pub const HEALTHY: Decoder = Decoder {
        norm: |x, gain| ops::rms_norm_slow(x, gain, 1e-5),
        turn: rotary_emb::rope_slow,
        softmax: |x| ops::softmax(x, D::Minus1),
        attend: None,
        loss: loss::cross_entropy,
        stored: DType::F32,
    };

    /// The variables for a seed: embedding, head, then six a layer.
    pub fn vars(&self, seed: u64) -> Result<Vec<Var>> {
        let matrix =
            |name: String, shape: [usize; 2]| weight(&shape, 1.0 / (shape[0] as f64).sqrt(), seed, &name, self.stored);
        let mut vars = vec![
            weight(&[VOCABULARY, WIDTH], 1.0, seed, "embedding", self.stored)?,
            matrix("head".to_owned(), [WIDTH, VOCABULARY])?,
        ];
        for layer in 0..LAYERS {
            vars.push(Var::ones(WIDTH, self.stored, &Device::Cpu)?);
            for part in ["qkv", "out", "up", "down"] {
                let shape = match part {
                    "qkv" => [WIDTH, 3 * WIDTH],
                    "up" => [WIDTH, 2 * WIDTH],
                    "down" => [2 * WIDTH, WIDTH],
                    _ => [WIDTH, WIDTH],
                };
                vars.push(matrix(format!("{layer}/{part}"), shape)?);
            }
            vars.push(Var::ones(WIDTH, self.stored, &Device::Cpu)?);
        }
        Ok(vars)
    }

    /// The loss of batch `step`: every token is the one before the last, but one in eight is another.
    pub fn loss_of(&self, vars: &[Var], seed: u64, step: usize) -> Result<Tensor> {
        let (inputs, targets) = batch(seed, step)?;
        (self.loss)(&self.logits(vars, &inputs)?, &targets)
    }

    /// Logits [BATCH·TIME, VOCABULARY].
    pub fn logits(&self, vars: &[Var], inputs: &Tensor) -> Result<Tensor> {
        let compute = |var: &Var| var.to_dtype(DType::F32);
        let mut x = compute(&vars[0])?.index_select(inputs, 0)?;
        for layer in vars[2..].chunks(6) {
            let layer = layer.iter().map(compute).collect::<Result<Vec<_>>>()?;
            let attended = self.attention(&(self.norm)(&x, &layer[0])?.matmul(&layer[1])?)?;
            x = (x + attended.matmul(&layer[2])?)?;
            let up = (self.norm)(&x, &layer[5])?.matmul(&layer[3])?;
            x = (x + up.silu()?.matmul(&layer[4])?)?;
        }
        x.matmul(&compute(&vars[1])?)
    }

    fn attention(&self, qkv: &Tensor) -> Result<Tensor> {
        let part = |i: usize| {
            let part = qkv.narrow(1, i * WIDTH, WIDTH)?.reshape((BATCH, TIME, HEADS, HEAD))?;
            part.transpose(1, 2)?.contiguous()
        };
        let (cos, sin) = tables()?;
        let (q, k, v) = ((self.turn)(&part(0)?, &cos, &sin)?, (self.turn)(&part(1)?, &cos, &sin)?, part(2)?);
        let mixed = match self.attend {
            Some(attend) => attend(&q, &k, &v)?,
            None => {
                let scores = (q.matmul(&k.t()?.contiguous()?)? / (HEAD as f64).sqrt())?;
                (self.softmax)(&scores.broadcast_add(&mask()?)?)?.matmul(&v)?
            }
        };
        mixed.transpose(1, 2)?.contiguous()?.reshape((BATCH * TIME, WIDTH))
    }

    /// A whole run.
    pub fn run(&self, seed: u64) -> Result<Vec<f64>> {
        let vars = self.vars(seed)?;
        train(&vars, |step| self.loss_of(&vars, seed, step))
    }
}

fn batch(seed: u64, step: usize) -> Result<(Tensor, Tensor)> {
    let stream = Stream::new(seed, &format!("tokens/{step}"));
    let (mut inputs, mut targets) = (Vec::new(), Vec::new());
    for row in 0..BATCH as u64 {
        let at = |i: u64| row * 100 + i;
        let mut tokens: Vec<u32> = (0..2).map(|i| stream.below(at(i), VOCABULARY as u64) as u32).collect();
        for i in 2..=TIME as u64 {
            let fresh = stream.below(at(i), 8 * VOCABULARY as u64) as usize;
            tokens.push(if fresh < VOCABULARY { fresh as u32 } else { tokens[i as usize - 2] });
        }
        inputs.extend(&tokens[..TIME]);
        targets.extend(&tokens[1..]);
    }
    let tensor = |ids: Vec<u32>| Tensor::from_vec(ids, BATCH * TIME, &Device::Cpu);
    Ok((tensor(inputs)?, tensor(targets)?))
}

/// Tables of cos and sin [TIME, HEAD/2].
fn tables() -> Result<(Tensor, Tensor)> {
    let half = HEAD / 2;
    let angle = |i: usize| (i / half) as f32 * 100f32.powf(-((i % half) as f32) / half as f32);
    let angles = Tensor::from_vec((0..TIME * half).map(angle).collect(), (TIME, half), &Device::Cpu)?;
    Ok((angles.cos()?, angles.sin()?))
}

/// 0 where a query may look, else −∞ for the softmax.
fn mask() -> Result<Tensor> {
    let value = |i: usize| if i % TIME > i / TIME { f32::NEG_INFINITY } else { 0.0 };
    Tensor::from_vec((0..TIME * TIME).map(value).collect(), (TIME, TIME), &Device::Cpu)
}
