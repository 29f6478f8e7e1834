//! From gate to gate, and back.

use std::cell::RefCell;

use serde_json::{Value, json};
use stagepost::gate::Prompt;
use stagepost::gate::journey::{
    Arrived, Commands, Error, Journey, Travel, Work, abandon, on_their_way, route,
};
use stagepost::gate::{Bounds, Origin, Pending, Scripted, State};
use stagepost::model::{Event, RunId, Topic};
use stagepost::reply::Kind;
use stagepost::retention::Policy;
use stagepost::store::Query;

use crate::support::{TempGates, id};

/// Does the work of the route journey and remembers what it did.
fn work(done: &RefCell<Vec<String>>) -> impl Work + '_ {
    move |stop: &str, input: &Value| {
        done.borrow_mut().push(stop.to_owned());
        let count = done.borrow().iter().filter(|other| *other == stop).count();
        let chosen = |answers: &Value| {
            let all = answers.as_array().cloned().unwrap_or_default();
            all.iter()
                .rev()
                .find(|one| one["action"] == "select")
                .map(|one| one["details"]["option_ids"][0].clone())
        };
        Ok(match stop {
            "query" => json!({"query": {"destinations": [format!("try {count}")]}}),
            "research" => json!({"insights": [format!("finding {count}")]}),
            "candidates" => {
                json!({"candidates": [{"id": "r1", "name": "Coast"}, {"id": "r2", "name": "Ridge"}]})
            }
            "refine" => {
                json!({"selectedRoute": {"name": chosen(&input["answers"])}, "proposedRefinements": [format!("refinement {count}")]})
            }
            "finish" => json!({"finalRoute": {"name": input["results"]["refine"]["selectedRoute"]["name"]}}),
            other => json!({"wrote": other, "of": input["results"]["finish"]["finalRoute"]["name"]}),
        })
    }
}

struct Trip {
    temp: TempGates,
    journey: Journey,
    run: RunId,
    done: RefCell<Vec<String>>,
}

impl Trip {
    fn new(journey: Journey) -> Self {
        Self {
            temp: TempGates::new(),
            journey,
            run: RunId::new("trip").expect("a name"),
            done: RefCell::default(),
        }
    }

    fn travel(&self) -> Travel<'_> {
        Travel { project: &self.temp.project, journey: &self.journey, run: &self.run, restore_files: true }
    }

    fn go(&self, words: &[&str]) -> Arrived {
        self.travel()
            .go(&mut work(&self.done), &mut Scripted::new(words.iter().copied()))
            .expect("the way is free")
    }

    fn waits_at(&self, arrived: &Arrived) -> String {
        let Arrived::Waiting(gate) = arrived else { panic!("{arrived:?}") };
        gate.id.to_string()
    }
}

#[test]
fn the_diagram_leads_to_its_end() {
    let trip = Trip::new(route());
    let arrived = trip.go(&["yes", "looks good", "ridge", "yes", "yes, generate the GPX"]);
    let Arrived::AtTheEnd(results) = arrived else { panic!("{arrived:?}") };
    assert_eq!(results["generate"]["of"], "r2");
    assert_eq!(*trip.done.borrow(), ["query", "research", "candidates", "refine", "finish", "generate"]);
    assert!(matches!(trip.go(&[]), Arrived::AtTheEnd(_)), "at its end it stays");
    assert_eq!(trip.done.borrow().len(), 6, "and nothing is done again");
}

#[test]
fn every_arrow_of_the_diagram() {
    let trip = Trip::new(route());
    assert_eq!(trip.waits_at(&trip.go(&["Actually, I want to avoid Highway 1"])), "trip.confirm_intent.2");
    assert_eq!(
        trip.waits_at(&trip.go(&["yes", "Can you research more about water stops?"])),
        "trip.present_findings.2"
    );
    assert_eq!(
        trip.waits_at(&trip.go(&["go ahead", "1", "yes but move the lunch stop"])),
        "trip.refine_route.2"
    );
    assert_eq!(
        trip.waits_at(&trip.go(&["yes", "Can you adjust the clothing recommendations?"])),
        "trip.refine_route.3"
    );
    assert!(matches!(trip.go(&["yes", "yes"]), Arrived::AtTheEnd(_)));
    let done = trip.done.borrow().join(" ");
    assert_eq!(done, "query query research research candidates refine refine finish refine finish generate");
}

