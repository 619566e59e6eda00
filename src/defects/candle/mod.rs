//! Candle 0.11.1 on the CPU, an entry a file.

mod adamw_bf16;
mod adamw_state;
mod all_vars_order;
mod bf16_cross_entropy;
mod bf16_embedding;
mod bf16_sum;
mod conv1d_kernel;
mod cpu_seed;
mod deep_graph;
mod flash_attention;
mod flash_attention_cuda;
mod graph_kept;
mod layer_norm;
mod max_pool2d;
mod non_scalar_backward;
mod quantised_matmul;
mod rms_norm;
mod rope;
mod rope_interleaved;
mod rope_thd;
mod scatter;
mod scatter_add;
mod skipped_gradient;
mod softmax_last_dim;
mod upsample;
mod var_set;

use super::Entry;

/// Every Candle entry: missing gradients first.
pub(super) fn entries() -> Vec<Entry> {
    vec![
        rms_norm::ENTRY,
        layer_norm::ENTRY,
        rope::ENTRY,
        rope_interleaved::ENTRY,
        rope_thd::ENTRY,
        softmax_last_dim::ENTRY,
        flash_attention::ENTRY,
        flash_attention_cuda::ENTRY,
        quantised_matmul::ENTRY,
        scatter::ENTRY,
        scatter_add::ENTRY,
        max_pool2d::ENTRY,
        upsample::ENTRY,
        conv1d_kernel::ENTRY,
        var_set::ENTRY,
        adamw_state::ENTRY,
        adamw_bf16::ENTRY,
        bf16_sum::ENTRY,
        bf16_cross_entropy::ENTRY,
        bf16_embedding::ENTRY,
        graph_kept::ENTRY,
        skipped_gradient::ENTRY,
        non_scalar_backward::ENTRY,
        cpu_seed::ENTRY,
        all_vars_order::ENTRY,
        deep_graph::ENTRY,
    ]
}
