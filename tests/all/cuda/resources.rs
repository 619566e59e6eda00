//! What is committed of the kernels beside their source: PTX, what it takes of a device, and the bytes that move.

use super::cpu::{Cpu, Hosts, Traffic};
use super::host::compiler;
use half::bf16;
use sha2::{Digest, Sha256};
use shikha::ops::cuda::check::{Case, single};
use shikha::ops::cuda::{KERNEL_FILES, Place, embedding_forward};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ops/cuda")
}

/// The rows of `resources.csv`: kernel, architecture, registers, stack, spilled and loaded bytes, static shared bytes.
pub fn rows() -> Vec<csv::StringRecord> {
    let mut reader = csv::Reader::from_path(folder().join("ptx/resources.csv")).unwrap();
    reader.records().collect::<Result<_, _>>().unwrap()
}

#[test]
fn the_committed_ptx_is_of_the_committed_source() {
    let folder = folder();
    let list = std::fs::read_to_string(folder.join("ptx/sources.sha256")).unwrap();
    for line in list.lines() {
        let (sum, name) = line.split_once("  ./").unwrap();
        let made = name.ends_with(".ptx") || name.ends_with(".csv");
        let path = if made { folder.join("ptx").join(name) } else { folder.join(name) };
        let found: String = Sha256::digest(std::fs::read(&path).unwrap()).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(found, sum, "{name} has changed: run cuda/build.sh");
    }
    let is = |path: &Path, kinds: &[&str]| kinds.iter().any(|kind| path.extension().is_some_and(|e| e == *kind));
    let files = |at: &Path| std::fs::read_dir(at).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>();
    let (sources, made) = (files(&folder), files(&folder.join("ptx")));
    let summed = sources.iter().filter(|path| is(path, &["cu", "cuh"]));
    for path in summed.chain(made.iter().filter(|path| is(path, &["ptx", "csv"]))) {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(list.contains(&format!("  ./{name}\n")), "{name} is not compiled: run cuda/build.sh");
    }
    let kernels =
        sources.iter().filter(|path| is(path, &["cu"])).map(|path| path.file_stem().unwrap().to_str().unwrap());
    assert_eq!(kernels.collect::<BTreeSet<_>>(), KERNEL_FILES.into());
}

#[test]
fn no_kernel_that_trains_spills_more_than_two_registers() {
    let rows = rows();
    let count = |architecture| rows.iter().filter(|row| &row[1] == architecture).count();
    assert_eq!((count("sm_80"), count("sm_90")), (rows.len() / 2, rows.len() / 2));
    for row in rows.iter().filter(|row| row[0].contains("bf16")) {
        let (stored, loaded): (u32, u32) = (row[4].parse().unwrap(), row[5].parse().unwrap());
        assert!(stored.max(loaded) <= 8, "{row:?}");
    }
}

/// Every kernel at one size: 192 rows of width 128, in attention two windows of two heads.
fn cases() -> Vec<Case<Cpu>> {
    let (rows, width) = (192, 128);
    let mut cases = vec![
        single::norm::<Cpu, f32>(rows, width),
        single::norm::<Cpu, bf16>(rows, width),
        single::swiglu::<Cpu, f32>(rows * width),
        single::swiglu::<Cpu, bf16>(rows * width),
        single::embedding::<Cpu, f32>(rows, width),
        single::embedding::<Cpu, bf16>(rows, width),
        single::rope::<Cpu, f32>(2, rows / 2, 32),
        single::rope::<Cpu, bf16>(2, rows / 2, 32),
        single::loss::<Cpu, f32, f32>(rows, 512),
        single::loss::<Cpu, bf16, bf16>(rows, 512),
        single::loss::<Cpu, f32, bf16>(rows, 512),
        single::optimizer::<Cpu, f32>(4 << 16),
        single::optimizer::<Cpu, bf16>(4 << 16),
    ];
    for head in [32, 64, 128] {
        let sizes = [2, rows / 2, 2, 2, head];
        cases.extend([single::attention::<Cpu, f32>(sizes), single::attention::<Cpu, bf16>(sizes)]);
    }
    cases
}

/// Bytes that the threads of each kernel ask for in one launch, beside the fewest possible, and its shared memory.
fn traffic() -> BTreeMap<String, Traffic> {
    let mut machine = Cpu::new(&Hosts::new(), 0);
    for case in cases() {
        case.run(&mut machine).unwrap_or_else(|e| panic!("{e}"));
    }
    machine.traffic
}

#[test]
fn the_committed_traffic_is_what_every_kernel_moves() {
    if !compiler() {
        return;
    }
    let mut text = "kernel,shared bytes of the launch,bytes asked for,fewest possible\n".to_owned();
    let traffic = traffic();
    for (kernel, Traffic { shared, moved, fewest }) in &traffic {
        text += &format!("{kernel},{shared},{moved},{fewest}\n");
        assert!(moved >= fewest, "{kernel} moves {moved} bytes, fewer than the fewest, {fewest}");
        // What streams through memory once must do so; elsewhere threads share numbers that caches keep. Each thread
        // of AdamW asks for the step's 16 bytes beside 120 of its own.
        let bound = [("adamw", 116), ("swiglu", 105), ("norm_partial", 105), ("attention_dots", 105)];
        let bound = bound.iter().find(|(name, _)| kernel.starts_with(name));
        assert!(
            bound.is_none_or(|(_, most)| moved * 100 <= fewest * most),
            "{kernel}: {moved} bytes, {fewest} must be"
        );
    }
    let compiled: BTreeSet<String> = rows().iter().map(|row| row[0].to_owned()).collect();
    assert_eq!(traffic.into_keys().collect::<BTreeSet<_>>(), compiled, "every compiled kernel has its traffic counted");
    let path = folder().join("traffic.csv");
    if std::env::var_os("SHIKHA_WRITE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(committed, text, "write it with SHIKHA_WRITE=1");
}

#[test]
fn an_embedding_reads_no_row_of_its_table_that_is_not_looked_up() {
    // Three ids, rows of four numbers: a table of ten rows is read in part, one of two rows whole.
    for (rows, bytes) in [(10, 3 * 4 + (3 + 3) * 16), (2, 3 * 4 + (2 + 3) * 16)] {
        let table = Place::<f32>::new(64, 4 * rows);
        let launch = embedding_forward(Place::new(0, 3), table, Place::new(1024, 12), 4);
        assert_eq!(launch.bytes, bytes, "of a table of {rows} rows");
    }
}
