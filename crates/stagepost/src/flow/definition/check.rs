//! What can only be said when all steps are known: names that mean something, and needs without circles.

use std::collections::{HashMap, HashSet};

use super::read::{Mention, Named, Reader, closest};
use super::{Flow, Place, StepId, graph};

pub(super) fn whole(reader: &mut Reader<'_>, flow: &Flow) {
    let mentions = std::mem::take(&mut reader.mentions);
    let named: HashSet<StepId> =
        mentions.iter().filter_map(|mention| own_id(&mention.named)).cloned().collect();
    twice(reader, &mentions);
    for mention in &mentions {
        unknown(reader, mention, &named);
    }
    // Circles and the order of steps mean something only where each name means one step.
    if reader.faults.is_empty() {
        circle(reader, flow, &mentions);
    }
    if reader.faults.is_empty() {
        too_early(reader, flow, &mentions);
        for_nothing(reader, flow, &mentions);
    }
}

fn own_id(named: &Named) -> Option<&StepId> {
    match named {
        Named::Itself(id) => Some(id),
        _ => None,
    }
}

fn twice(reader: &mut Reader<'_>, mentions: &[Mention]) {
    let mut seen: HashMap<&StepId, Place> = HashMap::new();
    for (id, place) in mentions.iter().filter_map(|mention| Some((own_id(&mention.named)?, mention.place))) {
        match seen.get(id) {
            Some(first) => {
                reader.fault(place, format!("`{id}` is the id of a step at line {} already", first.line))
            }
            None => drop(seen.insert(id, place)),
        }
    }
}

fn unknown(reader: &mut Reader<'_>, mention: &Mention, named: &HashSet<StepId>) {
    let word = match &mention.named {
        Named::Need(id) | Named::Target(id) if !named.contains(id) => id.as_str(),
        Named::Head(head) if !is_known_head(head, named) => head,
        _ => return,
    };
    let steps: Vec<&str> = named.iter().map(StepId::as_str).collect();
    let meant = closest(word, &steps).map(|close| format!("; did you mean `{close}`?")).unwrap_or_default();
    reader.fault(mention.place, format!("there is no step `{}`{meant}", word.escape_debug()));
}

fn is_known_head(head: &str, named: &HashSet<StepId>) -> bool {
    matches!(head, "input" | "item" | "index") || named.iter().any(|id| id.as_str() == head)
}

fn circle(reader: &mut Reader<'_>, flow: &Flow, mentions: &[Mention]) {
    let Err(left) = graph::order(&flow.steps) else { return };
    let way = graph::circle(&flow.steps, &left);
    let shown: Vec<&str> = way.iter().map(|at| flow.steps[*at].id.as_str()).collect();
    let (by, need) = (way[0], way.get(1).map_or(way[0], |next| *next));
    let is_it =
        |mention: &&Mention| mention.by == by && mention.named == Named::Need(flow.steps[need].id.clone());
    let own = |mention: &&Mention| mention.by == by && own_id(&mention.named).is_some();
    let place =
        mentions.iter().find(is_it).or_else(|| mentions.iter().find(own)).map(|mention| mention.place);
    let what = format!("needs form a circle: {} -> {}", shown.join(" -> "), shown[0]);
    reader.fault(place.unwrap_or(Place { line: 1, column: 1 }), what);
}

/// A step can only see what came before it: what it needs, what those need, and whatever can lead back to any of them.
fn too_early(reader: &mut Reader<'_>, flow: &Flow, mentions: &[Mention]) {
    let places: HashMap<&str, usize> =
        flow.steps.iter().enumerate().map(|(at, step)| (step.id.as_str(), at)).collect();
    let before: Vec<Vec<usize>> = came_before(flow, &places);
    for mention in mentions {
        let Named::Head(head) = &mention.named else { continue };
        let Some(at) = places.get(head.as_str()) else { continue };
        if !reaches(&before, mention.by, *at) {
            let id = &flow.steps[mention.by].id;
            reader.fault(mention.place, format!("`{head}` does not come before `{id}`: add it to `needs`"));
        }
    }
}

/// What a step is done for is known only where it is done for something.
fn for_nothing(reader: &mut Reader<'_>, flow: &Flow, mentions: &[Mention]) {
    for mention in mentions.iter().filter(|mention| flow.steps[mention.by].for_each.is_none()) {
        if let Named::Head(head) = &mention.named
            && matches!(head.as_str(), "item" | "index")
        {
            reader.fault(mention.place, format!("`{head}` means something within `for_each` only"));
        }
    }
}

fn came_before(flow: &Flow, places: &HashMap<&str, usize>) -> Vec<Vec<usize>> {
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); flow.steps.len()];
    for (at, step) in flow.steps.iter().enumerate() {
        before[at].extend(step.needs.iter().filter_map(|need| places.get(need.as_str())));
        for (_, target) in graph::jumps(step) {
            if let Some(to) = places.get(target.as_str()) {
                before[*to].push(at);
            }
        }
    }
    before
}

fn reaches(before: &[Vec<usize>], from: usize, to: usize) -> bool {
    let (mut seen, mut next) = (HashSet::new(), before[from].clone());
    while let Some(at) = next.pop() {
        if at == to {
            return true;
        }
        if seen.insert(at) {
            next.extend(&before[at]);
        }
    }
    false
}
