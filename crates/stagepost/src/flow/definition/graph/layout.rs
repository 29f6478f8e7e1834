//! Where everything goes in the picture: steps in rows below what they need, and as few crossings as a few sweeps find.

use std::collections::HashMap;

use super::{Edge, Graph, in_short};

pub(super) const HEIGHT: f64 = 46.0;
const ROW_GAP: f64 = 54.0;
const COLUMN_GAP: f64 = 28.0;
const MARGIN: f64 = 24.0;
const TITLE: f64 = 34.0;
/// What a box shows of a command.
pub(super) const LONGEST: usize = 34;
/// A line that passes a row needs this much room in it.
const PASSING: f64 = 12.0;
/// Beyond this many, lines are drawn straight: who looks at so large a picture does not follow single ones.
const MOST_PASSING: usize = 5_000;
const SWEEPS: usize = 8;

/// A step in the picture.
pub(super) struct Placed {
    pub(super) step: usize,
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
}

/// The way of a line from one step to one that needs it.
pub(super) struct Way {
    pub(super) points: Vec<(f64, f64)>,
    pub(super) label: Option<String>,
}

/// A dashed line: outside at the right, from a step to where an answer or a failure leads.
pub(super) struct Jump {
    pub(super) points: Vec<(f64, f64)>,
    pub(super) label: String,
}

pub(super) struct Layout {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) boxes: Vec<Placed>,
    pub(super) ways: Vec<Way>,
    pub(super) jumps: Vec<Jump>,
}

/// What stands in a row: a step, or a line that passes.
struct Item {
    step: Option<usize>,
    width: f64,
    center: f64,
    above: Vec<usize>,
    below: Vec<usize>,
}

struct Rows {
    items: Vec<Item>,
    rows: Vec<Vec<usize>>,
    /// The items along each line, from top to bottom.
    chains: Vec<(usize, Vec<usize>)>,
}

/// Estimates how wide a text is; whoever shows it chooses the typeface.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(|c| if (c as u32) < 0x1100 { 0.58 * size } else { size }).sum()
}

pub(super) fn lay_out(graph: &Graph<'_>) -> Layout {
    let mut rows = rows(graph);
    for sweep in 0..SWEEPS {
        rows.sort(sweep % 2 == 0);
    }
    rows.spread();
    rows.settle();
    let offset = MARGIN - rows.left();
    rows.items.iter_mut().for_each(|item| item.center += offset);

    let boxes = rows.boxes();
    let right = rows.items.iter().map(|item| item.center + item.width / 2.0).fold(0.0, f64::max);
    let (jumps, lanes_right) = jumps(graph, &boxes, right);
    let title = text_width(&graph.flow.name, 16.0) + 2.0 * MARGIN;
    Layout {
        width: (lanes_right + MARGIN).max(title),
        height: top_of(rows.rows.len()) - ROW_GAP + MARGIN,
        ways: ways(graph, &rows),
        boxes,
        jumps,
    }
}

fn top_of(row: usize) -> f64 {
    MARGIN + TITLE + row as f64 * (HEIGHT + ROW_GAP)
}

fn box_width(graph: &Graph<'_>, at: usize) -> f64 {
    let step = &graph.flow.steps[at];
    let title = text_width(&step.name.chars().take(LONGEST).collect::<String>(), 13.0);
    let detail = text_width(&format!("{}: {}", step.action.name(), in_short(step, LONGEST)), 11.0);
    title.max(detail).max(90.0) + 24.0
}

