//! Plans a small cycling route from data it ships, through the five gates of the `route` journey, and writes a GPX file.
//!
//! `route-planner [--answers FILE] [--wait] FOLDER "40 km from Millbrook, avoid Highway 1"` asks at the terminal; without one
//! it stops at each gate with exit code 6. Answer with `stagepost gate answer @ TEXT` and run it again: it goes on where
//! it was, also after a kill.

mod file;
mod plan;
mod valley;

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use stagepost::gate::journey::{Arrived, Travel, route};
use stagepost::gate::{Asker, Gate, Gates, Lines, Message, Origin, Pending, Scripted};
use stagepost::model::RunId;
use stagepost::project::{Context, Place, Project, Settings};
use stagepost::snapshot::GitProgram;

use plan::Planner;

struct Args {
    folder: PathBuf,
    query: String,
    answers: Option<PathBuf>,
    wait: bool,
}

fn main() -> ExitCode {
    let Some(args) = args() else {
        return ended(2, "usage: route-planner [--answers FILE] [--wait] FOLDER QUERY");
    };
    match travel(&args) {
        Ok(Arrived::AtTheEnd(results)) => ended(0, results["generate"]["file"].as_str().unwrap_or_default()),
        Ok(Arrived::Waiting(gate)) => ended(6, &format!("{}: {}", gate.id, gate.prompt.question())),
        Ok(Arrived::Stopped(gate)) => ended(7, &format!("{} ended it", gate.id)),
        Err(error) => ended(1, &error.to_string()),
    }
}

fn ended(code: u8, text: &str) -> ExitCode {
    let _ = writeln!(io::stdout(), "{text}");
    ExitCode::from(code)
}

fn args() -> Option<Args> {
    let (mut answers, mut wait, mut rest) = (None, false, Vec::new());
    let mut given = std::env::args().skip(1);
    while let Some(arg) = given.next() {
        match arg.as_str() {
            "--answers" => answers = Some(PathBuf::from(given.next()?)),
            "--wait" => wait = true,
            _ => rest.push(arg),
        }
    }
    let [folder, query] = rest.try_into().ok()?;
    Some(Args { folder: folder.into(), query, answers, wait })
}

fn travel(args: &Args) -> Result<Arrived, Box<dyn Error>> {
    let place = Place::find(&args.folder)?.unwrap_or_else(|| Place::without_git(&args.folder));
    let who = std::env::var("USER").unwrap_or_else(|_| "unknown".to_owned());
    let context = Context::system(who, GitProgram::new("git", std::env::vars_os()));
    let project = Project::init(place, Settings::default(), context)?;
    let (journey, run) = (route(), RunId::new("route")?);
    let travel = Travel { project: &project, journey: &journey, run: &run, restore_files: false };
    let mut planner = Planner::new(&args.query, args.folder.join("route.gpx"))?;
    let mut asker = asker(args)?;
    loop {
        let arrived = travel.go(&mut planner, &mut *asker)?;
        match &arrived {
            Arrived::Waiting(gate) if args.wait => drop(Gates::of(&project).wait(&gate.id, None)?),
            _ => return Ok(arrived),
        }
    }
}

fn asker(args: &Args) -> io::Result<Box<dyn Asker>> {
    if let Some(file) = &args.answers {
        let words = std::fs::read_to_string(file)?;
        return Ok(Box::new(Scripted::new(words.lines())));
    }
    if io::stdin().is_terminal() && !args.wait {
        return Ok(Box::new(Lines { input: io::stdin().lock(), show, origin: Origin::Person }));
    }
    Ok(Box::new(Pending))
}

fn show(_: &Gate, message: &Message) -> io::Result<()> {
    let mut out = io::stderr().lock();
    write!(out, "{}> ", message.plain(80))?;
    out.flush()
}
