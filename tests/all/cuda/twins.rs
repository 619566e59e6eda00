/// The three number types in turn, each with its tolerance.
macro_rules! both {
    ($host:expr, $op:ident, $($size:expr),+) => {{
        judge($host, f32::TOLERANCE, |runner| $op::<f32>(runner, $($size),+)).unwrap_or_else(|e| panic!("f32: {e}"));
        judge($host, bf16::TOLERANCE, |runner| $op::<bf16>(runner, $($size),+)).unwrap_or_else(|e| panic!("bf16: {e}"));
    }};
}

#[test]
fn row_wise_kernels_are_those_of_the_cpu() {
    if !compiler() {
        return;
    }
    let [norm, gate, turn, table] = ["rms_norm", "swiglu", "rope", "embedding"].map(Host::new);
    for (rows, width) in [(1, 1), (7, 5), (33, 33), (65, 64), (129, 136), (3, 1024)] {
        both!(&norm, norm_op, rows, width);
        both!(&gate, swiglu_op, rows * width);
        both!(&table, embedding_op, rows, width);
    }
    for (windows, time, half) in [(1, 1, 1), (2, 7, 5), (1, 33, 16), (2, 65, 3)] {
        both!(&turn, rope_op, windows, time, half);
    }
}

#[test]
fn losses_are_those_of_the_cpu() {
    if !compiler() {
        return;
    }
    let host = Host::new("cross_entropy");
    for (rows, vocabulary) in [(1, 1), (7, 5), (5, 33), (3, 1024), (2, 4099)] {
        judge(&host, f32::TOLERANCE, |r| loss_op::<f32, f32>(r, rows, vocabulary)).unwrap();
        judge(&host, bf16::TOLERANCE, |r| loss_op::<bf16, bf16>(r, rows, vocabulary)).unwrap();
        judge(&host, bf16::TOLERANCE, |r| loss_op::<f32, bf16>(r, rows, vocabulary)).unwrap();
    }
}

fn heads(batch: usize, time: usize, heads: usize, kv_heads: usize, head_dim: usize) -> attention::Shape {
    attention::Shape { batch, time, heads, kv_heads, head_dim }
}

/// The forward and the backward file answer one runner each.
fn attention_pair<T: Number>(hosts: &[Host; 2], shape: attention::Shape) -> Result<(), String> {
    judge(&hosts[0], T::TOLERANCE, |runner| attention_op::<T>(runner, &hosts[1], shape))
}

#[test]
fn attention_is_that_of_the_cpu() {
    if !compiler() {
        return;
    }
    let hosts = ["attention_forward", "attention_backward"].map(Host::new);
    let shapes = [heads(1, 1, 1, 1, 1), heads(2, 7, 2, 1, 5), heads(1, 33, 2, 2, 33), heads(1, 65, 4, 2, 64)];
    for shape in shapes.into_iter().chain([heads(1, 129, 1, 1, 32), heads(1, 66, 1, 1, 128)]) {
        attention_pair::<f32>(&hosts, shape).unwrap_or_else(|e| panic!("f32 {shape:?}: {e}"));
        attention_pair::<bf16>(&hosts, shape).unwrap_or_else(|e| panic!("bf16 {shape:?}: {e}"));
    }
}

#[test]
fn the_optimizer_is_that_of_the_cpu() {
    if !compiler() {
        return;
    }
    let (norms, steps) = (Host::new("norm"), Host::new("adamw"));
    for count in [1, 33, 4096, 70_001] {
        let run = |runner: &Runner| {
            optimizer_op::<f32>(runner, &Runner { host: &steps, order: runner.order }, count)
        };
        judge(&norms, f32::TOLERANCE, run).unwrap();
        let run = |runner: &Runner| {
            optimizer_op::<bf16>(runner, &Runner { host: &steps, order: runner.order }, count)
        };
        judge(&norms, f32::TOLERANCE, run).unwrap();
    }
}

/// Text of a kernel and what a fault makes of it.
type Fault = (&'static str, &'static str);

/// Faults in the files that have no tiles.
const ROW_FAULTS: [(&str, Fault); 12] = [
    ("rms_norm", ("if (lane() == 0) room[warp()] = x;\n    __syncthreads();", "if (lane() == 0) room[warp()] = x;")),
    ("rms_norm", ("    __syncthreads(); // all have read: the room is free again\n", "")),
    ("rms_norm", ("row += gridDim.x", "row += gridDim.x + 1")),
    ("rms_norm", ("* r * r / width", "* r / width")),
    ("rms_norm", ("if (row >= rows) return;", "if (row + 1 >= rows) return;")),
    ("cross_entropy", ("step));\n    if (lane() == 0) room[warp()] = x;\n    __syncthreads();", "step));\n    if (lane() == 0) room[warp()] = x;")),
    ("cross_entropy", ("* share - (i + j == target ? scale : 0)", "* share - (i + j == target ? 1 : 0)")),
    ("cross_entropy", ("sum *= expf(max - larger);", "")),
    ("embedding", ("place < end", "place + 1 < end")),
    ("embedding", ("slot < end", "slot + 1 < end")),
    ("rope", ("b * cosine + a * sine", "b * cosine - a * sine")),
    ("swiglu", ("(s + silu * (1 - s))", "(s + silu)")),
];

