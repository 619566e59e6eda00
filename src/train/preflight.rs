//! Before the first step: the arbiter looks at every gradient of one batch.

use super::TrainError;
use crate::arbiter::{Expectation, Gradient, Parameter, Subject, Verdict, judge};
use crate::artifact::write_atomic;
use crate::corpus::loader::Batch;
use crate::model::{Decoder, ModelError, Parameters, Window};
use std::path::Path;

/// The gradients of one batch, with what is expected of them.
struct Probe<'a> {
    gradients: &'a Parameters<f32>,
    /// For an untied embedding, the tokens that do not occur in the batch.
    absent: Option<Vec<bool>>,
}

impl Subject for Probe<'_> {
    fn show(&self, look: &mut dyn FnMut(&Parameter, Option<Gradient>)) {
        for tensor in self.gradients.tensors() {
            let embedding = tensor.name.contains("embed_tokens");
            let expectation = match &self.absent {
                Some(absent) if embedding => Expectation::ZeroRows(absent.clone()),
                _ => Expectation::Trainable,
            };
            let parameter = Parameter { name: tensor.name.clone(), shape: tensor.shape.clone(), expectation };
            look(&parameter, Some(Gradient::F32(self.gradients.values(tensor))));
        }
    }
}

/// The arbiter's verdict on one forward and backward pass over `batch`.
///
/// # Errors
/// [`ModelError`] when the batch does not fit the model.
pub fn preflight(
    decoder: &mut Decoder<f32>,
    parameters: &Parameters<f32>,
    batch: &Batch,
) -> Result<Verdict, ModelError> {
    let mut gradients = parameters.zeros_like();
    let window = Window { inputs: &batch.inputs, targets: &batch.targets, time: batch.context };
    decoder.forward_backward(parameters, window, 1.0 / batch.counted().max(1) as f64, &mut gradients)?;
    let config = decoder.config();
    let absent = (!config.tie_word_embeddings).then(|| {
        let mut absent = vec![true; config.vocab_size];
        batch.inputs.iter().for_each(|id| absent[*id as usize] = false);
        absent
    });
    Ok(judge(&Probe { gradients: &gradients, absent }))
}

/// Writes the verdict, and refuses to start when it names a parameter.
pub(super) fn require(verdict: &Verdict, path: &Path) -> Result<(), TrainError> {
    let mut text = serde_json::to_vec_pretty(verdict).unwrap_or_else(|e| unreachable!("a verdict is plain data: {e}"));
    text.push(b'\n');
    write_atomic(path, &text)?;
    if verdict.passed() {
        return Ok(());
    }
    let findings = verdict.findings.iter().map(|f| format!("`{}` {}", f.parameter, f.evidence)).collect();
    Err(TrainError::Preflight { findings, report: path.to_path_buf() })
}
