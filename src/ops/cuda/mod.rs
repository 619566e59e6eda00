//! The ops as CUDA kernels: how each is launched, as plain data.
//!
//! A kernel's source is the `.cu` file of its op. A [`Launch`] says which kernel runs on how many blocks and
//! with what arguments, but not where: tests run it on the CPU through `host/shim.h`, a device runs the PTX
//! that is committed under `ptx/`. Nothing here needs CUDA.

/// Hands the names of the kernels' source files, without their ending, to a macro.
macro_rules! kernel_files {
    ($use:ident) => {
        $use![
            "adamw",
            "attention_backward",
            "attention_forward",
            "cross_entropy",
            "embedding",
            "norm",
            "rms_norm",
            "rope",
            "swiglu"
        ]
    };
}

mod attention;
mod backend;
pub mod check;
#[cfg(feature = "cuda")]
mod device;
mod embedding;
mod launches;
mod tally;

pub use attention::{Attention, WIDEST_HEAD, backward as attention_backward, forward as attention_forward};
pub use backend::{Backend, Factor, Kind, Linear, Product};
#[cfg(feature = "cuda")]
pub use device::{Device, DeviceError};
pub use embedding::*;
pub use launches::*;
pub use tally::Tally;

use bytemuck::{Pod, Zeroable};
use std::marker::PhantomData;

/// Threads of a block of most kernels; `THREADS` of `common.cuh`.
pub const THREADS: u32 = 256;
/// Threads of a warp.
pub const WARP: u32 = 32;

macro_rules! names {
    ($($file:literal),*) => { [$($file),*] };
}
/// The source files of kernels, without their ending.
pub const KERNEL_FILES: [&str; 9] = kernel_files!(names);

/// A number type that kernels store.
pub trait Element: Pod {
    /// As in the names of kernels.
    const NAME: &'static str;
    /// Of a matrix of them.
    const KIND: Kind;
}

impl Element for f32 {
    const NAME: &'static str = "f32";
    const KIND: Kind = Kind::F32;
}

impl Element for half::bf16 {
    const NAME: &'static str = "bf16";
    const KIND: Kind = Kind::Bf16;
}

/// Where numbers lie: an address of the device, or of the host for a test.
#[derive(Debug, Clone, Copy)]
pub struct Place<T> {
    /// Address in bytes; 0 for none.
    pub address: u64,
    /// Numbers there.
    pub length: usize,
    kind: PhantomData<T>,
}

impl<T: Pod> Place<T> {
    /// `length` numbers at an address.
    pub fn new(address: u64, length: usize) -> Self {
        Place { address, length, kind: PhantomData }
    }

    /// `length` of its numbers from number `start` on.
    pub fn part(self, start: usize, length: usize) -> Self {
        assert!(start + length <= self.length, "a part of {length} from {start} of {}", self.length);
        Place::new(self.address + (start * size_of::<T>()) as u64, length)
    }

    /// No place, where a kernel takes one only if it is given.
    pub fn none() -> Self {
        Self::new(0, 0)
    }

    /// Nothing, or exactly `length` numbers.
    fn is_none_or(&self, length: usize) -> bool {
        self.address == 0 || self.length == length
    }
}

/// The bytes of one argument of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Argument {
    value: [u64; 4],
    /// Bytes of the numbers that lie where it points to.
    bytes: u64,
}

impl Argument {
    fn new<T: Pod>(value: T) -> Self {
        let mut argument = Argument { value: [0; 4], bytes: 0 };
        let bytes = bytemuck::bytes_of(&value);
        bytemuck::bytes_of_mut(&mut argument)[..bytes.len()].copy_from_slice(bytes);
        argument
    }
}

impl<T: Pod> From<Place<T>> for Argument {
    fn from(place: Place<T>) -> Self {
        let bytes = if place.address == 0 { 0 } else { place.length * size_of::<T>() };
        Argument { bytes: bytes as u64, ..Argument::new(place.address) }
    }
}

macro_rules! arguments {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Argument {
            fn from(value: $kind) -> Self {
                Argument::new(value)
            }
        }
    )*};
}
arguments!(u32, u64, f32, f64, Settings, attention::Heads);

/// One kernel on a number of blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The source file, without its ending.
    pub file: &'static str,
    /// The kernel's name.
    pub kernel: String,
    /// Blocks.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory of a block.
    pub shared: u32,
    /// In the order of the kernel's parameters.
    pub arguments: Vec<Argument>,
    /// Fewest bytes that must move to and from memory: each number that is read or written, once; one that is
    /// changed where it lies, twice.
    pub bytes: u64,
    /// Floating-point operations of the matrix products inside.
    pub flops: u64,
}

impl Launch {
    fn new(file: &'static str, kernel: String, blocks: usize, arguments: &[Argument]) -> Self {
        assert!(u32::try_from(blocks).is_ok(), "blocks of a launch fit 32 bits");
        let bytes = arguments.iter().map(|argument| argument.bytes).sum();
        let arguments = arguments.to_vec();
        Launch { file, kernel, blocks: blocks as u32, threads: THREADS, shared: 0, arguments, bytes, flops: 0 }
    }

    /// The same launch, which changes numbers of `place` where they lie: they are read and written.
    fn changing<T: Pod>(self, place: Place<T>) -> Self {
        Launch { bytes: self.bytes + Argument::from(place).bytes, ..self }
    }
}

/// The arguments of a launch, each turned into bytes.
macro_rules! launch {
    ($file:literal, $kernel:expr, $blocks:expr, $($argument:expr),+ $(,)?) => {
        $crate::ops::cuda::Launch::new($file, $kernel, $blocks, &[$($argument.into()),+])
    };
}
use launch;
