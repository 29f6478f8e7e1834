//! The graph as text.

use super::{Edge, Graph, in_short};

/// What a terminal shows of a command.
const LONGEST: usize = 60;

pub(super) fn write(graph: &Graph<'_>) -> String {
    let steps = &graph.flow.steps;
    let width = steps.iter().map(|step| step.id.as_str().len()).max().unwrap_or(0);
    let digits = steps.len().to_string().len();
    let mut text = format!("{}\n", graph.flow.name);
    for layer in &graph.layers {
        text.push('\n');
        for at in layer {
            let step = &steps[*at];
            let each = if step.for_each.is_some() { " for each" } else { "" };
            text.push_str(&format!(
                "{:>digits$}  {:width$}  {}{each}: {}\n",
                at + 1,
                step.id,
                step.action.name(),
                in_short(step, LONGEST)
            ));
            if let Some(condition) = &step.condition {
                text.push_str(&format!("{:digits$}  if {condition}\n", ""));
            }
            text.push_str(&arrows(graph, *at, digits));
        }
    }
    text
}

fn arrows(graph: &Graph<'_>, from: usize, digits: usize) -> String {
    let leads = || graph.edges.iter().filter(move |edge| edge.from == from);
    let mut lines: Vec<String> = Vec::new();
    for Edge { to, because, .. } in leads() {
        let id = &graph.flow.steps[*to].id;
        match because {
            None => {
                let answers: Vec<&str> = leads()
                    .filter(|edge| edge.to == *to)
                    .filter_map(|edge| edge.because.as_deref())
                    .collect();
                let named =
                    if answers.is_empty() { String::new() } else { format!("─ {} ", answers.join(", ")) };
                lines.push(format!("{named}──> {id}"));
            }
            // Written at the arrow above.
            Some(_) if graph.is_needed(from, *to) => {}
            Some(because) => lines.push(format!("┄ {because} ┄┄> {id}")),
        }
    }
    let last = lines.len().saturating_sub(1);
    let corner = |at: usize| if at == last { '└' } else { '├' };
    lines.iter().enumerate().map(|(at, line)| format!("{:digits$}  {}{line}\n", "", corner(at))).collect()
}
