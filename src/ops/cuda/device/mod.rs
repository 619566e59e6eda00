//! An NVIDIA GPU through the driver alone: the committed PTX, one stream, cuBLASLt for products.
//!
//! The libraries are looked for when the program runs. Everything goes to one stream in the order it is asked for;
//! the host waits in [`Backend::read`] and nowhere else, except when it is more than a whole staging buffer ahead.

mod blas;
mod modules;
mod staging;

use self::blas::Blas;
use self::modules::Modules;
use self::staging::Staging;
use super::{Argument, Backend, Launch, Product};
use crate::machine::GpuInfo;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::{CudaContext, CudaStream, sys};
use std::ffi::c_void;
use std::sync::Arc;

/// Why a GPU cannot be used, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The driver is not installed.
    #[error("there is no NVIDIA driver here (libcuda is not found); --or-cpu lets the processor do it")]
    NoDriver,
    /// The driver finds no GPU.
    #[error("the NVIDIA driver finds no GPU to use ({0}); --or-cpu lets the processor do it")]
    NoDevice(String),
    /// cuBLASLt is not installed.
    #[error(
        "cuBLASLt is not found; put the folder with libcublasLt.so.13 into LD_LIBRARY_PATH; --or-cpu lets the processor do it"
    )]
    NoBlas,
    /// The driver refused.
    #[error("the GPU cannot {action}: {message}")]
    Driver {
        /// What was asked for.
        action: &'static str,
        /// The driver's words.
        message: String,
    },
    /// A kernel that the committed PTX does not have.
    #[error("there is no kernel `{kernel}` in `{file}.ptx`; run cuda/build.sh")]
    NoKernel {
        /// The source file.
        file: &'static str,
        /// The kernel.
        kernel: String,
    },
    /// cuBLASLt refused.
    #[error("cuBLASLt cannot {action} a product of {sizes:?}: {message}")]
    Blas {
        /// What was asked for.
        action: &'static str,
        /// Rows, depth and columns.
        sizes: [usize; 3],
        /// Its words.
        message: String,
    },
}

impl DeviceError {
    /// Whether there is no GPU to use, rather than one that does something wrong.
    pub fn is_missing(&self) -> bool {
        matches!(self, DeviceError::NoDriver | DeviceError::NoDevice(_) | DeviceError::NoBlas)
    }
}

fn refused(action: &'static str) -> impl Fn(DriverError) -> DeviceError {
    move |error| DeviceError::Driver { action, message: error.to_string() }
}

/// A GPU with one stream.
pub struct Device {
    allocated: Vec<u64>,
    bytes: u64,
    // In the order in which they must go: what lies on the GPU before its stream, the stream before the GPU.
    staging: Staging,
    blas: Blas,
    modules: Modules,
    stream: Arc<CudaStream>,
    context: Arc<CudaContext>,
}

impl Device {
    /// Opens GPU `ordinal`, counted from 0.
    ///
    /// # Errors
    /// [`DeviceError`] when driver, GPU or cuBLASLt are not there.
    pub fn open(ordinal: usize) -> Result<Self, DeviceError> {
        // SAFETY: looks for libraries; those of the system are taken to be what they are called.
        let (driver, blas) = unsafe { (sys::is_culib_present(), cudarc::cublaslt::sys::is_culib_present()) };
        if !driver {
            return Err(DeviceError::NoDriver);
        }
        let none = |error: DriverError| DeviceError::NoDevice(error.to_string());
        let context = CudaContext::new(ordinal).map_err(none)?;
        if !blas {
            return Err(DeviceError::NoBlas);
        }
        let stream = context.new_stream().map_err(refused("make a stream"))?;
        let blas = Blas::new()?;
        let (modules, staging) = (Modules::default(), Staging::new()?);
        Ok(Device { context, stream, modules, blas, staging, allocated: Vec::new(), bytes: 0 })
    }

