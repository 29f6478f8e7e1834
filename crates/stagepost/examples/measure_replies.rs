//! Measures the reply parser on labelled replies: `STAGEPOST_REPLIES=<folder> cargo run --release --example measure_replies`.
//!
//! The folder holds `replies.jsonl` (`text`, `label`, `prompt`, `source`) and `choices.jsonl` (`text`, `prompt`,
//! `options`, `gold`). With `STAGEPOST_SHOW=1` every reply that was read differently is printed.

#![allow(clippy::print_stdout, reason = "printing the figures is what it is for")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use serde::Deserialize;
use stagepost::reply::{Action, Choice, Kind, Question, parse};

#[derive(Deserialize)]
struct Row {
    text: String,
    label: String,
    prompt: Option<String>,
    source: String,
}

#[derive(Deserialize)]
struct ChoiceRow {
    text: String,
    prompt: Option<String>,
    options: Vec<String>,
    gold: i64,
}

#[derive(Default)]
struct Tally {
    rows: usize,
    actions: BTreeMap<&'static str, usize>,
}

fn main() {
    let Ok(folder) = std::env::var("STAGEPOST_REPLIES") else {
        println!("STAGEPOST_REPLIES names no folder: nothing to measure");
        return;
    };
    let show = std::env::var_os("STAGEPOST_SHOW").is_some();
    let rows: Vec<Row> = lines(&Path::new(&folder).join("replies.jsonl"));
    confirmations(&rows, show);
    choices(&lines(&Path::new(&folder).join("choices.jsonl")), show);
    throughput(&rows);
}

fn lines<T: for<'de> Deserialize<'de>>(path: &Path) -> Vec<T> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn question(prompt: Option<&str>) -> Question<'_> {
    Question { text: prompt, ..Question::new(Kind::Confirm) }
}

fn confirmations(rows: &[Row], show: bool) {
    let mut tallies: BTreeMap<(&str, &str), Tally> = BTreeMap::new();
    for row in rows {
        let reply = parse(&row.text, &question(row.prompt.as_deref()));
        for source in ["all", &row.source] {
            let tally = tallies.entry((source, &row.label)).or_default();
            tally.rows += 1;
            *tally.actions.entry(reply.action.name()).or_default() += 1;
        }
        if show && !expected(&row.label, reply.action) {
            let prompt = row.prompt.as_deref().unwrap_or_default();
            println!("{}\t{}\t{}\t{}\t[{prompt}]", row.label, reply.action, row.text, reply.because);
        }
    }
    for ((source, label), tally) in &tallies {
        println!("{source:<40.40} {label:<9} {:>5} {:?}", tally.rows, tally.actions);
    }
}

fn expected(label: &str, action: Action) -> bool {
    match label {
        "confirm" => action == Action::Confirm,
        "reject" => matches!(action, Action::Reject | Action::Cancel),
        _ => action != Action::Confirm,
    }
}

fn choices(rows: &[ChoiceRow], show: bool) {
    let (mut right, mut wrong, mut asked) = (0, 0, 0);
    for row in rows {
        let ids = (0..).map(|index: i32| index.to_string());
        let options: Vec<Choice> = ids.zip(&row.options).map(|(id, label)| Choice::new(id, label)).collect();
        let base = Question { text: row.prompt.as_deref(), ..Question::new(Kind::Choose) };
        let reply = parse(&row.text, &base.among(&options));
        let meant = row.gold.to_string();
        let verdict = match reply.action {
            Action::Select if reply.details.option_ids == [meant] => &mut right,
            Action::RequestMore | Action::Reject if row.gold < 0 => &mut right,
            Action::Select => &mut wrong,
            _ => &mut asked,
        };
        *verdict += 1;
        let fits = reply.details.option_ids.first().map_or(-1, |id| id.parse().unwrap_or(-2)) == row.gold;
        if show && (!fits || reply.action == Action::Clarify) {
            println!(
                "choose\t{}\t{}\t{:?}\t{:?}\t{}",
                row.gold, row.text, row.options, reply.details.option_ids, reply.because
            );
        }
    }
    println!("choices: {right} right, {wrong} wrong, {asked} asked back, of {}", rows.len());
}

fn throughput(rows: &[Row]) {
    let started = Instant::now();
    let (mut read, mut consents) = (0u32, 0u32);
    while started.elapsed().as_secs_f64() < 1.0 && !rows.is_empty() {
        for row in rows {
            let reply = parse(&row.text, &question(row.prompt.as_deref()));
            consents += u32::from(reply.action.is_consent());
            read += 1;
        }
    }
    println!(
        "{:.0} replies a second ({consents} consents)",
        f64::from(read) / started.elapsed().as_secs_f64()
    );
}