#[test]
fn going_back_keeps_the_history_and_does_again_what_depends_on_it() {
    let trip = Trip::new(route());
    trip.go(&["yes", "go ahead", "coast", "yes"]);
    let arrived = trip.go(&["go back to the selection"]);
    assert_eq!(trip.waits_at(&arrived), "trip.select_route.1");
    let final_gate = trip.temp.gates().get(&id("trip.present_final.1")).unwrap();
    assert!(
        matches!(&final_gate.state, State::Void { back_to, .. } if back_to.as_str() == "trip.select_route.1")
    );
    assert_eq!(final_gate.void_answers[0].words, "go back to the selection");
    let selection = trip.temp.gates().get(&id("trip.select_route.1")).unwrap();
    assert_eq!(selection.void_answers[0].reply.details.option_ids, ["r1"]);

    trip.done.borrow_mut().clear();
    let arrived = trip.go(&["ridge", "yes", "yes"]);
    let Arrived::AtTheEnd(results) = arrived else { panic!("{arrived:?}") };
    assert_eq!(results["generate"]["of"], "r2");
    assert_eq!(*trip.done.borrow(), ["refine", "finish", "generate"], "only what depends on it");
}

#[test]
fn one_can_go_back_at_every_gate() {
    let trip = Trip::new(route());
    assert_eq!(trip.waits_at(&trip.go(&["go back"])), "trip.confirm_intent.2");
    for (words, to) in [
        (&["yes", "go back"][..], "trip.confirm_intent.2"),
        (&["yes", "go ahead", "go back"], "trip.present_findings.1"),
        (&["go ahead", "coast", "go back"], "trip.select_route.1"),
        (&["coast", "yes", "go back"], "trip.refine_route.1"),
    ] {
        assert_eq!(trip.waits_at(&trip.go(words)), to, "{words:?}");
    }
    assert!(matches!(trip.go(&["yes", "cancel"]), Arrived::Stopped(_)));
}

#[test]
fn a_gate_that_someone_reopens_takes_the_run_back() {
    let trip = Trip::new(route());
    trip.go(&["yes", "go ahead", "coast"]);
    trip.temp.gates().reopen(&id("trip.present_findings.1"), "look again").unwrap();
    assert_eq!(trip.waits_at(&trip.go(&[])), "trip.present_findings.1");
    assert_eq!(trip.waits_at(&trip.go(&["go ahead"])), "trip.select_route.1");
    assert_eq!(trip.done.borrow().iter().filter(|stop| *stop == "candidates").count(), 2);
}

#[test]
fn an_answer_whose_ground_is_gone_is_asked_for_again() {
    let trip = Trip::new(route());
    trip.go(&["yes", "go ahead", "coast"]);
    let first = trip.temp.gates().get(&id("trip.confirm_intent.1")).unwrap().checkpoint().unwrap();
    let body = json!({ "checkpoints": [first] });
    let at = "2026-01-31T08:00:00Z".parse().unwrap();
    let event = Event { topic: Topic::Prune, key: "gc".to_owned(), at, body };
    trip.temp.project.store().prune(&[first], event).unwrap();
    assert_eq!(trip.waits_at(&trip.go(&[])), "trip.confirm_intent.1");
    assert!(matches!(trip.go(&["yes", "go ahead", "ridge", "yes", "yes"]), Arrived::AtTheEnd(_)));
}

