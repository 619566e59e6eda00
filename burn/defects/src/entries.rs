//! One file per defect. Each shows the harm with numbers, and beside it the way round it.

mod adamw_bf16;
mod alias_field;
mod autotune_corruption;
mod clip_overflow;
mod clip_per_tensor;
mod col_layout_init;
mod col_layout_leaf;
mod cross_entropy_dtype;
mod deep_graph_overflow;
mod fusion_handles;
mod fusion_segfault;
mod gelu_gradient;
mod graph_memory;
mod init_mapper;
mod linear_batched_weight_gradient;
mod ndarray_sigmoid;
mod param_initialized;
mod param_map;
mod plain_device;
mod rank3_matmul;
mod tied_clones;
mod to_device;

use crate::catalogue::Entry;

/// Every entry, in a fixed order.
pub fn all() -> Vec<Entry> {
    vec![
        linear_batched_weight_gradient::ENTRY,
        rank3_matmul::ENTRY,
        param_map::ENTRY,
        param_initialized::ENTRY,
        init_mapper::ENTRY,
        to_device::ENTRY,
        plain_device::ENTRY,
        col_layout_leaf::ENTRY,
        alias_field::ENTRY,
        tied_clones::ENTRY,
        gelu_gradient::ENTRY,
        col_layout_init::ENTRY,
        clip_per_tensor::ENTRY,
        clip_overflow::ENTRY,
        adamw_bf16::ENTRY,
        ndarray_sigmoid::ENTRY,
        cross_entropy_dtype::ENTRY,
        graph_memory::ENTRY,
        deep_graph_overflow::ENTRY,
        fusion_handles::ENTRY,
        fusion_segfault::ENTRY,
        autotune_corruption::ENTRY,
    ]
}
