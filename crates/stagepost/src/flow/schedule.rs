//! What to do next. Pure: what happened goes in, what to do comes out, and nothing is done here.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use serde_json::Value;

use super::Fingerprint;
use super::definition::{Action as Does, Flow, OnFailure, Scope, Source, Step, StepResult, Target};
use super::happened::End;
use crate::model::StepStatus;
use crate::reply;

/// A step, or one item of a step that is done for each of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Unit {
    /// Which step of the flow.
    pub(super) step: usize,
    /// Which item.
    pub(super) item: Option<usize>,
}

/// What is known of a step or item from before.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// Its newest attempt.
    pub(super) attempt: u32,
    /// How many attempts failed since someone asked for it.
    pub(super) failures: u32,
    /// How often a result of it was given up.
    pub(super) generation: u32,
    /// The result, if there is one that holds.
    pub(super) result: Option<StepResult>,
    /// What an item was done for, as its fingerprint has it.
    pub(super) made_for: Option<String>,
    /// The place of the result in the history.
    pub(super) position: u64,
    /// Where the result led.
    pub(super) led: Option<Led>,
    /// The place in the history where something last led to it, or to what it depends on, so that it was done again.
    pub(super) revived: Option<u64>,
}

/// Where a result led instead of to what comes after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Led {
    /// To a step.
    To(String),
    /// To the end of the run.
    End,
    /// To the end of the run, and someone asks for more.
    PastEnd,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub(super) enum Event {
    /// The run begins, or goes on.
    Begin,
    /// An attempt ended. `hopeless`: another one would end the same way.
    Ended {
        unit: Unit,
        attempt: u32,
        status: StepStatus,
        exit: Option<i32>,
        output: Value,
        error: Option<String>,
        hopeless: bool,
    },
    /// A person answered.
    Answered { step: usize, attempt: u32, action: reply::Action, agreed: bool, output: Value },
    /// A person has not answered yet.
    Unanswered { step: usize, gate: String },
    /// Someone wants it to stop.
    Cancelled,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// Make an attempt, after a wait.
    Attempt { unit: Unit, attempt: u32, generation: u32, wait: Duration },
    /// Write down that an attempt failed before it began.
    Refuse { unit: Unit, attempt: u32, error: String },
    /// Write down that a step is not to be done.
    Skip { unit: Unit, attempt: u32 },
    /// Put the results of the items of a step together.
    Join { step: usize, attempt: u32, status: StepStatus, output: Value },
    /// Ask a person.
    Ask { step: usize, attempt: u32, generation: u32 },
    /// Write down that results hold no more; where something led back, to which step.
    Void { steps: Vec<String>, why: String, led_to: Option<String> },
    /// Put the files back to where the first of these began.
    RollBack { units: Vec<Unit> },
    /// End what runs.
    Stop,
    /// The run ended.
    End { status: End, why: Option<String> },
    /// The run waits for a person.
    Wait { step: usize, gate: String },
    /// The run stops here, and can go on later.
    Interrupt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Pending,
    /// Its needs are there; it is being done.
    Open,
    /// It asked, and nobody answered.
    Waiting,
    Done,
}

#[derive(Debug, Clone)]
struct Work {
    known: Known,
    busy: bool,
    done: bool,
    wait: Duration,
    /// Something it was made from changed while it ran.
    stale: bool,
    item: Value,
}

impl Work {
    fn of(known: Known) -> Self {
        let done = known.result.is_some();
        Self { known, busy: false, done, wait: Duration::ZERO, stale: false, item: Value::Null }
    }

    fn start_over(&mut self) {
        self.known.generation += u32::from(self.done);
        (self.known.failures, self.known.result, self.known.led) = (0, None, None);
        (self.done, self.stale, self.wait) = (false, self.busy, Duration::ZERO);
    }
}

#[derive(Debug, Clone)]
struct Node {
    phase: Phase,
    work: Work,
    items: Option<Vec<Work>>,
    gate: Option<String>,
    /// What it depends on led elsewhere while it ran: it is not done again.
    left_out: bool,
    /// How often a failure of it led back.
    returns: u32,
}

