//! What a flow file says: steps, what each needs, and what to do when one fails.
//!
//! Start at [`Flow::read`]. It reads and checks a whole file and knows the line and column of everything that is wrong
//! with it; what it returns can be run. Nothing here runs, stores or looks at a disk.
//!
//! What always holds of a [`Flow`]: it has at least one step, their ids differ, whatever a step names (a need, a
//! target, a reference) exists, needs form no circle, and no path leaves the project.

mod flow;
mod step;

mod condition;
mod reference;
mod scope;

mod check;
mod graph;
mod invalid;
mod node;
mod read;
mod schema;

pub use condition::{Condition, InvalidCondition, Undecided};
pub use flow::{Flow, Retention};
pub use graph::Graph;
pub use invalid::{Fault, Invalid, Place, token_in};
pub use reference::{InvalidReference, Reference, Source};
pub use scope::{Scope, StepResult};
pub use step::{
    Action, Ask, Command, Effects, ForEach, InvalidStepId, OnFailure, Output, Refine, Retry, Step, StepId,
    Target,
};
