use super::super::embedding as kernel;
use super::{Fused, Number, Op, check_types};
use candle_core::{DType, Result, Shape, Tensor, bail};

struct Embedding {
    ids: Vec<u32>,
    shape: Vec<usize>,
    width: usize,
}

impl Fused for Embedding {
    const NAME: &'static str = "shikha-embedding";
    fn shape(&self, _: &[&Shape]) -> Shape {
        Shape::from(self.shape.clone())
    }
    fn forward<T: Number>(&self, inputs: &[&[T]]) -> Vec<T> {
        let mut out = vec![T::ZERO; self.ids.len() * self.width];
        kernel::forward(&self.ids, inputs[0], &mut out, self.width);
        out
    }
    fn backward<T: Number>(&self, inputs: &[&[T]], _: &[T], dout: &[T], _: &[bool]) -> Vec<Vec<T>> {
        let mut dtable = vec![T::ZERO; inputs[0].len()];
        kernel::backward(&self.ids, dout, &mut dtable, self.width);
        vec![dtable]
    }
}

/// Row `ids[i]` of `table` `[vocabulary, width]` for every i: `[..ids, width]`; see
/// [`crate::ops::embedding`]. Ids that repeat add their gradients in a fixed order.
///
/// # Errors
/// When an id lies outside the table, the ids are not u32 or the table is not a matrix of f32 or f64.
pub fn embedding(ids: &Tensor, table: &Tensor) -> Result<Tensor> {
    check_types(Embedding::NAME, &[table])?;
    if ids.dtype() != DType::U32 {
        bail!("embedding: ids must be u32 but are {:?}; convert them with .to_dtype()", ids.dtype());
    }
    let (vocabulary, width) = table.dims2()?;
    let shape = [ids.dims(), &[width]].concat();
    let ids: Vec<u32> = ids.flatten_all()?.to_vec1()?;
    if let Some(id) = ids.iter().find(|id| **id as usize >= vocabulary) {
        bail!("embedding: id {id} lies outside the table of {vocabulary} rows");
    }
    if ids.is_empty() || width == 0 {
        bail!("embedding: {} ids into rows of {width} numbers: both must be at least 1", ids.len());
    }
    table.contiguous()?.apply_op1(Op(Embedding { ids, shape, width }))
}