#[test]
fn two_who_drive_one_run_do_each_piece_of_work_once() {
    let trip = Trip::new(route());
    let mut slow = |stop: &str, input: &Value| {
        // Meanwhile somebody else goes on with the same run.
        trip.go(&[]);
        work(&RefCell::default()).work(stop, input)
    };
    let arrived = trip.travel().go(&mut slow, &mut Pending).unwrap();
    assert_eq!(trip.waits_at(&arrived), "trip.confirm_intent.1");
    let steps = trip.temp.project.log(&Query { run: Some(trip.run.clone()), ..Query::default() }).unwrap();
    assert_eq!(steps.len(), 1, "one result counts");
}

#[test]
fn files_are_put_back_when_that_is_wanted() {
    let mut journey = route();
    journey.files = true;
    let trip = Trip::new(journey);
    let file = trip.temp.path().join("notes.txt");
    std::fs::write(&file, "before the selection").unwrap();
    trip.go(&["yes", "go ahead"]);
    std::fs::write(&file, "after the selection").unwrap();
    trip.go(&["coast"]);
    assert_eq!(trip.waits_at(&trip.go(&["go back"])), "trip.select_route.1");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "before the selection");
    trip.temp.project.undo().unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "after the selection");
}

#[test]
fn work_that_fails_is_done_again_and_nothing_before_it() {
    let trip = Trip::new(route());
    trip.go(&["yes"]);
    let mut failing = |stop: &str, _: &Value| -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("{stop} broke").into())
    };
    let failed = trip.travel().go(&mut failing, &mut Scripted::new(["go ahead"])).unwrap_err();
    assert!(matches!(&failed, Error::Work { stop, .. } if stop == "candidates"), "{failed}");
    assert_eq!(trip.waits_at(&trip.go(&[])), "trip.select_route.1");
    assert_eq!(*trip.done.borrow(), ["query", "research", "candidates"]);
}

#[test]
fn commands_do_the_work_of_a_file() {
    let text = r#"{"name": "note", "input": {"who": "ada"}, "stops": [
        {"id": "draft", "run": "cat > /dev/null; echo '{\"text\": \"hello\"}'"},
        {"id": "ok", "ask": {"kind": "approve", "question": "Send it?"}, "data": "draft", "on": {"approve": "send", "refine": "draft"}},
        {"id": "send", "run": ["sh", "-c", "grep -o '\"who\":\"ada\"' | head -1 | sed 's/.*/{\"sent\": true}/'"]}
    ]}"#;
    let journey = Journey::read(text).unwrap();
    let trip = Trip::new(journey);
    let mut worker =
        Commands { journey: &trip.journey, folder: trip.temp.path().to_owned(), bounds: Bounds::default() };
    assert!(matches!(trip.travel().go(&mut worker, &mut Pending).unwrap(), Arrived::Waiting(_)));
    let arrived = trip.travel().go(&mut worker, &mut Scripted::new(["yes, send it"])).unwrap();
    assert!(matches!(&arrived, Arrived::AtTheEnd(results) if results["send"]["sent"] == true), "{arrived:?}");
}

