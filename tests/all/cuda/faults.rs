/// Text of a kernel and what a fault makes of it.
type Fault = (&'static str, &'static str);

/// Faults in the files that have no tiles.
const ROW_FAULTS: [(&str, Fault); 16] = [
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
    ("adamw", ("v.at[j] * correct", "v.at[j]")),
    ("adamw", ("i < count; i += stride", "i + N < count; i += stride")),
    ("norm", ("norm > limit ? limit / norm : 1", "1")),
    ("norm", ("i < count; i += blockDim.x", "i + 1 < count; i += blockDim.x")),
];

/// What is seen of a fault: a case that fails with the faulty kernels, in one order or in the bits of several.
fn seen(hosts: &Rc<Hosts>, file: &'static str, faults: &[Fault], case: &Case<Cpu>) -> String {
    let host = Rc::new(Host::with(file, faults));
    let verdict = judge(case, |order| Cpu::new(hosts, order).with_fault(file, &host));
    verdict.expect_err(&format!("not caught in {file}: {faults:?}"))
}

#[test]
fn faults_in_row_wise_kernels_are_caught() {
    if !compiler() {
        return;
    }
    let hosts = Hosts::new();
    for (file, fault) in ROW_FAULTS {
        let case = match file {
            "rms_norm" => single::norm::<Cpu, f32>(1030, 33),
            "cross_entropy" => single::loss::<Cpu, f32, f32>(3, 1030),
            "embedding" => single::embedding::<Cpu, f32>(65, 33),
            "rope" => single::rope::<Cpu, f32>(1, 7, 5),
            "adamw" | "norm" => single::optimizer::<Cpu, bf16>(70_001),
            _ => single::swiglu::<Cpu, f32>(33),
        };
        println!("{file}: {}: {fault:?}", seen(&hosts, file, &[fault], &case));
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
    let (hosts, case) = (Hosts::new(), single::attention::<Cpu, f32>([1, 130, 2, 1, 32]));
    for (file, fault) in TILE_FAULTS {
        // One width is enough for a fault, and quicker to compile.
        let faults = [fault, ("KERNELS(64)\nKERNELS(128)", "")];
        println!("{file}: {}: {fault:?}", seen(&hosts, file, &faults, &case));
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
