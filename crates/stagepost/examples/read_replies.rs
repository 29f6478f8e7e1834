//! Reads replies line by line and prints how each is understood: `cargo run --example read_replies -- confirm "Deploy now?"`.
//!
//! Arguments: the kind, the question (may be empty), then options as `id=label`.

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use std::io::{self, BufRead};

use stagepost::reply::{Choice, Kind, Question, parse};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let kind: Kind = arguments.next().unwrap_or_else(|| "confirm".to_owned()).parse()?;
    let text = arguments.next().filter(|text| !text.is_empty());
    let options: Vec<Choice> = arguments.filter_map(option).collect();
    let question = Question { text: text.as_deref(), ..Question::new(kind).among(&options) };
    for line in io::stdin().lock().lines() {
        let line = line?;
        println!("{}\t{line}", serde_json::to_string(&parse(&line, &question))?);
    }
    Ok(())
}

fn option(argument: String) -> Option<Choice> {
    argument.split_once('=').map(|(id, label)| Choice::new(id, label))
}
