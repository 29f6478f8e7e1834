//! Work tree to git and back.

mod beneath;
mod forbidden;
