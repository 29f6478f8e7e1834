//! The steps of a flow as a graph: what comes after what.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::{Step, StepId};

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
