//! Payloads as pieces: where to cut, how to hash and compress, how to list them.
//!
//! A payload below [`WHOLE`] bytes is one piece. A larger one is cut so that two versions of it share most of
//! their pieces: JSON where an element ends, everything else by content. Nothing here touches a disk; every store
//! uses the same cuts.

mod codec;
mod cut;
mod list;
mod prepared;

pub(crate) use codec::{decode, encode, encode_tight};
pub use cut::Cut;
pub(crate) use cut::Cutter;
pub(crate) use list::PieceList;
pub use prepared::Prepared;
pub(crate) use prepared::{Packing, Piece};

/// Payloads smaller than this are not cut.
pub const WHOLE: usize = 4096;
