//! A machine that computes nothing and counts what it is asked for.

use super::{Backend, Launch, Product};
use std::collections::BTreeMap;
use std::convert::Infallible;

/// What was asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// Bytes of memory.
    pub bytes: u64,
    /// Allocations.
    pub allocations: u64,
    /// Floating-point operations of matrix products.
    pub products: f64,
    /// Floating-point operations of products inside kernels.
    pub inside: f64,
    /// Launches by kernel.
    pub launches: BTreeMap<String, u64>,
    /// Times the host would have waited.
    pub waits: u64,
}

impl Tally {
    /// Floating-point operations of products of both kinds.
    pub fn flops(&self) -> f64 {
        self.products + self.inside
    }
}

impl Backend for Tally {
    type Error = Infallible;

    fn allocate(&mut self, bytes: usize) -> Result<u64, Infallible> {
        self.bytes += bytes as u64;
        self.allocations += 1;
        Ok(1 << 40 | self.bytes << 4)
    }

    fn write(&mut self, _: u64, _: &[u8]) -> Result<(), Infallible> {
        Ok(())
    }

    fn read(&mut self, _: u64, _: &mut [u8]) -> Result<(), Infallible> {
        self.waits += 1;
        Ok(())
    }

    fn clear(&mut self, _: u64, _: usize) -> Result<(), Infallible> {
        Ok(())
    }

    fn copy(&mut self, _: u64, _: u64, _: usize) -> Result<(), Infallible> {
        Ok(())
    }

    fn launch(&mut self, launch: &Launch) -> Result<(), Infallible> {
        *self.launches.entry(launch.kernel.clone()).or_default() += 1;
        self.inside += launch.flops as f64;
        Ok(())
    }

    fn multiply(&mut self, product: &Product) -> Result<(), Infallible> {
        self.products += product.flops();
        Ok(())
    }
}
