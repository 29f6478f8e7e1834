use serde_json::Value;
use stagepost::model::RunId;
use stagepost::plan::{self, Comparison, Plan, Side};
use stagepost::project::Project;

use super::{number, score_text};
use crate::app::App;
use crate::commands::diff::json_line;
use crate::failure::Failure;
use crate::json::Output;
use crate::ui::{self, BOLD, DIM, Form, GREEN, RED};

/// Compare two iterations: scores, what was said of them, and what differs between the plans
///
/// `compare RUN 1 3` compares iterations of one run, `compare RUN:1 OTHER:3` of two.
#[derive(Debug, clap::Args)]
pub(crate) struct CompareArgs {
    /// The run, then two iterations: numbers, or RUN:N
    #[arg(value_name = "RUN A B", required = true, num_args = 2..=3)]
    names: Vec<String>,
    /// Only say how much differs between the plans
    #[arg(long)]
    stat: bool,
}

pub(crate) fn run(app: &App, args: &CompareArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let (run, names) = match args.names.as_slice() {
        [run, a, b] => (Some(run.as_str()), [a, b]),
        [a, b] => (None, [a, b]),
        _ => return Err(Failure::usage("name a run and two iterations")),
    };
    let (a, b) = (find(&project, run, names[0])?, find(&project, run, names[1])?);
    let comparison = plan::compare(&project, (&a.0, a.1), (&b.0, b.1))?;
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(comparison)),
        Form::Quiet => app.ui.line(comparison.changes.len().to_string()),
        Form::Text => text(app, &comparison, args.stat),
    }
}

/// Reads `3` or `RUN:3`.
fn find(project: &Project, run: Option<&str>, name: &str) -> Result<(RunId, u32), Failure> {
    let (run, iteration) = match (name.rsplit_once(':'), run) {
        (Some((run, iteration)), _) => (run, iteration),
        (None, Some(run)) => (run, name),
        (None, None) => {
            return Err(Failure::usage(format!("`{}` names no run: write RUN:N", name.escape_debug())));
        }
    };
    let number = iteration.parse().map_err(|_| {
        Failure::usage(format!("`{}` is not the number of an iteration", iteration.escape_debug()))
    })?;
    Ok((Plan::find(project, run)?.id().clone(), number))
}

fn text(app: &App, comparison: &Comparison, stat: bool) -> Result<(), Failure> {
    let Comparison { a, b, breakdown, changes } = comparison;
    let title = |side: &Side| format!("{}:{}", side.run, side.iteration);
    let width = width();
    columns(
        app,
        width,
        &format!("{BOLD}{}{BOLD:#}", title(a)),
        title(a).len(),
        &format!("{BOLD}{}{BOLD:#}", title(b)),
    )?;
    let (one, two) = (score_text(a.scored.as_ref()), score_text(b.scored.as_ref()));
    columns(app, width, &one, one.chars().count(), &two)?;
    side_by_side(app, width, &words(&a.feedback), &words(&b.feedback))?;
    for part in breakdown {
        let value = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
        let shift = part.a.zip(part.b).map(|(a, b)| b - a).filter(|shift| *shift != 0.0);
        let style = if shift.is_some_and(|shift| shift < 0.0) { RED } else { GREEN };
        let shift = shift.map_or(String::new(), |shift| {
            format!("  {style}{}{}{style:#}", if shift > 0.0 { "+" } else { "" }, number(shift))
        });
        app.ui.line(format!(
            "{DIM}{}{DIM:#}  {} → {}{shift}",
            ui::printable(&part.name),
            value(part.a),
            value(part.b)
        ))?;
    }
    app.ui.line(format!("{BOLD}plan{BOLD:#}  {}", ui::count(changes.len(), "change")))?;
    if stat {
        return Ok(());
    }
    // Thousands of lines are printed at once.
    let lines: Vec<String> = changes.iter().map(|change| json_line(change) + "\n").collect();
    app.ui.text(&lines.concat())
}

/// Feedback as lines of text.
fn words(feedback: &Value) -> String {
    match feedback {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            items.iter().map(|item| format!("- {}", words(item))).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}

/// The width of one of two columns.
fn width() -> usize {
    let whole = terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0));
    (whole.clamp(40, 160) - 3) / 2
}

fn columns(app: &App, width: usize, a: &str, length: usize, b: &str) -> Result<(), Failure> {
    app.ui.line(format!("{a}{} {DIM}│{DIM:#} {b}", " ".repeat(width.saturating_sub(length))))
}

fn side_by_side(app: &App, width: usize, a: &str, b: &str) -> Result<(), Failure> {
    let (one, two) = (wrapped(a, width), wrapped(b, width));
    let empty = String::new();
    (0..one.len().max(two.len())).try_for_each(|line| {
        let (a, b) = (one.get(line).unwrap_or(&empty), two.get(line).unwrap_or(&empty));
        columns(app, width, a, a.chars().count(), b)
    })
}

/// Breaks text into lines at blanks; a word that is too long is cut.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in ui::printable(paragraph).split_whitespace() {
            let room = width.saturating_sub(line.chars().count() + usize::from(!line.is_empty()));
            if word.chars().count() > room && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            let mut rest: Vec<char> = word.chars().collect();
            while rest.len() > width {
                lines.push(rest.drain(..width).collect());
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.extend(rest);
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn text_is_broken_at_blanks_and_long_words_are_cut() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrapped("a\n\nb", 4), ["a", "", "b"]);
        assert!(wrapped("", 4).is_empty());
    }
}
