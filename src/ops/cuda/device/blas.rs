//! Matrix products by cuBLASLt: the fastest way it knows for a shape, chosen once.

use super::{DeviceError, refused};
use crate::ops::cuda::{Kind, Product};
use cudarc::cublaslt::{result as lt, sys};
use cudarc::driver::{CudaStream, result};
use std::collections::HashMap;
use std::ffi::c_void;

/// Bytes that a product may use beside its factors, as NVIDIA advises for Hopper.
const WORKSPACE: usize = 32 << 20;

/// Everything of a product that its way depends on: of its addresses, only how they are aligned.
type Shape = ([usize; 3], [bool; 2], Kind, Kind, [u32; 3]);

struct Plan {
    product: sys::cublasLtMatmulDesc_t,
    first: sys::cublasLtMatrixLayout_t,
    second: sys::cublasLtMatrixLayout_t,
    out: sys::cublasLtMatrixLayout_t,
    way: sys::cublasLtMatmulAlgo_t,
}

pub(super) struct Blas {
    handle: sys::cublasLtHandle_t,
    preference: sys::cublasLtMatmulPreference_t,
    workspace: u64,
    plans: HashMap<Shape, Plan>,
}

fn kind(kind: Kind) -> sys::cudaDataType {
    match kind {
        Kind::F32 => sys::cudaDataType::CUDA_R_32F,
        Kind::Bf16 => sys::cudaDataType::CUDA_R_16BF,
    }
}

fn pointer<T>(value: &T) -> *const c_void {
    std::ptr::from_ref(value).cast()
}

impl Blas {
    pub(super) fn new() -> Result<Self, DeviceError> {
        let failed = |e: lt::CublasError| DeviceError::Blas { action: "begin", sizes: [0; 3], message: e.to_string() };
        let (handle, preference) = (lt::create_handle().map_err(failed)?, lt::create_matmul_pref().map_err(failed)?);
        // Parts of a sum are added in a fixed order, never in place: the same bits every time.
        let reduction = sys::cublasLtReductionScheme_t::CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE as u32;
        use sys::cublasLtMatmulPreferenceAttributes_t as Attribute;
        // SAFETY: an open preference, and numbers of the size that is said.
        unsafe {
            let (mask, room) = (
                Attribute::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                Attribute::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
            );
            lt::set_matmul_pref_attribute(preference, mask, pointer(&reduction), 4).map_err(failed)?;
            lt::set_matmul_pref_attribute(preference, room, pointer(&WORKSPACE), size_of::<usize>()).map_err(failed)?;
        }
        // SAFETY: freed when this is dropped.
        let workspace = unsafe { result::malloc_sync(WORKSPACE) }.map_err(refused("give memory"))?;
        Ok(Blas { handle, preference, workspace, plans: HashMap::new() })
    }

    pub(super) fn multiply(&mut self, product: &Product, stream: &CudaStream) -> Result<(), DeviceError> {
        let Product { left, right, out, sizes, input, output, accumulate } = *product;
        let shape = (sizes, [left.transposed, right.transposed], input, output, product.alignments());
        let plan = match self.plans.entry(shape) {
            std::collections::hash_map::Entry::Occupied(found) => found.into_mut(),
            std::collections::hash_map::Entry::Vacant(empty) => {
                let made = plan(self.handle, self.preference, &shape);
                empty.insert(made.map_err(|e| DeviceError::Blas { action: "plan", sizes, message: e.to_string() })?)
            }
        };
        let (one, beta) = (1f32, if accumulate { 1f32 } else { 0f32 });
        // SAFETY: the plan is of this shape, and the caller's addresses have its sizes.
        unsafe {
            lt::matmul(
                self.handle,
                plan.product,
                pointer(&one),
                pointer(&beta),
                right.address as *const c_void,
                plan.first,
                left.address as *const c_void,
                plan.second,
                out as *const c_void,
                plan.out,
                out as *mut c_void,
                plan.out,
                &raw const plan.way,
                self.workspace as *mut c_void,
                WORKSPACE,
                stream.cu_stream().cast(),
            )
        }
        .map_err(|e| DeviceError::Blas { action: "compute", sizes, message: e.to_string() })
    }
}

/// cuBLASLt reads columns: rows of ours are columns of its, so that outᵀ = rightᵀ·leftᵀ, with the factors as they lie.
fn plan(
    handle: sys::cublasLtHandle_t,
    preference: sys::cublasLtMatmulPreference_t,
    &([rows, inner, columns], [left, right], input, output, aligned): &Shape,
) -> Result<Plan, lt::CublasError> {
    let layout = |of: Kind, long: usize, count: usize| {
        lt::create_matrix_layout(kind(of), long as u64, count as u64, long as i64)
    };
    let compute = sys::cublasComputeType_t::CUBLAS_COMPUTE_32F;
    let product = lt::create_matmul_desc(compute, sys::cudaDataType::CUDA_R_32F)?;
    let first = if right { layout(input, inner, columns)? } else { layout(input, columns, inner)? };
    let second = if left { layout(input, rows, inner)? } else { layout(input, inner, rows)? };
    let out = layout(output, columns, rows)?;
    use sys::cublasLtMatmulDescAttributes_t as Attribute;
    // SAFETY: descriptions that were just made, and numbers of the size that is said.
    unsafe {
        for (attribute, turned) in
            [(Attribute::CUBLASLT_MATMUL_DESC_TRANSA, right), (Attribute::CUBLASLT_MATMUL_DESC_TRANSB, left)]
        {
            let operation = i32::from(turned); // CUBLAS_OP_N is 0, CUBLAS_OP_T is 1
            lt::set_matmul_desc_attribute(product, attribute, pointer(&operation), size_of::<i32>())?;
        }
        align(preference, aligned)?;
        let found = lt::get_matmul_algo_heuristic(handle, product, first, second, out, out, preference)?;
        Ok(Plan { product, first, second, out, way: found.algo })
    }
}

/// Tells how left factor, right factor and result are aligned; otherwise cuBLASLt takes them to lie at multiples of 256
/// bytes, which the tensors of a flat buffer do not.
fn align(preference: sys::cublasLtMatmulPreference_t, [left, right, out]: [u32; 3]) -> Result<(), lt::CublasError> {
    use sys::cublasLtMatmulPreferenceAttributes_t as Attribute;
    for (attribute, bytes) in [
        (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, right),
        (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, left),
        (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, out),
        (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, out),
    ] {
        // SAFETY: an open preference, and a number of the size that is said.
        unsafe { lt::set_matmul_pref_attribute(preference, attribute, pointer(&bytes), size_of::<u32>())? };
    }
    Ok(())
}

impl Drop for Blas {
    fn drop(&mut self) {
        // SAFETY: all of it was made here; the device drops this after its stream is empty.
        unsafe {
            for plan in self.plans.values() {
                let _ = lt::destroy_matmul_desc(plan.product);
                for layout in [plan.first, plan.second, plan.out] {
                    let _ = lt::destroy_matrix_layout(layout);
                }
            }
            let _ = lt::destroy_matmul_pref(self.preference);
            let _ = lt::destroy_handle(self.handle);
            let _ = result::free_sync(self.workspace);
        }
    }
}