impl Node {
    /// Says whether anything of it runs.
    fn is_busy(&self) -> bool {
        self.work.busy || self.items.iter().flatten().any(|work| work.busy)
    }
}

/// What went wrong with an attempt.
struct Trouble {
    error: Option<String>,
    hopeless: bool,
}

/// A failure that leads back is followed so often; then something else must be wrong.
const MOST_RETURNS: u32 = 100;

/// Where a run stands while it is driven.
#[derive(Debug)]
pub(super) struct Schedule<'f> {
    flow: &'f Flow,
    jobs: usize,
    input: Value,
    nodes: Vec<Node>,
    /// The steps that each needs, and those that it can see.
    needs: Vec<Vec<usize>>,
    seen: Vec<Vec<usize>>,
    items: HashMap<String, Known>,
    /// How many attempts and answers are awaited.
    awaited: usize,
    ending: Option<(End, Option<String>)>,
    /// What failed and is to leave no trace in the files.
    to_roll_back: Vec<Unit>,
    cancelled: bool,
}

impl<'f> Schedule<'f> {
    /// Begins with what is known from before; `known` has it by the name of the step or item.
    pub(super) fn new(flow: &'f Flow, input: Value, jobs: usize, mut known: HashMap<String, Known>) -> Self {
        let node = |step: &Step| {
            let work = Work::of(known.remove(step.id.as_str()).unwrap_or_default());
            let phase = if work.done { Phase::Done } else { Phase::Pending };
            Node { phase, work, items: None, gate: None, left_out: false, returns: 0 }
        };
        let nodes = flow.steps.iter().map(node).collect();
        let places: HashMap<&str, usize> =
            flow.steps.iter().enumerate().map(|(at, step)| (step.id.as_str(), at)).collect();
        let at = |names: Vec<&str>| -> Vec<usize> {
            let found: BTreeSet<usize> = names.iter().filter_map(|name| places.get(name).copied()).collect();
            found.into_iter().collect()
        };
        Self {
            needs: flow
                .steps
                .iter()
                .map(|step| at(step.needs.iter().map(|need| need.as_str()).collect()))
                .collect(),
            seen: flow.steps.iter().map(|step| at(mentioned(step))).collect(),
            flow,
            jobs: jobs.max(1),
            input,
            nodes,
            items: known,
            awaited: 0,
            ending: None,
            to_roll_back: Vec::new(),
            cancelled: false,
        }
    }

    /// Says whether an action is an attempt and nothing else is under way, so that there is nothing to decide until it ends.
    pub(super) fn awaits_only(&self, action: &Action) -> bool {
        self.awaited == 1 && matches!(action, Action::Attempt { .. })
    }

    /// Takes in what happened and says what to do.
    pub(super) fn decide(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        match event {
            Event::Begin => self.follow(&mut actions),
            Event::Cancelled => {
                if !std::mem::replace(&mut self.cancelled, true) {
                    actions.push(Action::Stop);
                }
            }
            Event::Ended { unit, attempt, status, exit, output, error, hopeless } => {
                self.awaited -= 1;
                let result = StepResult { status, exit, attempt, output };
                self.ended(unit, result, Trouble { error, hopeless }, &mut actions);
            }
            Event::Unanswered { step, gate } => {
                self.awaited -= 1;
                let node = &mut self.nodes[step];
                (node.phase, node.gate, node.work.busy) = (Phase::Waiting, Some(gate), false);
            }
            Event::Answered { step, attempt, action, agreed, output } => {
                self.awaited -= 1;
                self.nodes[step].work.busy = false;
                self.answered(step, attempt, action, agreed, output, &mut actions);
            }
        }
        self.advance(&mut actions);
        actions
    }

    fn work(&mut self, unit: Unit) -> &mut Work {
        let node = &mut self.nodes[unit.step];
        match (unit.item, &mut node.items) {
            (Some(item), Some(items)) => &mut items[item],
            _ => &mut node.work,
        }
    }

    /// How many attempts failed since someone asked for it.
    pub(super) fn failures(&self, unit: Unit) -> u32 {
        let node = &self.nodes[unit.step];
        let item = unit.item.and_then(|item| node.items.as_ref()?.get(item));
        item.unwrap_or(&node.work).known.failures
    }

