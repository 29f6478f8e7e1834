//! Programs that ask or work for us: in a group of their own, bounded, and gone when we are.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::process::{self, Cancel, Ended, Guard, Limits, Output};

/// More than this is no answer and no result of work.
pub(super) const MOST_OUTPUT: usize = 16 << 20;

/// Has a program that was asked to stop so long before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// How many programs this process has started.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// How a program is run that asks or works for us.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// Gets what it writes to its standard error, as it comes.
    pub told: fn(&[u8]),
}

impl Default for Bounds {
    fn default() -> Self {
        Self { timeout: None, told: |_| {} }
    }
}

/// What a program wrote to its standard output.
pub(super) struct Wrote {
    pub(super) ended: Ended,
    /// Nothing, if it wrote more than is taken.
    pub(super) out: Option<Vec<u8>>,
}

/// Runs a program to its end. Nothing of it is left when this returns, and nothing of it stays when this process is
/// killed meanwhile.
pub(super) fn run(mut program: process::Program, bounds: &Bounds) -> Result<Wrote, process::Error> {
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let (name, value) = ("STAGEPOST_OUTSIDE", format!("{}-{number}", std::process::id()));
    let start = |source: io::Error, program: &process::Program| process::Error::Start {
        program: program.name(),
        source,
    };
    let _guard = Guard::over(&format!("{name}={value}")).map_err(|source| start(source, &program))?;
    program.set.push((name.into(), value.into()));
    let limits =
        Limits { timeout: bounds.timeout, grace: GRACE, keep: MOST_OUTPUT, most: None }.with_an_end();
    let cancel = Cancel::new().map_err(|source| start(source, &program))?;
    let mut output = |from: Output, bytes: &[u8]| {
        if from == Output::Err {
            (bounds.told)(bytes);
        }
    };
    let done = process::run(&program, &limits, &cancel, &mut |_| {}, &mut output)?;
    Ok(Wrote { ended: done.ended, out: done.out.whole() })
}
