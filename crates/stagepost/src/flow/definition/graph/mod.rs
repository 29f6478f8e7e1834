//! The steps of a flow as a graph: what comes after what, as text and as a picture.

mod layout;
mod svg;
mod text;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::{Action, Flow, OnFailure, Step, StepId};

/// The steps of a flow and what leads from one to another.
#[derive(Debug, Clone)]
pub struct Graph<'f> {
    flow: &'f Flow,
    /// The steps by how many come before them at least, each layer as in the file.
    layers: Vec<Vec<usize>>,
    edges: Vec<Edge>,
}

/// What leads from one step to another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edge {
    from: usize,
    to: usize,
    /// The answer or the failure that leads there; without one, the second needs the first.
    because: Option<String>,
}

impl<'f> Graph<'f> {
    /// Makes the graph of a flow.
    pub fn of(flow: &'f Flow) -> Self {
        let places: HashMap<&StepId, usize> =
            flow.steps.iter().enumerate().map(|(at, step)| (&step.id, at)).collect();
        let mut edges = Vec::new();
        for (to, step) in flow.steps.iter().enumerate() {
            let needs = step.needs.iter().filter_map(|need| places.get(need));
            edges.extend(needs.map(|from| Edge { from: *from, to, because: None }));
        }
        for (from, step) in flow.steps.iter().enumerate() {
            let jumps = jumps(step).into_iter();
            edges.extend(jumps.filter_map(|(because, id)| {
                Some(Edge { from, to: *places.get(id)?, because: Some(because) })
            }));
        }
        Self { layers: layers(flow, &edges), edges, flow }
    }

    /// Returns the picture as SVG.
    pub fn svg(&self) -> String {
        svg::draw(self)
    }

    /// Returns the graph as text: each step, and below it what it leads to.
    pub fn text(&self) -> String {
        text::write(self)
    }

    fn is_needed(&self, from: usize, to: usize) -> bool {
        self.edges.iter().any(|edge| edge.because.is_none() && (edge.from, edge.to) == (from, to))
    }
}

/// The longest way from a beginning decides over the layer.
fn layers(flow: &Flow, edges: &[Edge]) -> Vec<Vec<usize>> {
    let mut needs: Vec<Vec<usize>> = vec![Vec::new(); flow.steps.len()];
    for edge in edges.iter().filter(|edge| edge.because.is_none()) {
        needs[edge.to].push(edge.from);
    }
    let mut depth = vec![0; flow.steps.len()];
    for at in order(&flow.steps).expect("needs that form a circle are refused when read") {
        depth[at] = needs[at].iter().map(|need| depth[*need] + 1).max().unwrap_or(0);
    }
    let mut layers = vec![Vec::new(); depth.iter().max().map_or(0, |deepest| deepest + 1)];
    depth.iter().enumerate().for_each(|(at, depth)| layers[*depth].push(at));
    layers
}

/// Where a step can lead other than by being needed, and because of what.
pub(super) fn jumps(step: &Step) -> Vec<(String, &StepId)> {
    let mut targets = Vec::new();
    if let Action::Ask(ask) = &step.action {
        targets
            .extend(ask.on.iter().filter_map(|(action, target)| Some((action.to_string(), target.step()?))));
    }
    if let OnFailure::GoTo(id) = &step.on_failure {
        targets.push(("failed".to_owned(), id));
    }
    targets
}

/// What is done at a step, in a few words on one line.
fn in_short(step: &Step, longest: usize) -> String {
    let text = match &step.action {
        Action::Run(command) => command.to_string(),
        Action::Ask(ask) if ask.prompt.message.trim().is_empty() => ask.prompt.question().to_owned(),
        Action::Ask(ask) => ask.prompt.message.clone(),
        Action::Refine(refine) => format!("{}, judged by {}", refine.planner, refine.judge),
    };
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let mut shown: String = line.chars().filter(|c| !c.is_control()).take(longest).collect();
    if line.chars().count() > longest || text.trim().lines().count() > 1 {
        shown.push('…');
    }
    shown
}

/// Puts steps in an order in which each comes after what it needs, and otherwise as they are given; returns their
/// places. If needs form a circle, the error is the places of those that could not be put anywhere.
pub(super) fn order(steps: &[Step]) -> Result<Vec<usize>, Vec<usize>> {
    let places: HashMap<&StepId, usize> = steps.iter().enumerate().map(|(at, step)| (&step.id, at)).collect();
    let mut waits: Vec<usize> = vec![0; steps.len()];
    let mut waited_for: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    for (at, step) in steps.iter().enumerate() {
        for need in step.needs.iter().filter_map(|need| places.get(need)) {
            waits[at] += 1;
            waited_for[*need].push(at);
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..steps.len()).filter(|at| waits[*at] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(steps.len());
    while let Some(Reverse(at)) = ready.pop() {
        order.push(at);
        for next in &waited_for[at] {
            waits[*next] -= 1;
            if waits[*next] == 0 {
                ready.push(Reverse(*next));
            }
        }
    }
    let left: Vec<usize> = (0..steps.len()).filter(|at| waits[*at] > 0).collect();
    if left.is_empty() { Ok(order) } else { Err(left) }
}

/// Finds a circle among the steps that [`order`] could not place: each needs the next, and the last needs the first.
pub(super) fn circle(steps: &[Step], left: &[usize]) -> Vec<usize> {
    let needed = |at: usize| left.iter().copied().find(|other| steps[at].needs.contains(&steps[*other].id));
    let mut way: Vec<usize> = Vec::new();
    let mut at = left[0];
    // Each of them needs another of them, so walking on comes back to where it has been.
    while !way.contains(&at) {
        way.push(at);
        at = needed(at).expect("a step that could not be placed needs another such step");
    }
    let start = way.iter().position(|seen| *seen == at).expect("the walk ended where it had been");
    way.split_off(start)
}