    fn ended(&mut self, unit: Unit, result: StepResult, trouble: Trouble, actions: &mut Vec<Action>) {
        let work = self.work(unit);
        work.busy = false;
        work.known.attempt = work.known.attempt.max(result.attempt);
        if std::mem::take(&mut work.stale) {
            // What it was made from is gone: its end is in the history and counts for nothing.
            let counts = matches!(result.status, StepStatus::Completed | StepStatus::Skipped);
            work.known.generation += u32::from(counts);
            let known = work.known.clone();
            if counts {
                let steps = vec![self.name(unit)];
                let why = "what it was made from changed".to_owned();
                actions.push(Action::Void { steps, why, led_to: None });
            }
            self.start_again(unit, known);
            return;
        }
        match result.status {
            StepStatus::Completed | StepStatus::Skipped => self.done(unit, result),
            StepStatus::Failed => self.failed(unit, result, trouble, actions),
            _ => {}
        }
    }

    /// Begins a step anew, as soon as nothing of it runs any more.
    fn start_again(&mut self, unit: Unit, known: Known) {
        if unit.item.is_some() {
            self.items.insert(self.name(unit), known);
        }
        let node = &mut self.nodes[unit.step];
        if !node.is_busy() {
            (node.items, node.phase) = (None, Phase::Pending);
        }
    }

    fn done(&mut self, unit: Unit, result: StepResult) {
        let work = self.work(unit);
        (work.done, work.known.result) = (true, Some(result));
        if unit.item.is_none() {
            self.nodes[unit.step].phase = Phase::Done;
        }
    }

    fn failed(&mut self, unit: Unit, result: StepResult, trouble: Trouble, actions: &mut Vec<Action>) {
        let step = &self.flow.steps[unit.step];
        // Items are tried again one by one, not all together.
        let hopeless = trouble.hopeless || (unit.item.is_none() && self.nodes[unit.step].items.is_some());
        let (retry, work) = (&step.retry, self.work(unit));
        work.known.failures += 1;
        if retry.again(work.known.failures, result.exit) && !hopeless {
            // If the run is about to stop, the next attempt is made when it goes on.
            work.wait = retry.wait_after(work.known.failures);
            return;
        }
        let name = self.name(unit);
        let why = match &trouble.error {
            Some(error) => format!("step `{name}` failed: {error}"),
            None => format!("step `{name}` failed"),
        };
        match &step.on_failure {
            OnFailure::Continue => self.done(unit, result),
            // The others that run end first; then the step as a whole has failed, and leads there.
            OnFailure::GoTo(_) if unit.item.is_some() => self.done(unit, result),
            OnFailure::GoTo(target) => {
                self.done(unit, result);
                self.nodes[unit.step].returns += 1;
                if self.nodes[unit.step].returns > MOST_RETURNS {
                    return self.stop(End::Failed, Some(format!("{why}, {MOST_RETURNS} times")), actions);
                }
                // If the run is about to stop, that is where it goes on.
                if self.ending.is_none() && !self.cancelled {
                    self.jump(unit.step, target.as_str(), &why, actions);
                }
            }
            OnFailure::Rollback => {
                // Not before the others have ended: they would write over it.
                self.to_roll_back.push(unit);
                self.stop(End::Failed, Some(why), actions);
            }
            _ => self.stop(End::Failed, Some(why), actions),
        }
    }

    fn stop(&mut self, status: End, why: Option<String>, actions: &mut Vec<Action>) {
        if self.ending.is_none() {
            self.ending = Some((status, why));
            actions.push(Action::Stop);
        }
    }