fn rows(graph: &Graph<'_>) -> Rows {
    let mut made = Rows { items: Vec::new(), rows: vec![Vec::new(); graph.layers.len()], chains: Vec::new() };
    let mut item_of = vec![0; graph.flow.steps.len()];
    let mut row_of = vec![0; graph.flow.steps.len()];
    for (row, layer) in graph.layers.iter().enumerate() {
        for at in layer {
            (item_of[*at], row_of[*at]) = (made.add(row, Some(*at), box_width(graph, *at)), row);
        }
    }
    let needs = || graph.edges.iter().enumerate().filter(|(_, edge)| edge.because.is_none());
    let passing: usize = needs().map(|(_, edge)| row_of[edge.to] - row_of[edge.from] - 1).sum();
    for (number, edge) in needs() {
        let mut chain = vec![item_of[edge.from]];
        if passing <= MOST_PASSING {
            chain.extend((row_of[edge.from] + 1..row_of[edge.to]).map(|row| made.add(row, None, PASSING)));
        }
        chain.push(item_of[edge.to]);
        for pair in chain.windows(2) {
            made.items[pair[0]].below.push(pair[1]);
            made.items[pair[1]].above.push(pair[0]);
        }
        made.chains.push((number, chain));
    }
    made
}

impl Rows {
    fn add(&mut self, row: usize, step: Option<usize>, width: f64) -> usize {
        self.items.push(Item { step, width, center: 0.0, above: Vec::new(), below: Vec::new() });
        self.rows[row].push(self.items.len() - 1);
        self.items.len() - 1
    }

    /// Orders each row by the mean place of its neighbours in the row before, downwards or upwards.
    fn sort(&mut self, downwards: bool) {
        let mut place: Vec<f64> = vec![0.0; self.items.len()];
        let numbers: Vec<usize> =
            if downwards { (0..self.rows.len()).collect() } else { (0..self.rows.len()).rev().collect() };
        for row in &self.rows {
            row.iter().enumerate().for_each(|(at, item)| place[*item] = at as f64 / row.len() as f64);
        }
        for row in numbers {
            let mut order = std::mem::take(&mut self.rows[row]);
            let mean = |item: &usize| {
                let neighbours = if downwards { &self.items[*item].above } else { &self.items[*item].below };
                mean(neighbours.iter().map(|other| place[*other])).unwrap_or(place[*item])
            };
            let means: HashMap<usize, f64> = order.iter().map(|item| (*item, mean(item))).collect();
            order.sort_by(|a, b| means[a].total_cmp(&means[b]));
            let count = order.len() as f64;
            order.iter().enumerate().for_each(|(at, item)| place[*item] = at as f64 / count);
            self.rows[row] = order;
        }
    }

    /// Puts the items of each row side by side, around the middle.
    fn spread(&mut self) {
        for row in &self.rows {
            let total: f64 = row.iter().map(|item| self.items[*item].width + COLUMN_GAP).sum();
            let mut x = -total / 2.0;
            for item in row {
                let width = self.items[*item].width;
                self.items[*item].center = x + (width + COLUMN_GAP) / 2.0;
                x += width + COLUMN_GAP;
            }
        }
    }

    /// Moves items towards their neighbours, as far as those beside them let them.
    fn settle(&mut self) {
        for pass in 0..2 * SWEEPS {
            for row in 0..self.rows.len() {
                let row = if pass % 2 == 0 { row } else { self.rows.len() - 1 - row };
                let order = self.rows[row].clone();
                for (at, item) in order.iter().enumerate() {
                    let near = self.items[*item].above.iter().chain(&self.items[*item].below);
                    let Some(wanted) = mean(near.map(|other| self.items[*other].center)) else { continue };
                    let room =
                        |other: usize| (self.items[other].width + self.items[*item].width) / 2.0 + COLUMN_GAP;
                    let least = at.checked_sub(1).map(|left| order[left]);
                    let least = least.map_or(f64::MIN, |left| self.items[left].center + room(left));
                    let most =
                        order.get(at + 1).map_or(f64::MAX, |right| self.items[*right].center - room(*right));
                    if least <= most {
                        self.items[*item].center = wanted.clamp(least, most);
                    }
                }
            }
        }
    }

    fn left(&self) -> f64 {
        self.items.iter().map(|item| item.center - item.width / 2.0).fold(f64::MAX, f64::min)
    }

