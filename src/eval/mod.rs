//! Evaluation: loss per token, character and byte, with intervals; the random twin.
