//! The yardstick: the same decoder composed from plain Candle ops that do have a gradient.
//!
//! This is what a Candle user writes today once the fused kernels have turned out to cut the graph:
//! composed RMSNorm, `rope_slow`, `softmax`, matrix products, `cross_entropy`, Candle's AdamW.

use candle_core::{D, DType, Device, Result, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};
use shikha::model::{Config, Parameters};
use std::collections::BTreeMap;

/// The decoder with its weights as Candle variables.
pub struct Composed {
    config: Config,
    vars: BTreeMap<String, Var>,
    cos: Tensor,
    sin: Tensor,
    mask: Tensor,
    optimizer: AdamW,
}

impl Composed {
    /// The model with the given weights, trained at a constant learning rate without decay.
    pub fn new(config: &Config, parameters: &Parameters<f32>, learning_rate: f64) -> Result<Self> {
        let mut vars = BTreeMap::new();
        for tensor in parameters.tensors() {
            let values = parameters.values(tensor).to_vec();
            vars.insert(
                tensor.name.clone(),
                Var::from_tensor(&Tensor::from_vec(values, tensor.shape.clone(), &Device::Cpu)?)?,
            );
        }
        let settings = ParamsAdamW { lr: learning_rate, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.0 };
        let optimizer = AdamW::new(vars.values().cloned().collect(), settings)?;
        let (context, half) = (config.max_position_embeddings, config.head_dim() / 2);
        let angle = |i: usize| (i / half) as f64 * config.rope_theta.powf(-((i % half) as f64) / half as f64);
        let table = |f: fn(f64) -> f64| {
            let values: Vec<f32> = (0..context * half).map(|i| f(angle(i)) as f32).collect();
            Tensor::from_vec(values, (context, half), &Device::Cpu)
        };
        let above = |i: usize| if i % context > i / context { f32::NEG_INFINITY } else { 0.0 };
        let mask = Tensor::from_vec((0..context * context).map(above).collect(), (context, context), &Device::Cpu)?;
        Ok(Composed { config: config.clone(), vars, cos: table(f64::cos)?, sin: table(f64::sin)?, mask, optimizer })
    }

    /// One step on windows of `time` tokens; gives the loss before it, nats per token.
    pub fn step(&mut self, inputs: &[u32], targets: &[u32], time: usize) -> Result<f32> {
        let loss = self.loss(inputs, targets, time)?;
        self.optimizer.backward_step(&loss)?;
        loss.to_scalar()
    }

    fn var(&self, name: &str) -> Result<&Tensor> {
        let missing = || candle_core::Error::Msg(format!("no variable called {name}"));
        Ok(self.vars.get(name).ok_or_else(missing)?.as_tensor())
    }

    fn linear(&self, x: &Tensor, name: &str) -> Result<Tensor> {
        let (b, t, d) = x.dims3()?;
        let w = self.var(&format!("{name}.weight"))?;
        x.reshape((b * t, d))?.matmul(&w.t()?)?.reshape((b, t, w.dim(0)?))
    }

    fn norm(&self, x: &Tensor, name: &str) -> Result<Tensor> {
        let mean = x.sqr()?.mean_keepdim(D::Minus1)?;
        let normed = x.broadcast_div(&(mean + self.config.rms_norm_eps)?.sqrt()?)?;
        normed.broadcast_mul(self.var(&format!("{name}.weight"))?)
    }

    fn attention(&self, x: &Tensor, prefix: &str) -> Result<Tensor> {
        let (b, t, d) = x.dims3()?;
        let (heads, kv_heads, dim) =
            (self.config.num_attention_heads, self.config.num_key_value_heads, self.config.head_dim());
        let split = |x: Tensor, heads: usize| x.reshape((b, t, heads, dim))?.transpose(1, 2)?.contiguous();
        let q = split(self.linear(x, &format!("{prefix}.q_proj"))?, heads)?;
        let k = split(self.linear(x, &format!("{prefix}.k_proj"))?, kv_heads)?;
        let v = split(self.linear(x, &format!("{prefix}.v_proj"))?, kv_heads)?;
        let (cos, sin) = (self.cos.narrow(0, 0, t)?, self.sin.narrow(0, 0, t)?);
        let q = candle_nn::rotary_emb::rope_slow(&q, &cos, &sin)?;
        let k = candle_nn::rotary_emb::rope_slow(&k, &cos, &sin)?;
        let repeat = |x: Tensor| {
            let group = heads / kv_heads;
            if group == 1 {
                return Ok(x);
            }
            x.unsqueeze(2)?.expand((b, kv_heads, group, t, dim))?.contiguous()?.reshape((b, heads, t, dim))
        };
        let (k, v) = (repeat(k)?, repeat(v)?);
        let scores = (q.matmul(&k.t()?)? * (1.0 / (dim as f64).sqrt()))?;
        let scores = scores.broadcast_add(&self.mask.narrow(0, 0, t)?.narrow(1, 0, t)?)?;
        let attended = candle_nn::ops::softmax(&scores, D::Minus1)?.matmul(&v)?;
        self.linear(&attended.transpose(1, 2)?.contiguous()?.reshape((b, t, d))?, &format!("{prefix}.o_proj"))
    }

    fn feed_forward(&self, x: &Tensor, prefix: &str) -> Result<Tensor> {
        let gate = self.linear(x, &format!("{prefix}.gate_proj"))?.silu()?;
        let up = self.linear(x, &format!("{prefix}.up_proj"))?;
        self.linear(&(gate * up)?, &format!("{prefix}.down_proj"))
    }

    /// Mean loss in nats per token.
    pub fn loss(&self, inputs: &[u32], targets: &[u32], time: usize) -> Result<Tensor> {
        let batch = inputs.len() / time;
        let ids = Tensor::from_slice(inputs, inputs.len(), &Device::Cpu)?;
        let embedding = self.var("model.embed_tokens.weight")?;
        let mut x = embedding.index_select(&ids, 0)?.reshape((batch, time, self.config.hidden_size))?;
        for layer in 0..self.config.num_hidden_layers {
            let name = |part: &str| format!("model.layers.{layer}.{part}");
            let normed = self.norm(&x, &name("input_layernorm"))?;
            x = (&x + self.attention(&normed, &name("self_attn"))?)?;
            let normed = self.norm(&x, &name("post_attention_layernorm"))?;
            x = (&x + self.feed_forward(&normed, &name("mlp"))?)?;
        }
        let hidden = self.norm(&x, "model.norm")?;
        let output = if self.config.tie_word_embeddings { "model.embed_tokens" } else { "lm_head" };
        let logits = self.linear(&hidden, output)?.reshape((inputs.len(), self.config.vocab_size))?;
        let targets = Tensor::from_slice(targets, targets.len(), &Device::Cpu)?.to_dtype(DType::U32)?;
        candle_nn::loss::cross_entropy(&logits, &targets)
    }
}
