//! Every op refuses slices of lengths that do not fit, by a panic as documented: none reads or writes less in silence.

use shikha::ops::{
    IGNORE, Precision, adamw, attention, embedding, layer_norm, linear, linear_cross_entropy, rms_norm, rope,
    rope_rows, softmax, swiglu,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls an op with its slices in their right lengths, then with each one longer and one shorter by `step`.
#[track_caller]
fn only_of_the_right_lengths(name: &str, step: usize, right: &[usize], op: impl Fn(&mut [Vec<f64>])) {
    let passes = |lengths: &[usize]| {
        let mut slices: Vec<Vec<f64>> = lengths.iter().map(|n| vec![0.5; *n]).collect();
        catch_unwind(AssertUnwindSafe(|| op(&mut slices))).is_ok()
    };
    assert!(passes(right), "{name} refuses the right lengths");
    for at in 0..right.len() {
        for wrong in [right[at] - step, right[at] + step] {
            let mut lengths = right.to_vec();
            lengths[at] = wrong;
            // A linear layer may work on the front of a larger buffer.
            let may = name.starts_with("linear") && wrong > right[at];
            assert!(may || !passes(&lengths), "{name} takes {wrong} numbers as its slice {at}, {right:?} are right");
        }
    }
}

#[test]
fn norms_and_softmax() {
    only_of_the_right_lengths("rms_norm", 1, &[6, 3, 6, 2], |s| {
        let [x, gain, y, inverse] = s else { unreachable!() };
        rms_norm::forward(x, gain, 1e-5, y, inverse);
    });
    only_of_the_right_lengths("rms_norm backward", 1, &[6, 3, 2, 6, 6, 3], |s| {
        let [x, gain, inverse, dy, dx, dgain] = s else { unreachable!() };
        rms_norm::backward(x, gain, inverse, dy, dx, dgain);
    });
    only_of_the_right_lengths("layer_norm", 1, &[12, 4, 4, 12], |s| {
        let [x, gain, bias, y] = s else { unreachable!() };
        layer_norm::forward(x, gain, bias, 1e-5, y);
    });
    only_of_the_right_lengths("layer_norm backward", 1, &[12, 4, 12, 12, 4, 4], |s| {
        let [x, gain, dy, dx, dgain, dbias] = s else { unreachable!() };
        layer_norm::backward(x, gain, 1e-5, dy, layer_norm::Gradients { dx, dgain, dbias });
    });
    only_of_the_right_lengths("softmax", 1, &[12, 12], |s| {
        let [x, y] = s else { unreachable!() };
        softmax::forward(x, y, 4);
    });
    only_of_the_right_lengths("softmax backward", 1, &[12, 12, 12], |s| {
        let [y, dy, dx] = s else { unreachable!() };
        softmax::backward(y, dy, dx, 4);
    });
}

#[test]
fn gates_embeddings_and_rotations() {
    only_of_the_right_lengths("swiglu", 1, &[5, 5, 5], |s| {
        let [gate, up, out] = s else { unreachable!() };
        swiglu::forward(gate, up, out);
    });
    only_of_the_right_lengths("swiglu backward", 1, &[5, 5, 5, 5, 5], |s| {
        let [gate, up, dout, dgate, dup] = s else { unreachable!() };
        swiglu::backward(gate, up, dout, dgate, dup);
    });
    for name in ["embedding", "embedding backward"] {
        only_of_the_right_lengths(name, 2, &[6], |s| match name {
            "embedding" => embedding::forward(&[0, 4, 1], &[0.5; 10], &mut s[0], 2),
            _ => embedding::backward(&[0, 4, 1], &s[0], &mut [0.5; 10], 2),
        });
    }
    let outside = |id| catch_unwind(move || embedding::forward(&[id], &[0.5; 10], &mut [0.0; 2], 2)).is_err();
    assert!(!outside(4) && outside(5));
    let outside = |id| catch_unwind(move || embedding::backward(&[id], &[0.5; 2], &mut [0.0; 10], 2)).is_err();
    assert!(!outside(4) && outside(5));
    let tables = rope::Tables::<f64>::new(4, 6, 1e4);
    only_of_the_right_lengths("rope", 1, &[48], |s| rope::forward(&mut s[0], &tables, 0, 4, 2));
    only_of_the_right_lengths("rope backward", 1, &[48], |s| rope::backward(&mut s[0], &tables, 0, 4, 2));
    let past = |start| catch_unwind(|| rope::forward(&mut [0.5; 48], &tables, start, 4, 2)).is_err();
    assert!(!past(0) && past(1), "the tables have four positions");
    only_of_the_right_lengths("rope_rows", 1, &[6], |s| {
        let tables = rope_rows::Tables { cos: &[0.5; 3], sin: &[0.5; 3], half: 3 };
        rope_rows::turn(&mut s[0], tables, rope_rows::Pairs::Halves, |_| 0, false);
    });
}

#[test]
fn linear_layers_and_their_losses() {
    let shape = linear::Shape { rows: 2, inputs: 3, outputs: 4, precision: Precision::F32 };
    only_of_the_right_lengths("linear", 1, &[6, 12, 8], |s| {
        let [x, w, y] = s else { unreachable!() };
        linear::forward(x, w, y, shape, false);
    });
    only_of_the_right_lengths("linear backward to the input", 1, &[8, 12, 6], |s| {
        let [dy, w, dx] = s else { unreachable!() };
        linear::backward_input(dy, w, dx, shape, false);
    });
    only_of_the_right_lengths("linear backward to the weight", 1, &[8, 6, 12], |s| {
        let [dy, x, dw] = s else { unreachable!() };
        linear::backward_weight(dy, x, dw, shape);
    });
    only_of_the_right_lengths("bias", 1, &[8], |s| linear::add_bias(&mut s[0], &[0.5; 4]));
    only_of_the_right_lengths("bias backward", 1, &[8], |s| linear::backward_bias(&s[0], &mut [0.5; 4]));
    let shape = linear_cross_entropy::Shape { rows: 2, inputs: 3, vocabulary: 4, precision: Precision::F32 };
    only_of_the_right_lengths("loss", 1, &[6, 12], |s| {
        linear_cross_entropy::per_row(&s[0], &s[1], &[0, IGNORE], shape);
    });
    only_of_the_right_lengths("loss backward", 3, &[6, 12, 6, 12], |s| {
        let [x, w, dx, dw] = s else { unreachable!() };
        linear_cross_entropy::forward_backward(x, w, &[3, 1], shape, 1.0, dx, dw);
    });
    for targets in [&[0][..], &[0, 1, 2], &[0, 4]] {
        let call = || linear_cross_entropy::per_row(&[0.5; 6], &[0.5; 12], targets, shape);
        assert!(catch_unwind(call).is_err(), "targets {targets:?}");
    }
}

#[test]
fn attention_and_the_optimizer() {
    let shape = attention::Shape { batch: 2, time: 3, heads: 2, kv_heads: 1, head_dim: 4 };
    only_of_the_right_lengths("attention", 1, &[48, 24, 24, 48, 12], |s| {
        let [q, k, v, out, sums] = s else { unreachable!() };
        attention::forward(q, k, v, &shape, out, sums);
    });
    only_of_the_right_lengths("attention backward", 3, &[48, 24, 24, 48, 12, 48, 48, 24, 24], |s| {
        let [q, k, v, out, log_sum_exp, dout, dq, dk, dv] = s else { unreachable!() };
        attention::backward(q, k, v, attention::Saved { out, log_sum_exp }, dout, &shape, dq, dk, dv);
    });
    let cache = attention::Shape { batch: 1, ..shape };
    only_of_the_right_lengths("attention over a cache", 4, &[8, 12, 12, 8], |s| {
        let [q, k, v, out] = s else { unreachable!() };
        attention::decode(q, k, v, &cache, out);
    });
    let settings = adamw::Settings {
        learning_rate: 0.1,
        beta1: 0.9,
        beta2: 0.95,
        epsilon: 1e-8,
        weight_decay: 0.1,
        gradient_scale: 1.0,
        step: 1,
    };
    only_of_the_right_lengths("adamw", 1, &[5, 5, 5, 5], |s| {
        let [parameter, gradient, first, second] = s else { unreachable!() };
        adamw::step(parameter, gradient, first, second, &settings);
    });
}
