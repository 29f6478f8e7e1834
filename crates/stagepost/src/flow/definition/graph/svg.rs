//! The graph as a picture: SVG that stands by itself, readable on white.

use std::fmt::Write as _;

use super::layout::{HEIGHT, Jump, LONGEST, Layout, Placed, Way, lay_out, text_width};
use super::{Graph, in_short};
use crate::flow::definition::{Action, Step};

pub(super) fn draw(graph: &Graph<'_>) -> String {
    let layout = lay_out(graph);
    let mut out = String::new();
    head(&mut out, &layout, &graph.flow.name);
    layout.jumps.iter().for_each(|jump| draw_jump(&mut out, jump));
    layout.ways.iter().for_each(|way| draw_way(&mut out, way));
    layout.boxes.iter().for_each(|placed| draw_box(&mut out, placed, &graph.flow.steps[placed.step]));
    // Words last: no line goes over them.
    layout.ways.iter().for_each(|way| name_way(&mut out, way));
    layout.jumps.iter().for_each(|jump| name_jump(&mut out, jump));
    out.push_str("</svg>\n");
    out
}

/// Writing into a text cannot fail, so the results of `write!` are dropped here and below.
fn head(out: &mut String, layout: &Layout, name: &str) {
    let (width, height) = (layout.width.ceil(), layout.height.ceil());
    let name = escaped(name);
    let _ = write!(
        out,
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="Helvetica, Arial, sans-serif">
<title>{name}</title>
<defs>
<marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="#4a5568"/></marker>
<marker id="dashed-tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="#b7791f"/></marker>
</defs>
<rect width="100%" height="100%" fill="#ffffff"/>
<text x="24" y="34" font-size="16" font-weight="bold" fill="#1a202c">{name}</text>
"##
    );
}

fn draw_way(out: &mut String, way: &Way) {
    let mut path = String::new();
    for (at, (x, y)) in way.points.iter().enumerate() {
        let _ = match at.checked_sub(1).map(|before| way.points[before]) {
            None => write!(path, "M{x:.1} {y:.1}"),
            // Straight past a row, bent between rows.
            Some((before, _)) if before == *x => write!(path, " L{x:.1} {y:.1}"),
            Some((before, above)) => {
                let middle = f64::midpoint(above, *y);
                write!(path, " C{before:.1} {middle:.1} {x:.1} {middle:.1} {x:.1} {y:.1}")
            }
        };
    }
    let _ = writeln!(
        out,
        r##"<path d="{path}" fill="none" stroke="#4a5568" stroke-width="1.4" marker-end="url(#tip)"/>"##
    );
}

fn name_way(out: &mut String, way: &Way) {
    let (Some(label), [(from, below), .., (to, above)]) = (&way.label, way.points.as_slice()) else { return };
    words(out, f64::midpoint(*from, *to), f64::midpoint(*below, *above) + 3.0, label, "middle");
}

fn draw_jump(out: &mut String, jump: &Jump) {
    let points: Vec<String> = jump.points.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
    let _ = writeln!(
        out,
        r##"<path d="M{}" fill="none" stroke="#b7791f" stroke-width="1.2" stroke-dasharray="5 4" stroke-linejoin="round" marker-end="url(#dashed-tip)"/>"##,
        points.join(" L")
    );
}

/// At its lane, half way.
fn name_jump(out: &mut String, jump: &Jump) {
    let lane = jump.points.iter().map(|(x, _)| *x).fold(f64::MIN, f64::max);
    let (mut top, mut bottom) = (f64::MAX, f64::MIN);
    for (_, y) in jump.points.iter().filter(|(x, _)| *x == lane) {
        (top, bottom) = (top.min(*y), bottom.max(*y));
    }
    words(out, lane + 4.0, f64::midpoint(top, bottom) + 3.0, &jump.label, "start");
}

fn words(out: &mut String, x: f64, y: f64, label: &str, anchor: &str) {
    let width = text_width(label, 10.0) + 4.0;
    let left = if anchor == "middle" { x - width / 2.0 } else { x - 2.0 };
    let _ = writeln!(
        out,
        r##"<rect x="{left:.1}" y="{:.1}" width="{width:.1}" height="13" fill="#ffffff" fill-opacity="0.85"/><text x="{x:.1}" y="{y:.1}" font-size="10" fill="#975a16" text-anchor="{anchor}">{}</text>"##,
        y - 10.0,
        escaped(label)
    );
}

fn draw_box(out: &mut String, placed: &Placed, step: &Step) {
    let (fill, stroke, round) = match &step.action {
        Action::Run(_) => ("#ebf4ff", "#4a6fa5", 5),
        Action::Ask(_) => ("#fffaf0", "#b7791f", 20),
        Action::Refine(_) => ("#f0fff4", "#2f855a", 5),
    };
    let Placed { x, y, width, .. } = placed;
    // Whether it is done at all depends on something.
    let border = if step.condition.is_some() { r#" stroke-dasharray="3 2""# } else { "" };
    let mut rect = |shift: f64| {
        let _ = write!(
            out,
            r#"<rect x="{:.1}" y="{:.1}" width="{width:.1}" height="{HEIGHT}" rx="{round}" fill="{fill}" stroke="{stroke}" stroke-width="1.3"{border}/>"#,
            x + shift,
            y + shift
        );
    };
    if step.for_each.is_some() {
        rect(4.0);
    }
    rect(0.0);
    let middle = x + width / 2.0;
    let title = shortened(&step.name);
    let _ = writeln!(
        out,
        r##"<text x="{middle:.1}" y="{:.1}" font-size="13" font-weight="bold" fill="#1a202c" text-anchor="middle">{title}</text><text x="{middle:.1}" y="{:.1}" font-size="11" fill="#4a5568" text-anchor="middle">{}: {}</text>"##,
        y + 19.0,
        y + 35.0,
        step.action.name(),
        escaped(&in_short(step, LONGEST))
    );
}

fn shortened(name: &str) -> String {
    let shown: String = name.chars().take(LONGEST).collect();
    if shown.len() < name.len() { escaped(&format!("{shown}…")) } else { escaped(&shown) }
}

/// Text as XML: characters that XML cannot have are shown as unknown.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
