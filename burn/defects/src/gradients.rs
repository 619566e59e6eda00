//! Every float parameter of a module with its gradient, by dotted name. Depends on Burn alone.

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::{Gradients, Tensor, TensorData};

/// One parameter as the module's own walk shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Field names and indices from the root, joined with dots: `blocks.0.query.weight`.
    pub name: String,
    /// Lengths of the axes.
    pub shape: Vec<usize>,
    /// Identity. Two parameters with the same one share a place in every map of gradients.
    pub id: ParamId,
    /// Whether the tensor is a leaf that asks for a gradient.
    pub requires_grad: bool,
    /// The values, row-major.
    pub values: Vec<f64>,
    /// The gradient, row-major; `None` where the tape holds none.
    pub gradient: Option<Vec<f64>>,
}

/// Every float parameter of `module`, in the order of its fields, with its gradient from `gradients`.
///
/// `module` must be the object that ran the forward pass: a copy that was moved, mapped or loaded since
/// has other leaves. A parameter that was never used is initialised by this walk. The walk sees only
/// what the module's own traversal sees, so a caller that wants to know of forgotten fields brings its
/// own list of names.
pub fn collect<M: Module>(module: &M, gradients: &Gradients) -> Vec<Seen> {
    let mut walk = Walk { gradients, path: Vec::new(), seen: Vec::new() };
    module.visit(&mut walk);
    walk.seen
}

/// Groups of names, in order of first appearance, whose parameters share one identity.
pub fn shared(seen: &[Seen]) -> Vec<Vec<&str>> {
    let mut groups: Vec<(ParamId, Vec<&str>)> = Vec::new();
    for one in seen {
        match groups.iter_mut().find(|(id, _)| *id == one.id) {
            Some((_, names)) => names.push(&one.name),
            None => groups.push((one.id, vec![&one.name])),
        }
    }
    groups.into_iter().map(|(_, names)| names).filter(|names| names.len() > 1).collect()
}

struct Walk<'a> {
    gradients: &'a Gradients,
    path: Vec<String>,
    seen: Vec<Seen>,
}

impl ModuleVisitor for Walk<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = param.val();
        self.seen.push(Seen {
            name: self.path.join("."),
            shape: tensor.dims().to_vec(),
            id: param.id,
            requires_grad: tensor.is_require_grad(),
            gradient: tensor.grad(self.gradients).map(|g| numbers(&g.into_data())),
            values: numbers(&tensor.inner().into_data()),
        });
    }

    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }
}

fn numbers(data: &TensorData) -> Vec<f64> {
    data.iter::<f64>().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::nn::{Linear, LinearConfig};
    use burn::tensor::Device;

    #[test]
    fn names_shapes_values_and_gradients_are_those_of_the_module() {
        let device = Device::flex().autodiff();
        let layers: Vec<Linear> = [(2, 3), (3, 1)].map(|(i, o)| LinearConfig::new(i, o).init(&device)).into();
        let input = Tensor::<2>::from_floats([[1.0, 2.0], [3.0, 5.0]], &device);
        // Only the first layer is used: its weight's gradient is each column's input sum.
        let seen = collect(&layers, &layers[0].forward(input).sum().backward());
        let names: Vec<&str> = seen.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["0.weight", "0.bias", "1.weight", "1.bias"]);
        assert_eq!(seen[0].shape, [2, 3]);
        assert_eq!(seen[0].gradient.as_deref(), Some(&[4.0, 4.0, 4.0, 7.0, 7.0, 7.0][..]));
        assert_eq!(seen[1].gradient.as_deref(), Some(&[2.0; 3][..]));
        assert_eq!((seen[2].gradient.as_ref(), seen[2].requires_grad), (None, true));
        assert_eq!(seen[0].values, numbers(&layers[0].weight.val().into_data()));
        assert!(shared(&seen).is_empty());
    }

    #[test]
    fn clones_of_one_parameter_are_both_there_and_share_an_identity() {
        let device = Device::flex().autodiff();
        let layer = LinearConfig::new(2, 2).with_bias(false).init(&device);
        let layers = vec![layer.clone(), layer];
        let input = Tensor::<2>::ones([1, 2], &device);
        let seen = collect(&layers, &layers[1].forward(input).sum().backward());
        assert_eq!(seen.len(), 2);
        assert_eq!(shared(&seen), [["0.weight", "1.weight"]]);
    }
}
