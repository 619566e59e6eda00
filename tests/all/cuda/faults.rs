//! Faults planted in every kernel must be seen. Only the named kernel runs with its fault, so what is seen is its own.

use super::cpu::{Cpu, Hosts, family};
use super::host::{Host, compiler};
use super::judge;
use half::bf16;
use shikha::ops::cuda::check::{Case, single};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Source file, kernel without number type and width, a text of its source, and what a fault makes of it.
type Fault = (&'static str, &'static str, &'static str, &'static str);

const BARRIER: &str = "x = warp_sum(x);\n    if (lane() == 0) room[warp()] = x;\n    __syncthreads();";
const NO_BARRIER: &str = "x = warp_sum(x);\n    if (lane() == 0) room[warp()] = x;";

/// Faults in the kernels that have no tiles: missing barriers, wrong bounds, wrong factors.
const ROW_FAULTS: &[Fault] = &[
    ("rms_norm", "rms_norm_forward", "if (row >= rows) return;", "if (row + 1 >= rows) return;"),
    ("rms_norm", "rms_norm_forward", "/ width + epsilon", "/ (width + 1) + epsilon"),
    ("rms_norm", "rms_norm_forward", "step = WARP / 2; step > 0", "step = WARP / 4; step > 0"),
    ("rms_norm", "rms_norm_backward", BARRIER, NO_BARRIER),
    ("rms_norm", "rms_norm_backward", "    __syncthreads(); // all have read: the room is free again\n", ""),
    ("rms_norm", "rms_norm_backward", "row += gridDim.x", "row += gridDim.x + 1"),
    ("rms_norm", "rms_norm_backward", "* r * r / width", "* r / width"),
    ("rms_norm", "rms_norm_gain", "part < parts", "part + 1 < parts"),
    ("rms_norm", "rms_norm_gain", "if (column >= width)", "if (column + 1 >= width)"),
    ("rms_norm", "rms_norm_gain", ".at[0] + sum}", ".at[0] - sum}"),
    (
        "cross_entropy",
        "cross_entropy",
        "step));\n    if (lane() == 0) room[warp()] = x;\n    __syncthreads();",
        "step));\n    if (lane() == 0) room[warp()] = x;",
    ),
    ("cross_entropy", "cross_entropy", "(i + j == target ? scale : 0)", "(i + j == target ? 1 : 0)"),
    ("cross_entropy", "cross_entropy", "sum *= expf(max - larger);", ""),
    ("cross_entropy", "cross_entropy_total", BARRIER, NO_BARRIER),
    ("cross_entropy", "cross_entropy_total", "i < rows; i += blockDim.x", "i + 1 < rows; i += blockDim.x"),
    ("cross_entropy", "cross_entropy_total", "put(total, fetch<1>(total).at[0] + sum)", "put(total, sum)"),
    (
        "embedding",
        "embedding_forward",
        "i < width; i += blockDim.x * N) {\n        const P",
        "i + N < width; i += blockDim.x * N) {\n        const P",
    ),
    ("embedding", "embedding_forward", ".at[0]) * width;\n    T *const to", ".at[0]) * (width - 1);\n    T *const to"),
    ("embedding", "embedding_backward_pieces", "place < end", "place + 1 < end"),
    ("embedding", "embedding_backward_pieces", "if (add) sum = load<N>(to + i);", ""),
    ("embedding", "embedding_backward_rows", "slot < end", "slot + 1 < end"),
    ("embedding", "embedding_backward_rows", "Floats<N> sum = load<N>(to + i);", "Floats<N> sum = {};"),
    ("rope", "rope", "b * cosine + a * sine", "b * cosine - a * sine"),
    ("rope", "rope", "position = start + row % time", "position = row % time"),
    ("rope", "rope", "if (pair >= pairs)", "if (pair + 1 >= pairs)"),
    ("swiglu", "swiglu_forward", "a.at[j] *= sigmoid", "a.at[j] = sigmoid"),
    ("swiglu", "swiglu_forward", "i < count; i += stride", "i + N < count; i += stride"),
    ("swiglu", "swiglu_backward", "(s + silu * (1 - s))", "(s + silu)"),
    ("adamw", "adamw", "v.at[j] * correct", "v.at[j]"),
    ("adamw", "adamw", "i < count; i += stride", "i + N < count; i += stride"),
    ("adamw", "adamw", "if (copy != nullptr)", "if (copy != nullptr && i + N < count)"),
    ("adamw", "adamw", "store<N>(copy + i, p)", "store<N>(copy + i, m)"),
    ("norm", "norm_partial", BARRIER, NO_BARRIER),
    ("norm", "norm_partial", "i < end; i += blockDim.x * N", "i + N < end; i += blockDim.x * N"),
    ("norm", "norm_partial", "double(g.at[j]) * g.at[j]", "double(g.at[j])"),
    ("norm", "norm_finish", BARRIER, NO_BARRIER),
    ("norm", "norm_finish", "norm > limit ? limit / norm : 1", "1"),
    ("norm", "norm_finish", "i < count; i += blockDim.x", "i + 1 < count; i += blockDim.x"),
    ("norm", "norm_finish", "pow(beta2, taken)", "pow(beta1, taken)"),
];

