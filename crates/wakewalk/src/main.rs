//! The wakewalk command.
fn main() {}