    fn boxes(&self) -> Vec<Placed> {
        let mut boxes: Vec<Placed> = Vec::new();
        for (row, items) in self.rows.iter().enumerate() {
            let placed = items.iter().filter_map(|item| {
                let Item { step, width, center, .. } = &self.items[*item];
                Some(Placed { step: (*step)?, x: center - width / 2.0, y: top_of(row), width: *width })
            });
            boxes.extend(placed);
        }
        boxes.sort_by_key(|placed| placed.step);
        boxes
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// The lines between steps. An answer that leads where the flow goes anyway is written at that line.
fn ways(graph: &Graph<'_>, rows: &Rows) -> Vec<Way> {
    let mut row_of = vec![0; rows.items.len()];
    rows.rows.iter().enumerate().for_each(|(at, row)| row.iter().for_each(|item| row_of[*item] = at));
    let mut answers: HashMap<(usize, usize), Vec<&str>> = HashMap::new();
    for edge in &graph.edges {
        answers.entry((edge.from, edge.to)).or_default().extend(edge.because.as_deref());
    }
    let way = |(number, chain): &(usize, Vec<usize>)| {
        let Edge { from, to, .. } = &graph.edges[*number];
        let mut points = Vec::new();
        for (at, item) in chain.iter().enumerate() {
            let (center, top) = (rows.items[*item].center, top_of(row_of[*item]));
            if at > 0 {
                points.push((center, top));
            }
            if at + 1 < chain.len() {
                points.push((center, top + HEIGHT));
            }
        }
        let label =
            answers.get(&(*from, *to)).filter(|labels| !labels.is_empty()).map(|labels| labels.join(", "));
        Way { points, label }
    };
    rows.chains.iter().map(way).collect()
}

/// Dashed lines leave at the right side of a box, or through the gap below it if others stand beside it, and go up or
/// down in a lane of their own. Shorter ones stay nearer. Returns how far right they reach.
fn jumps(graph: &Graph<'_>, boxes: &[Placed], right: f64) -> (Vec<Jump>, f64) {
    let outer = |edge: &&Edge| edge.because.is_some() && !graph.is_needed(edge.from, edge.to);
    let mut edges: Vec<&Edge> = graph.edges.iter().filter(outer).collect();
    edges.sort_by_key(|edge| edge.from.abs_diff(edge.to));
    let rightmost: Vec<bool> = boxes.iter().map(|placed| is_rightmost(placed, boxes)).collect();
    let mut used: Vec<f64> = vec![0.0; boxes.len()];
    let (mut lane, mut made) = (right + 26.0, Vec::new());
    for edge in edges {
        let label = edge.because.clone().unwrap_or_default();
        let width = text_width(&label, 10.0);
        let mut points = port(&boxes[edge.from], rightmost[edge.from], &mut used[edge.from], Side::Out);
        let mut arrival = port(&boxes[edge.to], rightmost[edge.to], &mut used[edge.to], Side::In);
        points.push((lane, points.last().map_or(0.0, |point| point.1)));
        points.push((lane, arrival.last().map_or(0.0, |point| point.1)));
        arrival.reverse();
        points.extend(arrival);
        made.push(Jump { points, label });
        lane += width + 20.0;
    }
    let end = if made.is_empty() { right } else { lane };
    (made, end)
}

fn is_rightmost(placed: &Placed, boxes: &[Placed]) -> bool {
    !boxes.iter().any(|other| other.y == placed.y && other.x > placed.x)
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Out,
    In,
}

/// The points from a box to where its lane begins. Each use of a box gets a place of its own.
fn port(placed: &Placed, is_rightmost: bool, used: &mut f64, side: Side) -> Vec<(f64, f64)> {
    let nth = *used;
    *used += 1.0;
    if is_rightmost {
        return vec![(placed.x + placed.width, placed.y + 9.0 + (nth * 9.0) % (HEIGHT - 12.0))];
    }
    let x = placed.x + placed.width - 14.0 - (nth * 10.0) % (placed.width / 2.0);
    let step = 12.0 + (nth * 7.0) % 30.0;
    match side {
        Side::Out => vec![(x, placed.y + HEIGHT), (x, placed.y + HEIGHT + step)],
        Side::In => vec![(x, placed.y), (x, placed.y - step)],
    }
}
