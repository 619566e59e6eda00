//! Compiles a kernel's source for the CPU and runs its launches there.

use shikha::ops::cuda::Launch;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The shared library of one `.cu` file.
pub struct Host {
    handle: *mut c_void,
    _directory: tempfile::TempDir,
}

type Run = extern "C" fn(*mut c_void, u32, u32, u32, *mut *const c_void, u32) -> c_int;

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ops/cuda")
}

/// Whether there is a C++ compiler; says so where there is none.
pub fn compiler() -> bool {
    let found = Command::new("c++").arg("--version").output().is_ok_and(|o| o.status.success());
    if !found {
        eprintln!("note: no C++ compiler `c++` here: the kernels are not run");
    }
    found
}

impl Host {
    /// Compiles `file` with every pair of texts replaced, in it and in the headers it includes.
    pub fn with(file: &str, faults: &[(&str, &str)]) -> Host {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let mut planted = 0;
        for name in [&format!("{file}.cu"), "common.cuh", "tile.cuh", "step.cuh", "host/shim.h"] {
            let mut text = std::fs::read_to_string(sources().join(name)).unwrap();
            for (right, wrong) in faults.iter().filter(|(right, _)| text.contains(right)).collect::<Vec<_>>() {
                text = text.replacen(right, wrong, 1);
                planted += 1;
            }
            std::fs::create_dir_all(at.join("host")).unwrap();
            std::fs::write(at.join(name), text).unwrap();
        }
        assert_eq!(planted, faults.len(), "every fault is planted once: {faults:?}");
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let library = at.join(format!("{file}-{}.so", COUNT.fetch_add(1, Ordering::Relaxed)));
        let flags = [
            "-x",
            "c++",
            "-std=c++17",
            "-O1",
            "-fPIC",
            "-shared",
            "-DSHIKHA_HOST",
            "-w",
            "-U_FORTIFY_SOURCE",
            "-fno-gnu-unique",
            "-Wl,-Bsymbolic",
        ];
        let input = at.join(format!("{file}.cu"));
        let out = Command::new("c++").args(flags).arg("-o").arg(&library).arg(input).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let path = CString::new(library.to_str().unwrap()).unwrap();
        // SAFETY: a library that was just made; RTLD_LOCAL keeps its names from those of the others.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "cannot open {}", library.display());
        Host { handle, _directory: directory }
    }

    /// The kernels as they are.
    pub fn new(file: &str) -> Host {
        Self::with(file, &[])
    }

    fn symbol(&self, name: &str) -> *mut c_void {
        let c = CString::new(name).unwrap();
        // SAFETY: an open library and a string that ends.
        let found = unsafe { libc::dlsym(self.handle, c.as_ptr()) };
        assert!(!found.is_null(), "there is no kernel `{name}`");
        found
    }

    /// Runs a launch with threads in one of the orders (0 forwards, 1 backwards, else shuffled).
    pub fn run(&self, launch: &Launch, order: u32) -> Result<(), String> {
        let kernel = self.symbol(&format!("call_{}", launch.kernel));
        let mut arguments: Vec<*const c_void> = launch.arguments.iter().map(|a| std::ptr::from_ref(a).cast()).collect();
        // SAFETY: the types are those of `shim.h`; the arguments outlive the call.
        unsafe {
            let run: Run = std::mem::transmute(self.symbol("shim_launch"));
            let Launch { blocks, threads, shared, .. } = *launch;
            if run(kernel, blocks, threads, shared, arguments.as_mut_ptr(), order) != 0 {
                return Ok(());
            }
            let message: extern "C" fn() -> *const c_char = std::mem::transmute(self.symbol("shim_message"));
            Err(CStr::from_ptr(message()).to_string_lossy().into_owned())
        }
    }
}

impl Host {
    /// Bytes of global memory that the last launch read and wrote.
    pub fn traffic(&self) -> (u64, u64) {
        let (mut read, mut written) = (0, 0);
        // SAFETY: the type is that of `shim.h`.
        unsafe {
            let ask: extern "C" fn(*mut u64, *mut u64) = std::mem::transmute(self.symbol("shim_traffic"));
            ask(&raw mut read, &raw mut written);
        }
        (read, written)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: opened once; nothing of it is used any more.
        unsafe { libc::dlclose(self.handle) };
    }
}
