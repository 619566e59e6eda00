//! The CUDA kernels, run on the CPU: each against the CPU op in f64, with threads in three orders that must
//! give the same bits, and with faults planted in their source that must be seen; then a whole model of them.
//! With the feature `cuda` and a GPU the same cases and the same model run there.

#[path = "cuda/cpu.rs"]
mod cpu;
#[path = "cuda/faults.rs"]
mod faults;
#[path = "cuda/host.rs"]
mod host;
#[path = "cuda/model.rs"]
mod model;
#[path = "cuda/resources.rs"]
mod resources;
#[path = "cuda/train.rs"]
mod train;

use cpu::{Cpu, Hosts};
use host::compiler;
use shikha::ops::cuda::check::{self, Case};

/// Orders of threads: forwards, backwards, shuffled.
const ORDERS: [u32; 3] = [0, 1, 7];

/// Whether a case is right, and the same to the bit in every order of threads.
fn judge(case: &Case<Cpu>, machine: impl Fn(u32) -> Cpu) -> Result<(), String> {
    let mut first = None;
    for order in ORDERS {
        let outcome = case.run(&mut machine(order)).map_err(|e| format!("{e} in order {order}"))?;
        if *first.get_or_insert(outcome.bits) != outcome.bits {
            return Err(format!("{}: order {order} gives other bits", case.name));
        }
    }
    Ok(())
}

fn all_right(cases: Vec<Case<Cpu>>) {
    if !compiler() {
        return;
    }
    let hosts = Hosts::new();
    for case in cases {
        judge(&case, |order| Cpu::new(&hosts, order)).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn row_wise_kernels_are_those_of_the_cpu() {
    all_right(check::row_wise());
}

#[test]
fn losses_are_those_of_the_cpu() {
    all_right(check::losses());
}

#[test]
fn attention_is_that_of_the_cpu() {
    all_right(check::attention());
}

#[test]
fn the_optimizer_is_that_of_the_cpu() {
    all_right(check::optimizer());
}

/// On a GPU, where there is one: the same cases, each twice with the same bits.
#[cfg(feature = "cuda")]
#[test]
fn every_case_is_right_on_a_gpu() {
    let mut device = match shikha::ops::cuda::Device::open(0) {
        Ok(device) => device,
        Err(error) => return eprintln!("not measured: {error}"),
    };
    for case in check::all() {
        let [first, again] = [(); 2].map(|()| case.run(&mut device).unwrap_or_else(|e| panic!("{e}")));
        assert_eq!(first, again, "{}", case.name);
    }
}

/// Here as on any machine without a GPU: one line says why, and the processor is measured when asked.
#[test]
fn without_a_gpu_one_line_says_so_and_the_processor_can_be_measured() {
    let bench = |arguments: &[&str]| {
        let program = env!("CARGO_BIN_EXE_shikha");
        let folder = tempfile::tempdir().unwrap();
        std::process::Command::new(program)
            .args(["bench", "gpu"])
            .args(arguments)
            .arg("--store")
            .arg(folder.path())
            .output()
            .unwrap()
    };
    #[cfg(feature = "cuda")]
    if shikha::ops::cuda::Device::open(0).is_ok() {
        return eprintln!("note: there is a GPU here");
    }
    let refused = bench(&[]);
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && message.lines().count() == 1, "{message}");
    let why = if cfg!(feature = "cuda") { ["NVIDIA driver", "--or-cpu"] } else { ["--features cuda", "--or-cpu"] };
    assert!(why.iter().all(|part| message.contains(part)), "{message}");
    let instead = bench(&["--or-cpu"]);
    let text = String::from_utf8(instead.stdout).unwrap();
    assert!(instead.status.success() && text.contains("tokens/s"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let corpus = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_shikha"));
        command.args(["corpus", "pocket", "--run-dir"]).arg(folder.path().join("run")).args(arguments).output().unwrap()
    };
    let refused = corpus(&["--gpu"]);
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && message.lines().count() == 1, "{message}");
    assert!(why.iter().all(|part| message.contains(part)) && !folder.path().join("run").exists(), "{message}");
    let instead = corpus(&["--gpu", "--or-cpu"]);
    let message = String::from_utf8(instead.stderr).unwrap();
    assert!(instead.status.success() && message.contains("training on the processor"), "{message}");
    let unknown = String::from_utf8(bench(&["no-such-recipe"]).stderr).unwrap();
    assert!(unknown.contains("`bn-0.4b-h100`"), "{unknown}");
}
