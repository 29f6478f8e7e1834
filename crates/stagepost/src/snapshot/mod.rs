//! Work tree to git and back.

mod beneath;
mod change;
mod lines;
mod plan;
mod rename;