    fn answered(
        &mut self,
        step: usize,
        attempt: u32,
        action: reply::Action,
        agreed: bool,
        output: Value,
        actions: &mut Vec<Action>,
    ) {
        let Does::Ask(ask) = &self.flow.steps[step].action else { return };
        let id = &self.flow.steps[step].id;
        let target = ask.on.iter().find(|(on, _)| *on == action).map(|(_, target)| target);
        if target.is_none() && !agreed {
            let why = format!("step `{id}` was answered with {action}");
            return self.stop(End::Declined, Some(why), actions);
        }
        let result = StepResult { status: StepStatus::Completed, exit: None, attempt, output };
        self.done(Unit { step, item: None }, result);
        match target {
            Some(Target::Step(to)) => {
                let why = format!("step `{id}` was answered with {action}");
                self.jump(step, to.as_str(), &why, actions);
            }
            Some(Target::End) => {
                self.stop(End::Completed, Some(format!("step `{id}` was answered with {action}")), actions);
            }
            None => {}
        }
    }

    /// Goes where results from before led: whoever made them may have been stopped before that was done.
    fn follow(&mut self, actions: &mut Vec<Action>) {
        let mut led: Vec<usize> =
            (0..self.nodes.len()).filter(|step| self.nodes[*step].work.known.led.is_some()).collect();
        led.sort_by_key(|step| self.nodes[*step].work.known.position);
        for from in led {
            // One that led back may have started this one over.
            let Some(led) = self.nodes[from].work.known.led.clone() else { continue };
            let why = format!("step `{}` led there", self.flow.steps[from].id);
            match led {
                Led::To(to) if self.was_followed(from, &to) => self.leave_out_still(from, &to, actions),
                Led::To(to) => self.jump(from, &to, &why, actions),
                Led::PastEnd => self.leave_out_still(from, Target::END, actions),
                Led::End => self.stop(
                    End::Completed,
                    Some(format!("step `{}` led to the end", self.flow.steps[from].id)),
                    actions,
                ),
            }
        }
    }

    /// Says whether what a result led to was begun. Where it led back to what it depends on, it would not hold any more.
    fn was_followed(&self, from: usize, to: &str) -> bool {
        let Some(to) = self.flow.number(to).map(|number| number - 1) else { return true };
        let position = |step: usize| self.nodes[step].work.known.position;
        let redone = self.nodes[to].phase == Phase::Pending || position(to) >= position(from);
        redone && !self.and_dependents(to).contains(&from)
    }

    /// Goes on with another step, and leaves out what depends on this one and is not reached from there. A step that was
    /// done is done again, with all that depends on it.
    fn jump(&mut self, from: usize, to: &str, why: &str, actions: &mut Vec<Action>) {
        self.leave_out(from, to, actions);
        let Some(to) = self.flow.number(to).map(|number| number - 1) else { return };
        let after = self.and_dependents(to);
        if self.nodes[to].phase == Phase::Pending && !after.contains(&from) {
            return;
        }
        let mut steps = Vec::new();
        for step in after {
            let id = self.flow.steps[step].id.as_str();
            let node = &mut self.nodes[step];
            if node.work.done {
                steps.push(id.to_owned());
            }
            node.work.start_over();
            for (item, work) in node.items.iter_mut().flatten().enumerate() {
                if work.done {
                    steps.push(item_name(id, item));
                }
                work.start_over();
                // What runs now goes on under its number; the others are listed anew.
                self.items.insert(item_name(id, item), work.known.clone());
            }
            node.left_out = false;
            if !node.is_busy() {
                (node.items, node.phase) = (None, Phase::Pending);
            }
        }
        let led_to = Some(self.flow.steps[to].id.to_string());
        actions.push(Action::Void { steps, why: why.to_owned(), led_to });
    }

    /// Leaves out what depends on a step that led elsewhere, unless it is reached from there.
    fn leave_out(&mut self, from: usize, to: &str, actions: &mut Vec<Action>) {
        self.leave_out_but(from, to, &|_| false, actions);
    }

    /// As [`Schedule::leave_out`], for a result from before, but for what something else has led to since.
    fn leave_out_still(&mut self, from: usize, to: &str, actions: &mut Vec<Action>) {
        let position = self.nodes[from].work.known.position;
        let is_revived = |known: &Known| position > 0 && known.revived.is_some_and(|at| at > position);
        self.leave_out_but(from, to, &is_revived, actions);
    }

