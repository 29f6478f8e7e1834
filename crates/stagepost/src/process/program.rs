//! What to run, and within which bounds.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A program to run.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Where it runs; without one, where we do.
    pub folder: Option<PathBuf>,
    /// Whether it inherits nothing of our environment.
    pub alone: bool,
    /// What is added to the environment it inherits.
    pub set: Vec<(OsString, OsString)>,
    /// What is taken out of the environment it inherits.
    pub unset: Vec<OsString>,
    /// What it can read on its standard input.
    pub input: Vec<u8>,
}

impl Program {
    /// A program with its arguments.
    pub fn new(argv: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { argv: argv.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// A line for the shell.
    pub fn shell(line: &str) -> Self {
        Self::new(["/bin/sh", "-c", line])
    }

    /// Its name as a person knows it, for messages: for a line of shell, that line.
    pub fn name(&self) -> String {
        let named = match self.argv.as_slice() {
            [shell, flag, line] if shell == "/bin/sh" && flag == "-c" => Some(line),
            argv => argv.first(),
        };
        named.map_or_else(|| "(nothing)".to_owned(), |name| name.to_string_lossy().escape_debug().to_string())
    }
}

/// The bounds of a program.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// How long it has, once asked to stop, before it is killed.
    pub grace: Duration,
    /// How many bytes of each of its outputs are kept.
    pub keep: usize,
    /// How many bytes it may write to its standard output before it is ended. Who prints without end would never be done.
    pub most: Option<u64>,
}

impl Limits {
    /// Ends a program that prints far more than is kept; one that prints a little too much may come to its end.
    #[must_use]
    pub fn with_an_end(self) -> Self {
        Self { most: Some((self.keep as u64).saturating_mul(4)), ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { timeout: None, grace: Duration::from_secs(5), keep: 1 << 20, most: None }
    }
}
