//! The committed PTX, compiled by the driver when a kernel of it is first asked for.

use super::{DeviceError, refused};
use crate::ops::cuda::{KERNEL_FILES, Launch};
use cudarc::driver::{result, sys};
use std::collections::BTreeMap;
use std::ffi::CString;

macro_rules! ptx {
    ($($file:literal),*) => { [$(($file, include_str!(concat!("../ptx/", $file, ".ptx")))),*] };
}
const PTX: [(&str, &str); KERNEL_FILES.len()] = kernel_files!(ptx);

/// Shared memory that every kernel may have without being allowed more.
const PLAIN_SHARED: u32 = 48 << 10;

#[derive(Default)]
pub(super) struct Modules {
    modules: BTreeMap<&'static str, sys::CUmodule>,
    /// Each kernel, and the shared memory it is allowed.
    functions: BTreeMap<String, (sys::CUfunction, u32)>,
}

impl Modules {
    pub(super) fn function(&mut self, launch: &Launch) -> Result<sys::CUfunction, DeviceError> {
        let (function, allowed) = match self.functions.get(&launch.kernel) {
            Some(found) => *found,
            None => (self.load(launch)?, PLAIN_SHARED),
        };
        if launch.shared > allowed {
            let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: a function that was just loaded.
            unsafe { result::function::set_function_attribute(function, attribute, launch.shared as i32) }
                .map_err(refused("give a kernel that much shared memory"))?;
        }
        self.functions.insert(launch.kernel.clone(), (function, allowed.max(launch.shared)));
        Ok(function)
    }

    fn load(&mut self, launch: &Launch) -> Result<sys::CUfunction, DeviceError> {
        let missing = || DeviceError::NoKernel { file: launch.file, kernel: launch.kernel.clone() };
        if !self.modules.contains_key(launch.file) {
            let (_, text) = PTX.iter().find(|(file, _)| *file == launch.file).ok_or_else(missing)?;
            let text = CString::new(*text).map_err(|_| missing())?;
            // SAFETY: PTX text that ends with a zero byte.
            let module = unsafe { result::module::load_data(text.as_ptr().cast()) };
            self.modules.insert(launch.file, module.map_err(refused("compile the PTX"))?);
        }
        let name = CString::new(launch.kernel.as_str()).map_err(|_| missing())?;
        let module = self.modules.get(launch.file).copied().ok_or_else(missing)?;
        // SAFETY: a module that is loaded and never unloaded.
        unsafe { result::module::get_function(module, name) }.map_err(|_| missing())
    }
}
