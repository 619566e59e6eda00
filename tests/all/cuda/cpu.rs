//! The machine of these tests: kernels through the shim, memory of this process, plain products.

use super::host::Host;
use shikha::ops::cuda::{Backend, Kind, Launch, Product};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;

const FILES: [&str; 9] = [
    "adamw",
    "attention_backward",
    "attention_forward",
    "cross_entropy",
    "embedding",
    "norm",
    "rms_norm",
    "rope",
    "swiglu",
];

/// The kernels of every file, compiled when first used.
pub struct Hosts(BTreeMap<&'static str, OnceCell<Host>>);

impl Hosts {
    /// The kernels as they are.
    pub fn new() -> Rc<Hosts> {
        Rc::new(Hosts(FILES.map(|file| (file, OnceCell::new())).into()))
    }

    fn of(&self, file: &str) -> &Host {
        let (name, cell) = self.0.get_key_value(file).unwrap();
        cell.get_or_init(|| Host::new(name))
    }
}

/// What went wrong, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Wrong(String);

/// Runs everything at once, the threads of a kernel in one order.
pub struct Cpu {
    hosts: Rc<Hosts>,
    /// The kernels of one file with a fault.
    faulty: Option<(&'static str, Rc<Host>)>,
    order: u32,
    memory: Vec<Vec<u128>>,
    /// By kernel: bytes moved, and the fewest that must be.
    pub traffic: BTreeMap<String, [u64; 2]>,
}

impl Cpu {
    pub fn new(hosts: &Rc<Hosts>, order: u32) -> Cpu {
        Cpu { hosts: hosts.clone(), faulty: None, order, memory: Vec::new(), traffic: BTreeMap::new() }
    }

    pub fn with_fault(self, file: &'static str, host: &Rc<Host>) -> Cpu {
        Cpu { faulty: Some((file, host.clone())), ..self }
    }

    /// Whether bytes lie inside one of the buffers.
    fn check(&self, address: u64, bytes: usize) -> Result<(), Wrong> {
        let inside = |buffer: &Vec<u128>| {
            let start = buffer.as_ptr() as u64;
            address >= start && address + bytes as u64 <= start + 16 * buffer.len() as u64
        };
        let found = bytes == 0 || self.memory.iter().any(inside);
        if found { Ok(()) } else { Err(Wrong(format!("{bytes} bytes at {address:#x} are nowhere"))) }
    }
}

/// Numbers of a matrix.
fn matrix(address: u64, count: usize, kind: Kind) -> Vec<f64> {
    // SAFETY: the caller has checked that they are inside a buffer.
    unsafe {
        match kind {
            Kind::F32 => (0..count).map(|i| f64::from(*(address as *const f32).add(i))).collect(),
            Kind::Bf16 => (0..count).map(|i| f64::from(*(address as *const half::bf16).add(i))).collect(),
        }
    }
}

impl Backend for Cpu {
    type Error = Wrong;

    fn allocate(&mut self, bytes: usize) -> Result<u64, Wrong> {
        let buffer = vec![0u128; bytes.div_ceil(16)];
        let address = buffer.as_ptr() as u64;
        self.memory.push(buffer);
        Ok(address)
    }

    fn write(&mut self, to: u64, bytes: &[u8]) -> Result<(), Wrong> {
        self.check(to, bytes.len())?;
        // SAFETY: inside a buffer, as just checked; so below.
        unsafe { std::ptr::copy(bytes.as_ptr(), to as *mut u8, bytes.len()) };
        Ok(())
    }

    fn read(&mut self, from: u64, bytes: &mut [u8]) -> Result<(), Wrong> {
        self.check(from, bytes.len())?;
        unsafe { std::ptr::copy(from as *const u8, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    fn clear(&mut self, at: u64, bytes: usize) -> Result<(), Wrong> {
        self.check(at, bytes)?;
        unsafe { std::ptr::write_bytes(at as *mut u8, 0, bytes) };
        Ok(())
    }

    fn copy(&mut self, from: u64, to: u64, bytes: usize) -> Result<(), Wrong> {
        self.check(from, bytes)?;
        self.check(to, bytes)?;
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
        Ok(())
    }

    fn launch(&mut self, launch: &Launch) -> Result<(), Wrong> {
        let faulty = self.faulty.as_ref().filter(|(file, _)| *file == launch.file);
        let host = faulty.map_or_else(|| self.hosts.of(launch.file), |(_, host)| host);
        host.run(launch, self.order).map_err(Wrong)?;
        let (read, written) = host.traffic();
        let sums = self.traffic.entry(launch.kernel.clone()).or_default();
        *sums = [sums[0] + read + written, sums[1] + launch.bytes];
        Ok(())
    }

    fn multiply(&mut self, product: &Product) -> Result<(), Wrong> {
        let [rows, inner, columns] = product.sizes;
        let size = |kind: Kind| if kind == Kind::F32 { 4 } else { 2 };
        self.check(product.left.address, rows * inner * size(product.input))?;
        self.check(product.right.address, inner * columns * size(product.input))?;
        self.check(product.out, rows * columns * size(product.output))?;
        let left = matrix(product.left.address, rows * inner, product.input);
        let right = matrix(product.right.address, inner * columns, product.input);
        let mut out = matrix(product.out, rows * columns, product.output);
        for i in 0..rows {
            for j in 0..columns {
                let a = |k: usize| left[if product.left.transposed { k * rows + i } else { i * inner + k }];
                let b = |k: usize| right[if product.right.transposed { j * inner + k } else { k * columns + j }];
                let sum: f64 = (0..inner).map(|k| a(k) * b(k)).sum();
                out[i * columns + j] = if product.accumulate { out[i * columns + j] + sum } else { sum };
            }
        }
        match product.output {
            Kind::F32 => {
                let numbers: Vec<f32> = out.iter().map(|x| *x as f32).collect();
                self.write(product.out, bytemuck::cast_slice(&numbers))
            }
            Kind::Bf16 => {
                let numbers: Vec<half::bf16> = out.iter().map(|x| half::bf16::from_f32(*x as f32)).collect();
                self.write(product.out, bytemuck::cast_slice(&numbers))
            }
        }
    }
}
