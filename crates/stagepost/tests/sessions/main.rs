//! Sessions and tasks: stories of each operation, and the defects of the designs they follow.

#![allow(clippy::unwrap_used, reason = "a test may stop at any fault")]

mod commits;
mod imports;
mod sessions_defects;
mod sessions_stories;
mod support;
mod tasks_defects;
mod tasks_stories;
mod together;
mod views;
