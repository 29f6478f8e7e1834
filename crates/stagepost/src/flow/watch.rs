//! Telling a front end what goes on.

use std::time::Duration;

use crate::model::{RunId, StepStatus};
use crate::process::Output;

/// Something that goes on in a run.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// A new run is in the store, and begins.
    Started {
        /// Its name.
        run: &'a RunId,
    },
    /// Something of an earlier attempt was still running and was ended.
    EndedLeftOver {
        /// How many processes or groups.
        count: usize,
    },
    /// An attempt begins.
    Began {
        /// The step.
        step: &'a str,
        /// The number of the attempt.
        attempt: u32,
    },
    /// A program printed something; secrets are taken out.
    Printed {
        /// The step.
        step: &'a str,
        /// Where.
        output: Output,
        /// What; not always whole lines.
        bytes: &'a [u8],
    },
    /// An attempt ended, and that is durable.
    Ended {
        /// The step.
        step: &'a str,
        /// The number of the attempt.
        attempt: u32,
        /// How it ended.
        status: StepStatus,
        /// How long it took.
        took: Duration,
        /// What went wrong, in words.
        error: Option<&'a str>,
    },
    /// Results hold no more: the run goes back.
    Voided {
        /// The steps.
        steps: &'a [String],
        /// Why, in words.
        why: &'a str,
    },
    /// The files were put back to where a step began.
    RolledBack {
        /// The step.
        step: &'a str,
    },
}

/// Sees what goes on in a run, from several threads at once.
pub trait Watch: Sync {
    /// Is told what goes on. It *should* return soon: a step waits for it.
    fn saw(&self, progress: Progress<'_>);
}

/// Looks away.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn saw(&self, _: Progress<'_>) {}
}
