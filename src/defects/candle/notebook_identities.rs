//! A notebook that links Candle statically into every cell: tensor identities start anew in each, and gradients are lost.

use crate::defects::{Check, Entry, Kind, Training};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-notebook-identities",
    title: "In a notebook whose cells link Candle statically, backward gives no gradient to a variable of an earlier cell",
    kind: Kind::MissingGradient,
    report: None,
    reading: None,
    check: Check::Elsewhere(
        "the notebook kernel evcxr_jupyter with its default linking. Cell 1: let w = Var::new(&[1f32, 2., 3.], &Device::Cpu)?; \
         cell 2: let x = Tensor::new(&[4f32, 5., 6.], &Device::Cpu)?; w.mul(&x)?.sum_all()?.backward()?.get(&w) gives None: \
         each cell counts its tensors from 1, so w and x have one identity. Control: the same through one crate of type dylib",
    ),
    training: Training::NoCurve("it needs the notebook kernel"),
    workaround: "use Candle through one library of crate type dylib, so that its counter exists once",
    source: include_str!("notebook_identities.rs"),
};
