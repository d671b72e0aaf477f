//! The lab runner.
fn main() {}
