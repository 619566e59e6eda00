//! The machine of these tests: kernels through the shim, memory of this process, plain products.

use super::host::Host;
use shikha::ops::cuda::{Backend, KERNEL_FILES, Kind, Launch, Product};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The kernels of every file, compiled when first used.
pub struct Hosts(BTreeMap<&'static str, OnceCell<Host>>);

impl Hosts {
    /// The kernels as they are.
    pub fn new() -> Rc<Hosts> {
        Rc::new(Hosts(KERNEL_FILES.map(|file| (file, OnceCell::new())).into()))
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

/// What a launch asked for.
#[derive(Debug, Clone, Copy)]
pub struct Traffic {
    /// Bytes of shared memory of a block.
    pub shared: u32,
    /// Bytes of memory that its threads read and wrote.
    pub moved: u64,
    /// The fewest that must move.
    pub fewest: u64,
}

/// A kernel's name without its number types and its width.
pub fn family(kernel: &str) -> &str {
    ["_32", "_64", "_128", "_bf16", "_f32"].iter().fold(kernel, |name, end| name.strip_suffix(end).unwrap_or(name))
}

/// Runs everything at once, the threads of a kernel in one order.
pub struct Cpu {
    hosts: Rc<Hosts>,
    /// One kernel with a fault; all others run as they are.
    faulty: Option<(&'static str, Rc<Host>)>,
    order: u32,
    memory: Vec<Vec<u128>>,
    /// Of the last launch of each kernel.
    pub traffic: BTreeMap<String, Traffic>,
}

impl Cpu {
    pub fn new(hosts: &Rc<Hosts>, order: u32) -> Cpu {
        Cpu { hosts: hosts.clone(), faulty: None, order, memory: Vec::new(), traffic: BTreeMap::new() }
    }

    pub fn with_fault(self, kernel: &'static str, host: &Rc<Host>) -> Cpu {
        Cpu { faulty: Some((kernel, host.clone())), ..self }
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
        let faulty = self.faulty.as_ref().filter(|(kernel, _)| *kernel == family(&launch.kernel));
        let host = faulty.map_or_else(|| self.hosts.of(launch.file), |(_, host)| host);
        host.run(launch, self.order).map_err(Wrong)?;
        let (read, written) = host.traffic();
        let traffic = Traffic { shared: launch.shared, moved: read + written, fewest: launch.bytes };
        self.traffic.insert(launch.kernel.clone(), traffic);
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
