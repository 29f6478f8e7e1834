//! The report of a cleanup, in Markdown.

use std::time::Duration;

use super::{Cleaned, Plan, Reason, Seen};
use crate::formats::runs::iso;
use crate::model::Timestamp;

/// What a cleanup did or would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    at: Timestamp,
    max_age: Duration,
    is_dry: bool,
    deleted: Vec<Seen>,
    kept: Vec<(Seen, Reason)>,
    bytes: u64,
}

impl Report {
    /// Tells what a cleanup would do.
    pub fn of_plan(plan: &Plan, max_age: Duration, at: Timestamp) -> Self {
        let bytes = plan.delete.iter().map(|seen| seen.bytes).sum();
        Self { at, max_age, is_dry: true, deleted: plan.delete.clone(), kept: plan.keep.clone(), bytes }
    }

    /// Tells what a cleanup did.
    pub fn of_done(done: &Cleaned, max_age: Duration, at: Timestamp) -> Self {
        let Cleaned { deleted, kept, bytes } = done.clone();
        Self { at, max_age, is_dry: false, deleted, kept, bytes }
    }

    /// Writes the report.
    pub fn markdown(&self) -> String {
        let (mode, cleaned, freed, heading) = if self.is_dry {
            (
                "Dry run (nothing was deleted)",
                "Runs to clean",
                "Disk space to free, at most",
                "Runs to delete",
            )
        } else {
            ("Apply", "Runs cleaned", "Disk space freed", "Deleted runs")
        };
        let mut text = format!(
            "# Checkpoint Cleanup Report\n\n**Date**: {}\n**Mode**: {mode}\n**Max Age**: {}\n\n## Summary\n\n\
             - Runs scanned: {}\n- {cleaned}: {}\n- {freed}: {}\n",
            iso(self.at),
            days(self.max_age.as_secs() / 86_400),
            self.deleted.len() + self.kept.len(),
            self.deleted.len(),
            size(self.bytes),
        );
        let deleted: Vec<String> = self.deleted.iter().map(describe).collect();
        let kept: Vec<String> = self
            .kept
            .iter()
            .map(|(seen, reason)| format!("{}: {}", describe(seen), reason.describe()))
            .collect();
        section(&mut text, heading, &deleted);
        section(&mut text, "Kept runs", &kept);
        text
    }
}

fn section(text: &mut String, heading: &str, lines: &[String]) {
    text.push_str(&format!("\n## {heading}\n\n"));
    if lines.is_empty() {
        text.push_str("None.\n");
    }
    for (at, line) in lines.iter().enumerate() {
        text.push_str(&format!("{}. {line}\n", at + 1));
    }
}

fn describe(seen: &Seen) -> String {
    let Seen { run, status, age_days, bytes, .. } = seen;
    format!("{} ({status}, age: {}, size: {})", escaped(run.as_str()), days(*age_days), size(*bytes))
}

/// The id of a run may hold signs that mean something in Markdown.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if "\\`*_[]<>#|&".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn days(count: u64) -> String {
    format!("{count} day{}", if count == 1 { "" } else { "s" })
}

fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KB", "MB", "GB", "TB"];
    let (mut size, mut unit) = (bytes as f64, 0);
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    if unit == 0 || size >= 100.0 {
        format!("{size:.0} {}", UNITS[unit])
    } else {
        format!("{size:.1} {}", UNITS[unit])
    }
}
