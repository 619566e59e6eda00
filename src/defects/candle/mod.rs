//! Candle on the CPU, an entry a file.
//!
//! `candle_lacks` is set by the matrix for older versions that have no such function.

mod adamw_bf16;
mod adamw_f16;
mod adamw_state;
mod all_vars_order;
mod bf16_bias;
mod bf16_cross_entropy;
mod bf16_embedding;
mod bf16_sum;
mod constants;
mod conv1d_kernel;
mod cpu_seed;
mod deep_graph;
#[cfg(not(candle_lacks = "flash-attention"))]
mod flash_attention;
mod flash_attention_cuda;
mod graph_kept;
mod layer_norm;
mod linear_strided;
mod linear_transposed;
mod max_pool2d;
mod non_scalar_backward;
mod notebook_identities;
mod quantised_matmul;
mod rms_norm;
mod rope;
mod rope_interleaved;
#[cfg(not(candle_lacks = "rope-tables"))]
mod rope_tables;
mod rope_thd;
#[cfg(not(candle_lacks = "scatter"))]
mod scatter;
mod scatter_add;
mod skipped_gradient;
mod softmax_last_dim;
mod upsample;
mod var_set;

use super::Entry;

/// Every Candle entry, by kind: missing gradients first.
pub(super) fn entries() -> Vec<Entry> {
    vec![
        rms_norm::ENTRY,
        layer_norm::ENTRY,
        rope::ENTRY,
        rope_interleaved::ENTRY,
        rope_thd::ENTRY,
        softmax_last_dim::ENTRY,
        #[cfg(not(candle_lacks = "flash-attention"))]
        flash_attention::ENTRY,
        flash_attention_cuda::ENTRY,
        quantised_matmul::ENTRY,
        notebook_identities::ENTRY,
        scatter_add::ENTRY,
        upsample::ENTRY,
        #[cfg(not(candle_lacks = "scatter"))]
        scatter::ENTRY,
        max_pool2d::ENTRY,
        conv1d_kernel::ENTRY,
        var_set::ENTRY,
        #[cfg(not(candle_lacks = "rope-tables"))]
        rope_tables::ENTRY,
        linear_transposed::ENTRY,
        adamw_bf16::ENTRY,
        adamw_f16::ENTRY,
        bf16_sum::ENTRY,
        bf16_cross_entropy::ENTRY,
        bf16_embedding::ENTRY,
        bf16_bias::ENTRY,
        adamw_state::ENTRY,
        graph_kept::ENTRY,
        constants::ENTRY,
        linear_strided::ENTRY,
        deep_graph::ENTRY,
        cpu_seed::ENTRY,
        all_vars_order::ENTRY,
        skipped_gradient::ENTRY,
        non_scalar_backward::ENTRY,
    ]
}
