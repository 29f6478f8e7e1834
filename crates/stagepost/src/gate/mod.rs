//! Gates: a question to a person that a run waits for, and the answer that it got.

mod options;

pub use options::Options;
