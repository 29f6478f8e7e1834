//! The journey of route planning, as its state diagram draws it.

use std::collections::HashMap;

use super::{END, Journey, Run, Stop, Task};
use crate::gate::Prompt;
use crate::reply::{Action, Kind};

/// Returns the journey of route planning: from a query to a GPX file, through five gates.
///
/// The work is done at `query` (understand what is wanted), `research`, `candidates` (generate routes), `refine` (propose
/// refinements), `finish` (make the final route) and `generate` (write the file). One can go back at every gate: to the
/// gate before, or to the one that is named; at the first, to the query.
pub fn route() -> Journey {
    use Action::{Approve, Back, Clarify, Confirm, Refine, RequestMore, Select};
    let stops = vec![
        work("query"),
        ask(
            "confirm_intent",
            Kind::ConfirmIntent,
            "query",
            &[(Confirm, "research"), (Clarify, "query"), (Back, "query")],
        ),
        work("research"),
        ask(
            "present_findings",
            Kind::PresentFindings,
            "research",
            &[(Confirm, "candidates"), (RequestMore, "research")],
        ),
        work("candidates"),
        ask(
            "select_route",
            Kind::SelectRoute,
            "candidates",
            &[(Select, "refine"), (RequestMore, "candidates")],
        ),
        work("refine"),
        ask("refine_route", Kind::RefineRoute, "refine", &[(Confirm, "finish"), (Refine, "refine")]),
        work("finish"),
        ask("present_final", Kind::PresentFinal, "finish", &[(Approve, "generate"), (Refine, "refine")]),
        Stop {
            id: "generate".to_owned(),
            task: Task::Run { run: Run::Nothing, next: Some(END.to_owned()), timeout: None },
        },
    ];
    let journey = Journey {
        name: "route".to_owned(),
        stops,
        files: false,
        input: serde_json::Value::Null,
        timeout: None,
    };
    journey.checked().expect("the diagram leads to its end")
}

fn work(id: &str) -> Stop {
    Stop { id: id.to_owned(), task: Task::Run { run: Run::Nothing, next: None, timeout: None } }
}

fn ask(id: &str, kind: Kind, data: &str, on: &[(Action, &str)]) -> Stop {
    let on: HashMap<Action, String> = on.iter().map(|(action, to)| (*action, (*to).to_owned())).collect();
    Stop {
        id: id.to_owned(),
        task: Task::Ask { ask: Box::new(Prompt::new(kind)), data: Some(data.to_owned()), on },
    }
}