    /// What the GPU says about itself.
    ///
    /// # Errors
    /// [`DeviceError::Driver`].
    pub fn info(&self) -> Result<GpuInfo, DeviceError> {
        let asked = refused("be asked about itself");
        let (major, minor) = self.context.compute_capability().map_err(&asked)?;
        let mut version = 0;
        // SAFETY: writes one number.
        unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().map_err(&asked)?;
        Ok(GpuInfo {
            name: self.context.name().map_err(&asked)?,
            capability: format!("{major}.{minor}"),
            memory: self.context.total_mem().map_err(&asked)? as u64,
            cuda: format!("{}.{}", version / 1000, version % 1000 / 10),
            driver: driver_version(),
        })
    }

    /// Bytes allocated here.
    pub fn allocated(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the GPU's memory in use, by whomever.
    ///
    /// # Errors
    /// [`DeviceError::Driver`].
    pub fn in_use(&self) -> Result<u64, DeviceError> {
        let (free, total) = self.context.mem_get_info().map_err(refused("tell its free memory"))?;
        Ok((total - free) as u64)
    }
}

/// The version as the kernel module states it, for example 580.95.05.
fn driver_version() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let is_version =
        |word: &&str| word.split('.').count() >= 2 && word.split('.').all(|part| part.parse::<u32>().is_ok());
    text.lines().next()?.split_whitespace().find(is_version).map(str::to_owned)
}

impl Backend for Device {
    type Error = DeviceError;

    fn allocate(&mut self, bytes: usize) -> Result<u64, DeviceError> {
        // SAFETY: the memory is written before anything reads it, and freed when the device is dropped.
        let address = unsafe { result::malloc_sync(bytes) };
        let address = address.map_err(|e| DeviceError::Driver {
            action: "give memory",
            message: format!("{bytes} bytes beside {} that are in use here: {e}", self.bytes),
        })?;
        self.allocated.push(address);
        self.bytes += bytes as u64;
        self.clear(address, bytes)?;
        Ok(address)
    }

    fn write(&mut self, to: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.staging.write(to, bytes, self.stream.cu_stream())
    }

    fn read(&mut self, from: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        // SAFETY: the caller's address has as many bytes; the copy is over before the slice is given back.
        unsafe { result::memcpy_dtoh_async(bytes, from, self.stream.cu_stream()) }
            .map_err(refused("read its memory"))?;
        self.stream.synchronize().map_err(refused("finish what it was asked for"))
    }

    fn clear(&mut self, at: u64, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: the caller's address has as many bytes.
        unsafe { result::memset_d8_async(at, 0, bytes, self.stream.cu_stream()) }.map_err(refused("clear its memory"))
    }

    fn copy(&mut self, from: u64, to: u64, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: both addresses have as many bytes and do not overlap.
        unsafe { result::memcpy_dtod_async(to, from, bytes, self.stream.cu_stream()) }
            .map_err(refused("copy its memory"))
    }

    fn launch(&mut self, launch: &Launch) -> Result<(), DeviceError> {
        if launch.blocks == 0 {
            return Ok(());
        }
        let function = self.modules.function(launch)?;
        let pointer = |argument: &Argument| std::ptr::from_ref(argument).cast_mut().cast::<c_void>();
        let mut arguments: Vec<*mut c_void> = launch.arguments.iter().map(pointer).collect();
        let (grid, block) = ((launch.blocks, 1, 1), (launch.threads, 1, 1));
        let stream = self.stream.cu_stream();
        // SAFETY: the launch has the arguments of the kernel in order, which the tests on the CPU check; the driver
        // copies them before it returns.
        unsafe { result::launch_kernel(function, grid, block, launch.shared, stream, &mut arguments) }
            .map_err(|e| DeviceError::Driver { action: "run a kernel", message: format!("{}: {e}", launch.kernel) })
    }

    fn multiply(&mut self, product: &Product) -> Result<(), DeviceError> {
        self.blas.multiply(product, &self.stream)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = self.stream.synchronize();
        for address in self.allocated.drain(..) {
            // SAFETY: allocated above, and nothing runs any more.
            let _ = unsafe { result::free_sync(address) };
        }
    }
}
