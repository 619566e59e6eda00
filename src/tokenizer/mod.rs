//! Pre-tokenizers, BPE training and fertility.