    fn leave_out_but(
        &mut self,
        from: usize,
        to: &str,
        but: &dyn Fn(&Known) -> bool,
        actions: &mut Vec<Action>,
    ) {
        let after = self.flow.number(to).map(|number| self.and_dependents(number - 1)).unwrap_or_default();
        let between = self.and_dependents(from);
        for step in between.into_iter().filter(|step| *step != from && !after.contains(step)) {
            if but(&self.nodes[step].work.known) {
                continue;
            }
            match self.nodes[step].phase {
                Phase::Pending => self.skip(step, actions),
                // It runs for what is given up already.
                Phase::Open => self.nodes[step].left_out = true,
                _ => {}
            }
        }
    }

    /// A step and all that depends on it.
    fn and_dependents(&self, step: usize) -> BTreeSet<usize> {
        and_dependents(self.flow, &[step])
    }

    fn skip(&mut self, step: usize, actions: &mut Vec<Action>) {
        let unit = Unit { step, item: None };
        let attempt = self.busy_with(unit);
        actions.push(Action::Skip { unit, attempt });
    }

    /// Awaits something that is done at once, and returns the number of the attempt.
    fn busy_with(&mut self, unit: Unit) -> u32 {
        self.nodes[unit.step].phase = Phase::Open;
        self.awaited += 1;
        let work = self.work(unit);
        work.busy = true;
        work.known.attempt + 1
    }

    /// Begins whatever can begin, and notices when nothing can.
    fn advance(&mut self, actions: &mut Vec<Action>) {
        if self.ending.is_none() && !self.cancelled {
            for step in 0..self.nodes.len() {
                if self.nodes[step].phase == Phase::Pending && self.is_ready(step) {
                    self.open(step, actions);
                }
            }
            self.launch(actions);
        }
        if self.awaited > 0 {
            return;
        }
        if !self.to_roll_back.is_empty() {
            actions.push(Action::RollBack { units: std::mem::take(&mut self.to_roll_back) });
        }
        if let Some((status, why)) = self.ending.take() {
            actions.push(Action::End { status, why });
        } else if self.cancelled {
            actions.push(Action::Interrupt);
        } else if let Some(step) = self.nodes.iter().position(|node| node.phase == Phase::Waiting) {
            let gate = self.nodes[step].gate.clone().unwrap_or_default();
            actions.push(Action::Wait { step, gate });
        } else if let Some(step) = self.nodes.iter().position(|node| node.phase != Phase::Done) {
            let why = Some(format!("step `{}` cannot be reached", self.flow.steps[step].id));
            actions.push(Action::End { status: End::Failed, why });
        } else {
            actions.push(Action::End { status: End::Completed, why: None });
        }
    }

    fn is_ready(&self, step: usize) -> bool {
        self.needs[step].iter().all(|need| self.nodes[*need].phase == Phase::Done)
    }

    /// What a step can see: what the run was given, and what the steps left that it needs or mentions.
    pub(super) fn scope(&self, step: usize) -> Scope {
        let mut scope = Scope::new(self.input.clone());
        for other in &self.seen[step] {
            let node = &self.nodes[*other];
            if let Some(result) = node.work.known.result.as_ref().filter(|_| node.phase == Phase::Done) {
                scope.add(&self.flow.steps[*other].id, result);
            }
        }
        scope
    }

    /// What an item is done for; nothing if it is not known yet.
    pub(super) fn item(&self, unit: Unit) -> Option<(usize, Value)> {
        let item = unit.item?;
        if let Some(items) = &self.nodes[unit.step].items {
            return Some((item, items.get(item)?.item.clone()));
        }
        let each = self.flow.steps[unit.step].for_each.as_ref()?;
        let list = each.list.value(&self.scope(unit.step).document())?;
        Some((item, list.get(item)?.clone()))
    }