/// What is seen of a fault: a case that fails with the faulty kernel, in one order or in the bits of several.
fn seen(hosts: &Rc<Hosts>, (file, kernel, right, wrong): Fault, more: &[(&str, &str)], cases: &[Case<Cpu>]) -> String {
    let faults = [&[(right, wrong)], more].concat();
    let host = Rc::new(Host::with(file, &faults));
    let mut verdicts =
        cases.iter().filter_map(|case| judge(case, |order| Cpu::new(hosts, order).with_fault(kernel, &host)).err());
    verdicts.next().unwrap_or_else(|| panic!("not caught in {kernel}: {right:?} → {wrong:?}"))
}

#[test]
fn faults_in_row_wise_kernels_are_caught() {
    if !compiler() {
        return;
    }
    let hosts = Hosts::new();
    for &fault in ROW_FAULTS {
        let cases = match fault.0 {
            "rms_norm" => vec![single::norm::<Cpu, f32>(1030, 33)],
            "cross_entropy" => vec![single::loss::<Cpu, f32, f32>(3, 1030)],
            "embedding" => vec![single::embedding::<Cpu, f32>(65, 33)],
            "rope" => vec![single::rope::<Cpu, f32>(1, 7, 5)],
            // The second so that one number weighs.
            "adamw" | "norm" => [70_001, 33].map(single::optimizer::<Cpu, bf16>).into(),
            _ => vec![single::swiglu::<Cpu, f32>(33)],
        };
        println!("{}: {}: {:?}", fault.1, seen(&hosts, fault, &[], &cases), fault.2);
    }
}

/// Faults in the two files of attention and in the tiles that they share.
const TILE_FAULTS: &[Fault] = &[
    ("attention_forward", "attention_forward", "width);\n    __syncthreads();\n    lefts", "width);\n    lefts"),
    ("attention_forward", "attention_forward", "        __syncthreads(); // all have read what the tiles held\n", ""),
    (
        "attention_forward",
        "attention_forward",
        "width);\n        __syncthreads();\n        Sum s",
        "width);\n        Sum s",
    ),
    ("attention_forward", "attention_forward", "start <= first", "start < first"),
    ("attention_forward", "attention_forward", " > row + sum_row", " >= row + sum_row"),
    ("attention_forward", "attention_forward", "[2 * r + i % 2] *= shrink;", "[2 * r + i % 2] *= 1;"),
    (
        "attention_forward",
        "attention_forward",
        "first + row < rows && column < width",
        "first + row + 1 < rows && column < width",
    ),
    ("attention_forward", "attention_forward", "i < TILE * (D / N)", "i + 1 < TILE * (D / N)"),
    ("attention_forward", "attention_forward", "column + j < width; j++", "column + j + 1 < width; j++"),
    ("attention_backward", "attention_dots", "if (i >= rows * heads)", "if (i + 1 >= rows * heads)"),
    ("attention_backward", "attention_dots", "j = lane(); j < width", "j = lane() + 1; j < width"),
    ("attention_backward", "attention_dots", "sum = warp_sum(sum);", ""),
    ("attention_backward", "attention_queries", "width);\n    __syncthreads();\n    lefts", "width);\n    lefts"),
    ("attention_backward", "attention_queries", "        __syncthreads(); // all have read what the tiles held\n", ""),
    ("attention_backward", "attention_queries", "(x - dot[i % 4 / 2]) * scale", "(x - dot[i % 4 / 2])"),
    ("attention_backward", "attention_queries", "(row < rows && column < width)", "(row + 1 < rows && column < width)"),
    (
        "attention_backward",
        "attention_keys",
        "            __syncthreads(); // all have read what the tiles held\n            fill<D>(queries",
        "            fill<D>(queries",
    ),
    ("attention_backward", "attention_keys", "start = first; start < s.time", "start = first + TILE; start < s.time"),
    ("attention_backward", "attention_keys", "(x - dot[column]) * scale", "(x - dot[column])"),
    ("attention_backward", "attention_keys", "__syncthreads();\n            for (uint32_t j", "for (uint32_t j"),
];

#[test]
fn faults_in_attention_are_caught() {
    if !compiler() {
        return;
    }
    let hosts = Hosts::new();
    // The second has rows that do not split into packets.
    let cases = [[1, 130, 2, 1, 32], [2, 7, 2, 1, 5]].map(single::attention::<Cpu, f32>);
    for &fault in TILE_FAULTS {
        // One width of one number type is enough for a fault, and quicker to compile.
        let narrow = [("KERNELS(64)\nKERNELS(128)", ""), (" KERNEL(bf16, bf16, D)", "")];
        println!("{}: {}: {:?}", fault.1, seen(&hosts, fault, &narrow, &cases), fault.2);
    }
}

#[test]
fn every_kernel_has_a_fault_planted_in_it() {
    let faulty: BTreeSet<&str> = ROW_FAULTS.iter().chain(TILE_FAULTS).map(|fault| fault.1).collect();
    let rows = super::resources::rows();
    assert_eq!(faulty, rows.iter().map(|row| family(&row[0])).collect::<BTreeSet<_>>());
}
