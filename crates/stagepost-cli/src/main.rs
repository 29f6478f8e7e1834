//! The `stagepost` program.
fn main() {}
