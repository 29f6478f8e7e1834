//! Showing what goes on while a flow runs: on standard error, with the step's name in front.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stagepost::flow::{Progress, Watch};
use stagepost::model::StepStatus;
use stagepost::process::Output;

use crate::app::App;
use crate::ui::{self, CYAN, DIM, Form, GREEN, RED, YELLOW};

/// A line that is longer is shown in parts: a program may never end its line.
const LONGEST_LINE: usize = 4096;

/// Shows what goes on, to whoever runs the command.
pub(super) struct Live<'a> {
    app: &'a App,
    bar: ProgressBar,
    /// Lines that have begun.
    begun: Mutex<HashMap<(String, bool), Vec<u8>>>,
}

impl<'a> Live<'a> {
    /// Shows the progress of a flow with so many steps, so many of which are done.
    pub(super) fn new(app: &'a App, steps: usize, done: usize) -> Self {
        let on_terminal = app.ui.form == Form::Text && std::io::stderr().is_terminal();
        let target = if on_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(steps as u64), target);
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_position(done as u64);
        Self { app, bar, begun: Mutex::new(HashMap::new()) }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn say(&self, line: String) {
        self.bar.suspend(|| self.app.ui.say(line));
    }

    fn begun(&self) -> MutexGuard<'_, HashMap<(String, bool), Vec<u8>>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn printed(&self, step: &str, output: Output, bytes: &[u8]) {
        if self.app.ui.form != Form::Text {
            return;
        }
        let mut begun = self.begun();
        let line = begun.entry((step.to_owned(), output == Output::Err)).or_default();
        let mut lines = Vec::new();
        for byte in bytes {
            if *byte == b'\n' || line.len() >= LONGEST_LINE {
                lines.push(std::mem::take(line));
            }
            if *byte != b'\n' {
                line.push(*byte);
            }
        }
        drop(begun);
        self.show(step, &lines);
    }

    fn show(&self, step: &str, lines: &[Vec<u8>]) {
        let shown = lines.iter().map(|line| {
            let text = String::from_utf8_lossy(line);
            format!("{CYAN}{step}{CYAN:#} {DIM}|{DIM:#} {}", ui::printable_lines(text.trim_end_matches('\r')))
        });
        let shown: Vec<String> = shown.collect();
        if !shown.is_empty() {
            self.say(shown.join("\n"));
        }
    }

    fn ended(&self, step: &str, attempt: u32, status: StepStatus, took: Duration, error: Option<&str>) {
        let mut begun = self.begun();
        let rest: Vec<Vec<u8>> =
            [false, true].iter().filter_map(|err| begun.remove(&(step.to_owned(), *err))).collect();
        drop(begun);
        self.show(step, &rest.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>());
        let again = if attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
        let colour = match status {
            StepStatus::Completed => GREEN,
            StepStatus::Failed => RED,
            _ => YELLOW,
        };
        let why = error.map(|error| format!(": {}", ui::printable(error))).unwrap_or_default();
        let took = if took.is_zero() { String::new() } else { format!(" {DIM}{}{DIM:#}", duration(took)) };
        self.say(format!("{CYAN}{step}{CYAN:#} {colour}{status}{colour:#}{again}{took}{why}"));
        if !step.contains('/') && status != StepStatus::Failed {
            self.bar.inc(1);
        }
    }
}

impl Watch for Live<'_> {
    fn saw(&self, progress: Progress<'_>) {
        match progress {
            Progress::Started { run } => self.say(format!("run {run}")),
            Progress::Began { step, .. } => self.bar.set_message(step.to_owned()),
            Progress::Printed { step, output, bytes } => self.printed(step, output, bytes),
            Progress::Ended { step, attempt, status, took, error } => {
                self.ended(step, attempt, status, took, error);
            }
            Progress::Voided { steps, why } => {
                self.say(format!("{YELLOW}again{YELLOW:#} {}: {}", steps.join(", "), ui::printable(why)));
            }
            Progress::RolledBack { step } => {
                self.say(format!("{CYAN}{step}{CYAN:#}: the files are back where it began"));
            }
            Progress::EndedLeftOver { count } => {
                self.bar.suspend(|| {
                    let what = if count == 1 { "1 process".to_owned() } else { format!("{count} processes") };
                    self.app.ui.warn(format!("ended {what} of an earlier drive"));
                });
            }
            _ => {}
        }
    }
}

/// A duration in one unit that fits it.
pub(super) fn duration(took: Duration) -> String {
    match took.as_millis() {
        0..=999 => format!("{} ms", took.as_millis()),
        1000..=59_999 => format!("{:.1} s", took.as_secs_f64()),
        _ => format!("{} min {} s", took.as_secs() / 60, took.as_secs() % 60),
    }
}