#[test]
fn a_journey_that_leads_nowhere_is_refused() {
    let stop = |rest: &str| format!(r#"{{"name": "j", "stops": [{{"id": "w", "run": "true"}}, {rest}]}}"#);
    for (text, why) in [
        (stop(r#"{"id": "a", "ask": {"kind": "confirm"}, "on": {"confirm": "nowhere"}}"#), "no stop"),
        (stop(r#"{"id": "a", "ask": {"kind": "confirm"}, "on": {}}"#), "leads nowhere"),
        (stop(r#"{"id": "a", "ask": {"kind": "confirm"}, "on": {"approve": "end"}}"#), "nobody can answer"),
        (
            stop(r#"{"id": "a", "ask": {"kind": "confirm"}, "data": "x", "on": {"confirm": "end"}}"#),
            "nothing is done",
        ),
        (
            stop(r#"{"id": "a", "ask": {"kind": "confirm", "rsik": "high"}, "on": {"confirm": "end"}}"#),
            "cannot be read",
        ),
        (stop(r#"{"id": "a", "ask": {"kind": "confirm"}}"#), "cannot be read"),
        (stop(r#"{"id": "w", "run": "true"}"#), "two of it"),
        (r#"{"journey": "rout", "work": {}}"#.to_owned(), "no journey"),
        (r#"{"journey": "route", "work": {"select_route": "true"}}"#.to_owned(), "nothing is done"),
        ("{".to_owned(), "cannot be read"),
    ] {
        let error = Journey::read(&text).unwrap_err();
        assert!(error.to_string().contains(why), "{text}: {error}");
    }
}

#[test]
fn a_journey_in_yaml_is_the_same_as_in_json() {
    let yaml = r#"
# on and yes are words, not truth values
name: note
timeout: 2m
input: {who: ada}
stops:
  - id: draft
    run: |-
      cat > /dev/null; echo '{"text": "hello"}'
    timeout: 500ms
  - id: where
    ask: {kind: choose, options: [yes, no, {id: 3, label: Later}]}
    on: {select: end}
"#;
    let json = r#"{"name": "note", "timeout": "120s", "input": {"who": "ada"}, "stops": [
        {"id": "draft", "run": "cat > /dev/null; echo '{\"text\": \"hello\"}'", "timeout": "500ms"},
        {"id": "where", "ask": {"kind": "choose", "options": ["yes", "no", {"id": "3", "label": "Later"}]},
         "on": {"select": "end"}}]}"#;
    assert_eq!(Journey::read(yaml).unwrap(), Journey::read(json).unwrap());
}

#[test]
fn what_is_wrong_with_a_file_is_told_with_its_place() {
    let told = |text: &str| Journey::read(text).unwrap_err().to_string();
    for (text, place, why) in [
        ("name: j\nstops:\n  - id: w\n    runn: 'true'\n", "line 4, column 5", "runn"),
        (
            "name: j\nstops:\n  - id: w\n    run: 'true'\n    timeout: soon\n",
            "line 5, column 14",
            "no duration",
        ),
        ("name: j\nstops:\n  - {id: w, next: [}\n", "line 3, column", ""),
        ("name: j\nstops:\n  - id: w\n    run: 'true'\n    next: nowhere\n", "line 3, column 9", "no stop"),
        ("{\"name\": \"j\",\n \"stops\": [{\"id\": \"w\", \"runn\": 1}]}", "line 2, column 29", "runn"),
        (
            "{\"name\": \"j\", \"stops\": [\n {\"id\": \"w\", \"run\": \"true\", \"next\": \"x\"}]}",
            "line 2, column 10",
            "no stop",
        ),
        ("journey: rout\nwork: {}\n", "line 1, column 10", "no journey"),
        ("journey: route\nwork:\n  select_route: x\n", "line 3, column 3", "nothing is done"),
        ("a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\nname: j\n", "", "stops"),
    ] {
        let told = told(text);
        assert!(told.contains(place) && told.contains(why), "{text}\n=> {told}");
    }
    assert!(told(&"x".repeat(2 << 20)).contains("bytes"));
}

#[test]
fn a_command_that_takes_too_long_is_ended_and_done_again_later() {
    let text = "name: j\nstops:\n  - id: w\n    timeout: 300ms\n    run: sleep 600 & sleep 600\n";
    let trip = Trip::new(Journey::read(text).unwrap());
    let mut worker =
        Commands { journey: &trip.journey, folder: trip.temp.path().to_owned(), bounds: Bounds::default() };
    let failed = trip.travel().go(&mut worker, &mut Pending).unwrap_err();
    let why = std::error::Error::source(&failed).unwrap().to_string();
    assert!(why.contains("took longer than 300ms"), "{why}");
    let flood = Journey::read("name: j\nstops:\n  - id: w\n    run: yes | head -c 20000000\n").unwrap();
    let mut worker = Commands { journey: &flood, ..worker };
    let failed = trip.travel().go(&mut worker, &mut Pending).unwrap_err();
    assert!(std::error::Error::source(&failed).unwrap().to_string().contains("16 MiB"));
    let endless = Journey::read("name: j\nstops:\n  - id: w\n    run: yes\n").unwrap();
    let mut worker = Commands { journey: &endless, ..worker };
    let failed = trip.travel().go(&mut worker, &mut Pending).unwrap_err();
    assert!(std::error::Error::source(&failed).unwrap().to_string().contains("16 MiB"));
}

#[test]
fn a_collection_takes_nothing_from_a_journey_that_is_on_its_way() {
    let mut journey = route();
    journey.files = true;
    let trip = Trip::new(journey);
    let project = &trip.temp.project;
    let strict = Policy { keep_last: Some(1), ..Policy::default() };
    trip.go(&["yes"]);
    project.apply_gc(&project.plan_gc(&strict).unwrap()).unwrap();
    assert!(matches!(trip.go(&["go ahead", "ridge", "yes", "yes"]), Arrived::AtTheEnd(_)));
    let done = ["query", "research", "candidates", "refine", "finish", "generate"];
    assert_eq!(*trip.done.borrow(), done, "nothing is done again");
    // At its end it is like any other run.
    let left = project.apply_gc(&project.plan_gc(&strict).unwrap()).unwrap();
    assert!(left.pruned >= 5, "{left:?}");
}

#[test]
fn a_collection_takes_what_a_journey_left_that_was_given_up() {
    let trip = Trip::new(route());
    let project = &trip.temp.project;
    let strict = Policy { keep_last: Some(1), ..Policy::default() };
    let planned = || project.plan_gc(&strict).unwrap().plan.prune.len();
    let arrived = trip.go(&["yes"]);
    // However old it gets, nobody knows that it is given up until somebody says so.
    trip.temp.hands.move_by(2000 * 86_400);
    assert_eq!(planned(), 0);
    let [found] = &on_their_way(project).unwrap()[..] else { panic!("one journey is on its way") };
    assert_eq!(found.gate.as_ref().unwrap().id.as_str(), trip.waits_at(&arrived));
    let cancelled = abandon(project, &found.run, "too late", Origin::Person).unwrap();
    assert_eq!(cancelled.len(), 1);
    assert!(planned() >= 2, "{}", planned());
    assert_eq!(on_their_way(project).unwrap(), []);
    let again = abandon(project, &found.run, "", Origin::Person).unwrap_err();
    assert!(matches!(again, Error::NotOnItsWay { .. }), "{again}");
    assert!(matches!(trip.go(&["yes"]), Arrived::Stopped(_)), "it ended at the gate that was cancelled");
}

#[test]
fn a_collection_takes_nothing_that_a_waiting_gate_belongs_to() {
    let temp = TempGates::new();
    let run = RunId::new("work").unwrap();
    let save = || {
        let run = Some((run.clone(), stagepost::model::RunKind::Adhoc));
        temp.project.save(stagepost::project::Save { run, ..Default::default() }).unwrap()
    };
    save();
    save();
    let ask = stagepost::gate::Ask::new(Prompt::new(Kind::Confirm).asking("Go on?"));
    temp.gates().ask(ask.named(id("g")).of(run.clone(), stagepost::model::RunKind::Adhoc)).unwrap();
    let strict = Policy { keep_last: Some(1), ..Policy::default() };
    let planned = || temp.project.plan_gc(&strict).unwrap().plan.prune.len();
    assert_eq!(planned(), 0);
    temp.say("g", "yes");
    assert_eq!(planned(), 2, "the answer is the newest");
    // A question that stands by itself keeps its files and nothing else.
    temp.gates()
        .ask(stagepost::gate::Ask::new(Prompt::new(Kind::Confirm).asking("And?")).named(id("h")))
        .unwrap();
    assert_eq!(planned(), 2);
}
