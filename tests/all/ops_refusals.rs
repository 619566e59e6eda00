//! Tests of `ops::candle` on what a user may get wrong: an error that says what, never a panic.

use super::ops_candle::tensor;
use candle_core::{DType, Device, Result, Tensor};
use shikha::ops::{IGNORE, candle};

fn zeros(shape: &[usize]) -> Tensor {
    tensor(vec![0.0; shape.iter().product()], shape)
}

#[track_caller]
fn refused(result: Result<Tensor>, part: &str) {
    let message = result.unwrap_err().to_string();
    assert!(message.contains(part), "{message}");
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    refused(candle::layer_norm(&zeros(&[2, 3]), &zeros(&[3]), &zeros(&[2]), 1e-5), "last dimension");
    refused(candle::layer_norm(&zeros(&[2, 3]), &zeros(&[2]), &zeros(&[2]), 1e-5), "last dimension");
    refused(candle::layer_norm(&zeros(&[2, 3]), &zeros(&[1, 3]), &zeros(&[1, 3]), 1e-5), "last dimension");
    refused(candle::layer_norm(&zeros(&[2, 0]), &zeros(&[0]), &zeros(&[0]), 1e-5), "last dimension");
    refused(candle::softmax_last_dim(&zeros(&[])), "last dimension");
    refused(candle::softmax_last_dim(&zeros(&[2, 0])), "last dimension");
    refused(candle::rope(&zeros(&[1, 1, 4, 6]), &zeros(&[3, 3]), &zeros(&[3, 3])), "position");
    refused(candle::rope(&zeros(&[1, 1, 4, 5]), &zeros(&[4, 2]), &zeros(&[4, 2])), "even head_dim");
    refused(candle::rope_thd(&zeros(&[1, 4, 1, 6]), &zeros(&[4, 3]), &zeros(&[5, 3])), "rope_thd");
    refused(candle::linear(&zeros(&[2, 3]), &zeros(&[4, 2]), None), "last dimension");
    refused(candle::linear(&zeros(&[2, 3]), &zeros(&[4, 3]), Some(&zeros(&[3]))), "bias");
    refused(candle::linear(&zeros(&[2, 3]).to_dtype(DType::F32).unwrap(), &zeros(&[4, 3]), None), "differ");
}

#[test]
fn ids_and_targets_out_of_range_are_refused() {
    let ids = |values: Vec<u32>| Tensor::new(values, &Device::Cpu).unwrap();
    refused(candle::embedding(&ids(vec![0, 5]), &zeros(&[5, 2])), "id 5 lies outside");
    refused(candle::embedding(&ids(vec![0]).to_dtype(DType::I64).unwrap(), &zeros(&[5, 2])), "must be u32");
    let loss = |targets| candle::linear_cross_entropy(&zeros(&[2, 3]), &zeros(&[4, 3]), &ids(targets));
    refused(loss(vec![0, 4]), "target 4 lies outside");
    refused(loss(vec![IGNORE, IGNORE]), "ignored");
    refused(loss(vec![0]), "target for each row");
}