    fn open(&mut self, step: usize, actions: &mut Vec<Action>) {
        if std::mem::take(&mut self.nodes[step].left_out) {
            return self.skip(step, actions);
        }
        let definition = &self.flow.steps[step];
        let document = self.scope(step).document();
        let per_item = definition.for_each.is_some()
            && definition.condition.as_ref().is_some_and(|condition| condition.is_about_items());
        let condition = definition.condition.as_ref().filter(|_| !per_item);
        let holds = condition.map_or(Ok(true), |condition| condition.holds(&document));
        match holds {
            Ok(true) => {}
            Ok(false) => return self.skip(step, actions),
            Err(error) => {
                let error = format!("its condition cannot be decided: {error}");
                return self.refuse(Unit { step, item: None }, &error, actions);
            }
        }
        self.nodes[step].phase = Phase::Open;
        if let Does::Ask(_) = definition.action {
            let known = &self.nodes[step].work.known;
            let (attempt, generation) = (known.attempt + 1, known.generation);
            self.nodes[step].work.busy = true;
            self.awaited += 1;
            return actions.push(Action::Ask { step, attempt, generation });
        }
        let Some(each) = &definition.for_each else { return };
        match each.list.value(&document) {
            Some(Value::Array(list)) => {
                let id = definition.id.as_str();
                let work = |(item, value): (usize, Value)| {
                    let mut known = self.items.get(&item_name(id, item)).cloned().unwrap_or_default();
                    let made_for_another = known
                        .made_for
                        .as_ref()
                        .is_some_and(|made_for| *made_for != Fingerprint::hash(&value));
                    if made_for_another && known.result.take().is_some() {
                        known.generation += 1;
                    }
                    Work { item: value, ..Work::of(known) }
                };
                let items = list.into_iter().enumerate().map(work).collect();
                self.nodes[step].items = Some(items);
                if per_item {
                    self.leave_items_out(step, actions);
                }
            }
            _ => {
                let unit = Unit { step, item: None };
                self.refuse(unit, "what it is to be done for is no list", actions);
            }
        }
    }

    /// Leaves out the items for which the condition of their step does not hold.
    fn leave_items_out(&mut self, step: usize, actions: &mut Vec<Action>) {
        let Some(condition) = &self.flow.steps[step].condition else { return };
        let (scope, items) = (self.scope(step), self.nodes[step].items.iter().flatten().enumerate());
        let decide = |(item, work): (usize, &Work)| {
            (item, condition.holds(&scope.for_item(item, work.item.clone()).document()))
        };
        let decided: Vec<_> = items.filter(|(_, work)| !work.done).map(decide).collect();
        for (item, holds) in decided {
            let unit = Unit { step, item: Some(item) };
            match holds {
                Ok(true) => {}
                Ok(false) => {
                    let attempt = self.busy_with(unit);
                    actions.push(Action::Skip { unit, attempt });
                }
                Err(error) => {
                    self.refuse(unit, &format!("its condition cannot be decided: {error}"), actions);
                }
            }
        }
    }

    fn refuse(&mut self, unit: Unit, error: &str, actions: &mut Vec<Action>) {
        let attempt = self.busy_with(unit);
        actions.push(Action::Refuse { unit, attempt, error: error.to_owned() });
    }

    /// Begins attempts, as many as may run side by side.
    fn launch(&mut self, actions: &mut Vec<Action>) {
        let busy = |work: &Work| usize::from(work.busy);
        let count = |node: &Node| busy(&node.work) + node.items.iter().flatten().map(busy).sum::<usize>();
        let mut free = self.jobs.saturating_sub(self.nodes.iter().map(count).sum());
        for step in 0..self.nodes.len() {
            if self.nodes[step].phase != Phase::Open {
                continue;
            }
            let side_by_side = self.flow.steps[step].for_each.as_ref().map(|each| each.side_by_side as usize);
            let most =
                side_by_side.map_or(free, |most| most.saturating_sub(count(&self.nodes[step])).min(free));
            let units = self.idle(step, most);
            free -= units.len();
            for unit in units {
                let work = self.work(unit);
                work.busy = true;
                let (attempt, generation) = (work.known.attempt + 1, work.known.generation);
                let wait = std::mem::take(&mut work.wait);
                self.awaited += 1;
                actions.push(Action::Attempt { unit, attempt, generation, wait });
            }
            self.join(step, actions);
        }
    }