#[test]
fn faults_in_row_wise_kernels_are_caught() {
    if !compiler() {
        return;
    }
    for (file, fault) in ROW_FAULTS {
        let host = Host::with(file, &[fault]);
        let verdict = match file {
            "rms_norm" => judge(&host, f32::TOLERANCE, |r| norm_op::<f32>(r, 1030, 33)),
            "cross_entropy" => judge(&host, f32::TOLERANCE, |r| loss_op::<f32, f32>(r, 3, 1030)),
            "embedding" => judge(&host, f32::TOLERANCE, |r| embedding_op::<f32>(r, 65, 33)),
            "rope" => judge(&host, f32::TOLERANCE, |r| rope_op::<f32>(r, 1, 7, 5)),
            _ => judge(&host, f32::TOLERANCE, |r| swiglu_op::<f32>(r, 33)),
        };
        let seen = verdict.expect_err(&format!("not caught in {file}: {fault:?}"));
        println!("{file}: {seen}: {fault:?}");
    }
}

/// Faults in the two files of attention.
const TILE_FAULTS: [(&str, Fault); 12] = [
    ("attention_forward", ("width);\n    __syncthreads();\n    lefts", "width);\n    lefts")),
    ("attention_forward", ("        __syncthreads(); // all have read what the tiles held\n", "")),
    ("attention_forward", ("width);\n        __syncthreads();\n        Sum s", "width);\n        Sum s")),
    ("attention_forward", ("start <= first", "start < first")),
    ("attention_forward", (" > row + sum_row", " >= row + sum_row")),
    ("attention_forward", ("[2 * r + i % 2] *= shrink;", "[2 * r + i % 2] *= 1;")),
    ("attention_backward", ("width);\n    __syncthreads();\n    lefts", "width);\n    lefts")),
    ("attention_backward", ("        __syncthreads(); // all have read what the tiles held\n", "")),
    ("attention_backward", ("            __syncthreads(); // all have read what the tiles held\n            fill<D>(queries", "            fill<D>(queries")),
    ("attention_backward", ("start = first; start < s.time", "start = first + TILE; start < s.time")),
    ("attention_backward", ("(x - dot[column]) * scale", "(x - dot[column])")),
    ("attention_backward", ("__syncthreads();\n            for (uint32_t j", "for (uint32_t j")),
];

#[test]
fn faults_in_attention_are_caught() {
    if !compiler() {
        return;
    }
    let right = ["attention_forward", "attention_backward"].map(Host::new);
    for (file, fault) in TILE_FAULTS {
        // One width is enough for a fault, and quicker to compile.
        let host = Host::with(file, &[fault, ("KERNELS(64)\nKERNELS(128)", "")]);
        let (forward, backward) = if file == "attention_forward" { (&host, &right[1]) } else { (&right[0], &host) };
        let verdict =
            judge(forward, f32::TOLERANCE, |runner| attention_op::<f32>(runner, backward, heads(1, 130, 2, 1, 32)));
        let seen = verdict.expect_err(&format!("not caught in {file}: {fault:?}"));
        println!("{file}: {seen}: {fault:?}");
    }
}

#[test]
fn the_committed_ptx_is_of_the_committed_source() {
    use sha2::{Digest, Sha256};
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ops/cuda");
    let list = std::fs::read_to_string(folder.join("ptx/sources.sha256")).unwrap();
    for line in list.lines() {
        let (sum, name) = line.split_once("  ./").unwrap();
        let path = if name.ends_with(".ptx") { folder.join("ptx").join(name) } else { folder.join(name) };
        let found: String = Sha256::digest(std::fs::read(&path).unwrap()).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(found, sum, "{name} has changed: run cuda/build.sh");
    }
    let sources = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    for path in sources.filter(|path| path.extension().is_some_and(|kind| kind == "cu" || kind == "cuh")) {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(list.contains(&format!("  ./{name}\n")), "{name} is not compiled: run cuda/build.sh");
    }
}

#[test]
fn no_kernel_that_trains_spills_more_than_two_registers() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ops/cuda/ptx/resources.csv");
    let mut reader = csv::Reader::from_path(path).unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
    let count = |architecture| rows.iter().filter(|row| &row[1] == architecture).count();
    assert_eq!((count("sm_80"), count("sm_90")), (rows.len() / 2, rows.len() / 2));
    for row in rows.iter().filter(|row| row[0].contains("bf16")) {
        let (stored, loaded): (u32, u32) = (row[4].parse().unwrap(), row[5].parse().unwrap());
        assert!(stored.max(loaded) <= 8, "{row:?}");
    }
}
