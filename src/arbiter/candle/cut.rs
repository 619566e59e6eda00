//! The ops of Candle that cut a graph, told by the stacks of a forward pass.

use super::tracer;
use std::collections::BTreeSet;

/// An op without a backward pass.
struct Severing {
    /// What its function's name holds.
    mark: &'static str,
    /// The op as it is called.
    op: &'static str,
    /// What to use instead.
    instead: &'static str,
}

/// Longer marks before the shorter ones they contain.
const SEVERING: [Severing; 18] = [
    Severing {
        mark: "ops::RmsNorm",
        op: "candle_nn::ops::rms_norm (candle_nn::RmsNorm on a contiguous input)",
        instead: "shikha::ops::candle::rms_norm, or candle_nn::ops::rms_norm_slow",
    },
    Severing {
        mark: "ops::LayerNorm",
        op: "candle_nn::ops::layer_norm (candle_nn::LayerNorm with a bias on a contiguous input)",
        instead: "shikha::ops::candle::layer_norm, or candle_nn::ops::layer_norm_slow",
    },
    Severing {
        mark: "ops::SoftmaxLastDim",
        op: "candle_nn::ops::softmax_last_dim",
        instead: "shikha::ops::candle::softmax_last_dim, or candle_nn::ops::softmax",
    },
    Severing {
        mark: "rotary_emb::RotaryEmbI",
        op: "candle_nn::rotary_emb::rope_i",
        instead: "shikha::ops::candle::rope_interleaved, or candle_nn::rotary_emb::rope_i_slow",
    },
    Severing {
        mark: "rotary_emb::RotaryEmbThd",
        op: "candle_nn::rotary_emb::rope_thd",
        instead: "shikha::ops::candle::rope_thd, or candle_nn::rotary_emb::rope_slow on transposed tensors",
    },
    Severing {
        mark: "rotary_emb::RotaryEmb",
        op: "candle_nn::rotary_emb::rope",
        instead: "shikha::ops::candle::rope, or candle_nn::rotary_emb::rope_slow",
    },
    Severing {
        mark: "flash_attn",
        op: "candle_nn::attention::flash_attn",
        instead: "shikha::ops::candle::causal_attention, or attention composed of matmul and candle_nn::ops::softmax",
    },
    // The same, where the compiler has put the function itself into its caller.
    Severing {
        mark: "cpu_flash",
        op: "candle_nn::attention::flash_attn",
        instead: "shikha::ops::candle::causal_attention, or attention composed of matmul and candle_nn::ops::softmax",
    },
    Severing {
        mark: "quantized::QTensor",
        op: "candle_core::quantized::QMatMul",
        instead: "the dequantised weight with Tensor::matmul",
    },
    Severing { mark: "ops::Sdpa", op: "candle_nn::ops::sdpa", instead: "shikha::ops::candle::causal_attention" },
    Severing { mark: "Tensor>::slice_set", op: "Tensor::slice_set", instead: "Tensor::slice_scatter or Tensor::cat" },
    Severing { mark: "Tensor::slice_set", op: "Tensor::slice_set", instead: "Tensor::slice_scatter or Tensor::cat" },
    Severing { mark: "apply_op1_no_bwd", op: "a custom op through apply_op1_no_bwd", instead: "apply_op1 with a bwd" },
    Severing { mark: "apply_op2_no_bwd", op: "a custom op through apply_op2_no_bwd", instead: "apply_op2 with a bwd" },
    Severing { mark: "apply_op3_no_bwd", op: "a custom op through apply_op3_no_bwd", instead: "apply_op3 with a bwd" },
    // The same, where the compiler has put that generic function into its caller.
    Severing {
        mark: "CustomOp1>::cpu_fwd",
        op: "a custom op through apply_op1_no_bwd",
        instead: "apply_op1 with a bwd",
    },
    Severing {
        mark: "CustomOp2>::cpu_fwd",
        op: "a custom op through apply_op2_no_bwd",
        instead: "apply_op2 with a bwd",
    },
    Severing {
        mark: "CustomOp3>::cpu_fwd",
        op: "a custom op through apply_op3_no_bwd",
        instead: "apply_op3 with a bwd",
    },
];

/// Runs `forward` and says which of its ops have no backward pass; in the order they ran.
pub fn explain(forward: impl FnOnce()) -> Option<String> {
    let Some(((), stacks)) = tracer::trace(forward) else {
        return Some(
            "install shikha::arbiter::candle::Tracer as the global allocator of this test to have the op named"
                .to_owned(),
        );
    };
    let mut seen = BTreeSet::new();
    let mut text = Vec::new();
    for stack in &stacks {
        let Some((severing, at)) = severed(stack) else { continue };
        let caller = stack[at..].iter().find(|name| !inside_candle(name)).map_or("", |name| readable(name));
        if seen.insert((severing.op, caller.to_owned())) {
            let place = if caller.is_empty() { String::new() } else { format!(", called in {caller}") };
            text.push(format!("{} has no backward pass{place}; use {}", severing.op, severing.instead));
        }
    }
    let named = !text.is_empty();
    named.then(|| text.join("; and ")).or_else(|| {
        Some(
            "no op without a backward pass ran: look for detach(), to_vec, or a parameter the forward does not use"
                .to_owned(),
        )
    })
}

fn severed(stack: &[String]) -> Option<(&'static Severing, usize)> {
    // Candle's own bookkeeping allocates around every op; only a kernel's allocation tells of a custom one.
    let kernel = stack.iter().any(|name| name.contains("cpu_fwd"));
    // An op that keeps its backward pass goes through `apply_op1_arc` and its like, which are never generic.
    let kept = stack.iter().any(|name| name.contains("apply_op") && name.contains("_arc"));
    let tells = |severing: &&Severing| match severing.mark {
        mark if mark.starts_with("apply_op") => kernel,
        mark if mark.starts_with("CustomOp") => !kept,
        _ => true,
    };
    SEVERING.iter().filter(tells).find_map(|severing| {
        let at = stack.iter().rposition(|name| name.contains(severing.mark))?;
        Some((severing, at))
    })
}

fn inside_candle(name: &str) -> bool {
    let inner = name.trim_start_matches(['<', '&']);
    ["candle_core", "candle_nn", "core::", "alloc::", "std::", "rayon", "__rust", "shikha::arbiter"]
        .iter()
        .any(|library| inner.starts_with(library))
}

/// A name without the compiler's closure marks.
fn readable(name: &str) -> &str {
    name.split("::{{closure}}").next().unwrap_or(name)
}
