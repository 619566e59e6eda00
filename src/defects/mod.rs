//! The defect catalogue: what Candle and Burn do wrong as training backends.
