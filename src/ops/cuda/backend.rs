//! What runs launches and matrix products: a device, or the CPU in a test.

use super::{Launch, Place};
use bytemuck::{Pod, cast_slice, cast_slice_mut};

/// A machine with memory of its own. Everything but [`Backend::read`] may return before it is done; all of it
/// happens in the order it was asked for.
pub trait Backend {
    /// Why the machine refused.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Memory of `bytes` zeros, at an address that kernels take; it lives as long as the machine.
    ///
    /// # Errors
    /// When there is not as much.
    fn allocate(&mut self, bytes: usize) -> Result<u64, Self::Error>;

    /// Copies bytes to an address.
    ///
    /// # Errors
    /// When the machine refuses, as all below.
    fn write(&mut self, to: u64, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Waits for everything asked for before, and copies bytes from an address.
    ///
    /// # Errors
    /// When something before went wrong.
    fn read(&mut self, from: u64, bytes: &mut [u8]) -> Result<(), Self::Error>;

    /// Writes zeros.
    ///
    /// # Errors
    /// When the machine refuses.
    fn clear(&mut self, at: u64, bytes: usize) -> Result<(), Self::Error>;

    /// Copies inside the machine.
    ///
    /// # Errors
    /// When the machine refuses.
    fn copy(&mut self, from: u64, to: u64, bytes: usize) -> Result<(), Self::Error>;

    /// Runs a kernel.
    ///
    /// # Errors
    /// When there is no such kernel or the machine refuses.
    fn launch(&mut self, launch: &Launch) -> Result<(), Self::Error>;

    /// Multiplies matrices.
    ///
    /// # Errors
    /// When the machine has no way to.
    fn multiply(&mut self, product: &Product) -> Result<(), Self::Error>;

    /// Room for `count` numbers, all 0.
    ///
    /// # Errors
    /// As [`Backend::allocate`].
    fn place<T: Pod>(&mut self, count: usize) -> Result<Place<T>, Self::Error> {
        Ok(Place::new(self.allocate(count.max(1) * size_of::<T>())?, count))
    }

    /// Writes numbers to a place that has room for them.
    ///
    /// # Errors
    /// As [`Backend::write`].
    fn put<T: Pod>(&mut self, to: Place<T>, numbers: &[T]) -> Result<(), Self::Error> {
        assert!(numbers.len() <= to.length, "{} numbers, room for {}", numbers.len(), to.length);
        self.write(to.address, cast_slice(numbers))
    }

    /// The numbers of a place.
    ///
    /// # Errors
    /// As [`Backend::read`].
    fn get<T: Pod>(&mut self, from: Place<T>) -> Result<Vec<T>, Self::Error> {
        let mut numbers = vec![T::zeroed(); from.length];
        self.read(from.address, cast_slice_mut(&mut numbers))?;
        Ok(numbers)
    }

    /// Runs kernels one after the other.
    ///
    /// # Errors
    /// As [`Backend::launch`].
    fn run(&mut self, launches: impl IntoIterator<Item = Launch>) -> Result<(), Self::Error>
    where
        Self: Sized,
    {
        launches.into_iter().try_for_each(|launch| self.launch(&launch))
    }
}

/// A number type of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// 4 bytes.
    F32,
    /// 2 bytes.
    Bf16,
}

/// One factor of a product, row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Factor {
    /// Where it lies.
    pub address: u64,
    /// Whether what lies there is its transpose.
    pub transposed: bool,
}

/// `out` `[rows, columns]` = `left` `[rows, inner]` · `right` `[inner, columns]`, or that added to `out`; sums in f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Product {
    /// The first factor.
    pub left: Factor,
    /// The second factor.
    pub right: Factor,
    /// Where the result goes, row by row.
    pub out: u64,
    /// Rows, depth and columns.
    pub sizes: [usize; 3],
    /// Type of the factors.
    pub input: Kind,
    /// Type of the result.
    pub output: Kind,
    /// Whether the result is added.
    pub accumulate: bool,
}

impl Product {
    /// Floating-point operations.
    pub fn flops(&self) -> f64 {
        2.0 * self.sizes.iter().map(|size| *size as f64).product::<f64>()
    }

    /// Bytes that the addresses of left factor, right factor and result are multiples of: powers of two up to 256.
    pub fn alignments(&self) -> [u32; 3] {
        [self.left.address, self.right.address, self.out].map(|address| 1 << address.trailing_zeros().min(8))
    }
}

/// A linear layer with weights `[outputs, inputs]` on so many rows.
#[derive(Debug, Clone, Copy)]
pub struct Linear<T> {
    /// The weights.
    pub weights: Place<T>,
    /// Rows of the batch.
    pub rows: usize,
    /// Numbers of an input row.
    pub inputs: usize,
    /// Numbers of an output row.
    pub outputs: usize,
}

impl<T: super::Element> Linear<T> {
    fn check(&self, lengths: &[(usize, usize)]) {
        assert_eq!(self.weights.length, self.inputs * self.outputs, "length of a linear layer's weights");
        assert!(lengths.iter().all(|(found, width)| *found == self.rows * width), "lengths of a linear layer");
    }

    /// `y` = `x`·Wᵀ, or that added.
    pub fn forward(&self, x: Place<T>, y: Place<T>, accumulate: bool) -> Product {
        self.check(&[(x.length, self.inputs), (y.length, self.outputs)]);
        let (left, right) = (plain(x.address), transposed(self.weights.address));
        let sizes = [self.rows, self.inputs, self.outputs];
        Product { left, right, out: y.address, sizes, input: T::KIND, output: T::KIND, accumulate }
    }

    /// `dx` = `dy`·W, or that added.
    pub fn backward_input(&self, dy: Place<T>, dx: Place<T>, accumulate: bool) -> Product {
        self.check(&[(dx.length, self.inputs), (dy.length, self.outputs)]);
        let (left, right) = (plain(dy.address), plain(self.weights.address));
        let sizes = [self.rows, self.outputs, self.inputs];
        Product { left, right, out: dx.address, sizes, input: T::KIND, output: T::KIND, accumulate }
    }

    /// `dw` += `dy`ᵀ·`x`, in f32.
    pub fn backward_weight(&self, dy: Place<T>, x: Place<T>, dw: Place<f32>) -> Product {
        self.check(&[(x.length, self.inputs), (dy.length, self.outputs)]);
        assert_eq!(dw.length, self.weights.length, "length of a linear layer's gradient");
        let (left, right) = (transposed(dy.address), plain(x.address));
        let sizes = [self.outputs, self.rows, self.inputs];
        Product { left, right, out: dw.address, sizes, input: T::KIND, output: Kind::F32, accumulate: true }
    }
}

fn plain(address: u64) -> Factor {
    Factor { address, transposed: false }
}

fn transposed(address: u64) -> Factor {
    Factor { address, transposed: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_as_aligned_as_it_is() {
        let at = |left, right, out| Product {
            left: plain(left),
            right: transposed(right),
            out,
            sizes: [1; 3],
            input: Kind::Bf16,
            output: Kind::F32,
            accumulate: false,
        };
        assert_eq!(at(0x1000, 0x1002, 0x1004).alignments(), [256, 2, 4]);
        assert_eq!(at(0x1010, 0x1080, 0x1100).alignments(), [16, 128, 256]);
        assert_eq!(at(0, 1, 0x30).alignments(), [256, 1, 16]);
    }
}
