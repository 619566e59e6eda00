//! The `shikha` command.
fn main() {}
