//! Gates: a question to a person that a run waits for, and the answer that it got.
//!
//! Start at [`Gates::ask`] and [`Gates::answer`]. A question is stored before anyone is asked, so it survives whoever
//! asked it and can be answered from anywhere, once. Everything that is known of a gate is told by its events
//! ([`Moment`]); its answer is a checkpoint of its run, written in one step with the event.
//!
//! What always holds:
//! - Of several answers exactly one wins. A gate that is answered, cancelled, expired or void takes none.
//! - A yes is bound to the hash of what was shown. What changed since is asked again.
//! - Silence is never a yes: what a time-out counts as ([`Outcome`]) has no word for it.
//! - Nothing that is shown can act on a terminal, or look like a heading of ours.
//!
//! How words are understood is the business of [`crate::reply`].

mod id;
mod options;
mod prompt;
mod record;
mod state;

mod answer;
mod back;
mod gates;
mod wait;

mod menu;
mod message;
mod route;
mod says;
mod shapes;
mod terminal;

mod asker;
pub mod journey;
mod outside;

mod error;

pub use answer::{Heard, Said};
pub use asker::{Asker, Callback, Lines, Pending, Program, Scripted};
pub use back::GoingBack;
pub use error::Error;
pub use gates::{Ask, Gates};
pub use id::GateId;
pub use menu::{Key, Menu, Step};
pub use message::{Message, Possible, Section};
pub use options::Options;
pub use outside::Bounds;
pub use prompt::{Prompt, Unclear};
pub use record::{Answer, Attempt, Deadline, Moment, Of, Origin, Outcome};
pub use shapes::{Offered, Question, elicited};
pub use state::{Gate, Reopening, State, Verdict};
pub use terminal::{Span, Tone};
