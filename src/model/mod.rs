//! The decoder: configuration, parameters, forward and backward walk, generation, export.
