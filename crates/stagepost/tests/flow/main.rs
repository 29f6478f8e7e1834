//! Flows, told as short stories through the library, on a real store.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod asking;
mod each;
mod from_files;
mod going_on;
mod hostile;
mod in_code;
mod keeping;
mod leading;
mod seed;
mod support;