    fn idle(&self, step: usize, most: usize) -> Vec<Unit> {
        let node = &self.nodes[step];
        if self.leads_elsewhere(step) {
            return Vec::new();
        }
        let idle = |work: &Work| !work.busy && !work.done;
        match &node.items {
            Some(items) => {
                let open = items.iter().enumerate().filter(|(_, work)| idle(work));
                open.map(|(item, _)| Unit { step, item: Some(item) }).take(most).collect()
            }
            None => {
                Some(Unit { step, item: None }).filter(|_| idle(&node.work) && most > 0).into_iter().collect()
            }
        }
    }

    /// Says whether an item failed, and that leads elsewhere: then no other item is begun.
    fn leads_elsewhere(&self, step: usize) -> bool {
        let failed = |work: &Work| {
            work.known.result.as_ref().is_some_and(|result| result.status == StepStatus::Failed)
        };
        matches!(self.flow.steps[step].on_failure, OnFailure::GoTo(_))
            && self.nodes[step].items.iter().flatten().any(failed)
    }

    /// Puts the results of items together when all are there that will be.
    fn join(&mut self, step: usize, actions: &mut Vec<Action>) {
        let leads_elsewhere = self.leads_elsewhere(step);
        let node = &mut self.nodes[step];
        let Some(items) = &node.items else { return };
        let are_there = items.iter().all(|work| work.done) || (leads_elsewhere && !node.is_busy());
        if node.work.busy || node.work.done || !are_there {
            return;
        }
        let results = || items.iter().map(|work| work.known.result.as_ref());
        let output =
            results().map(|result| result.map_or(Value::Null, |result| result.output.clone())).collect();
        let failed = results().flatten().any(|result| result.status == StepStatus::Failed);
        let status = if failed { StepStatus::Failed } else { StepStatus::Completed };
        node.work.busy = true;
        self.awaited += 1;
        actions.push(Action::Join { step, attempt: node.work.known.attempt + 1, status, output });
    }

    /// The name of a step or item in the history.
    pub(super) fn name(&self, unit: Unit) -> String {
        let id = self.flow.steps[unit.step].id.as_str();
        unit.item.map_or_else(|| id.to_owned(), |item| item_name(id, item))
    }

    /// Which attempts a step is made from.
    pub(super) fn consumed(&self, step: usize) -> Vec<(String, u32)> {
        let attempt = |need: &usize| {
            let result = self.nodes[*need].work.known.result.as_ref()?;
            Some((self.flow.steps[*need].id.to_string(), result.attempt))
        };
        self.needs[step].iter().filter_map(attempt).collect()
    }
}

/// The steps that a step names: those it needs, and those that its condition and its references look at.
fn mentioned(step: &Step) -> Vec<&str> {
    let mut names: Vec<&str> = step.needs.iter().map(|need| need.as_str()).collect();
    let conditions = step.condition.iter().flat_map(|condition| condition.references());
    names.extend(conditions.map(|reference| reference.head()));
    let (ask, refine) = match &step.action {
        Does::Ask(ask) => (Some(ask), None),
        Does::Refine(refine) => (None, Some(refine)),
        _ => (None, None),
    };
    let sources = [
        step.for_each.as_ref().map(|each| &each.list),
        ask.and_then(|ask| ask.data.as_ref()),
        ask.and_then(|ask| ask.options.as_ref()),
        refine.and_then(|refine| refine.input.as_ref()),
    ];
    for source in sources.into_iter().flatten() {
        if let Source::Reference(reference) = source {
            names.push(reference.head());
        }
    }
    names
}

/// The name of an item of a step.
pub(super) fn item_name(step: &str, item: usize) -> String {
    format!("{step}/{item}")
}

/// Steps and all that depends on them.
pub(super) fn and_dependents(flow: &Flow, steps: &[usize]) -> BTreeSet<usize> {
    let mut found: BTreeSet<usize> = steps.iter().copied().collect();
    let mut left: Vec<usize> = steps.to_vec();
    while let Some(step) = left.pop() {
        let id = &flow.steps[step].id;
        for (other, definition) in flow.steps.iter().enumerate() {
            if definition.needs.contains(id) && found.insert(other) {
                left.push(other);
            }
        }
    }
    found
}
