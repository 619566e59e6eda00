//! Trainer, optimizer, schedule, checkpoints and metrics.
