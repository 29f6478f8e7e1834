//! A picture of scores, as SVG that needs nothing else.

use std::fmt::Write as _;

use super::scores::{Point, Scores};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 110.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 52.0;

const INK: &str = "#1f2933";
const FAINT: &str = "#7b8794";
const GRID: &str = "#e4e7eb";
const LINE: &str = "#2563a8";
const APPROVE: &str = "#1b7f4b";
const SOFT: &str = "#b45309";

/// Where iterations and scores are on the picture.
struct Frame {
    first: f64,
    count: f64,
}

impl Frame {
    fn x(&self, iteration: u32) -> f64 {
        // Half a place on both sides, so that one iteration alone is in the middle.
        let place = (f64::from(iteration) - self.first + 0.5) / self.count;
        LEFT + place * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, fraction: f64) -> f64 {
        TOP + (1.0 - fraction.clamp(0.0, 1.0)) * (HEIGHT - TOP - BOTTOM)
    }
}

pub(super) fn svg(scores: &Scores) -> String {
    let first = scores.points.first().map_or(1, |point| point.iteration);
    let frame = Frame { first: f64::from(first), count: scores.points.len().max(1) as f64 };
    let mut out = String::new();
    let title = escape(&format!("{}: scores of run {}", scores.project, scores.run));
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         role=\"img\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"{INK}\">\n\
         <title>{title}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"26\" font-size=\"15\" font-weight=\"bold\">{title}</text>\n"
    );
    axes(&mut out, &frame, scores);
    thresholds(&mut out, &frame, scores);
    lines(&mut out, &frame, scores);
    points(&mut out, &frame, scores);
    out.push_str("</svg>\n");
    out
}

fn axes(out: &mut String, frame: &Frame, scores: &Scores) {
    let scale = scores.scale();
    for step in 0..=5 {
        let fraction = f64::from(step) / 5.0;
        let (y, value) = (frame.y(fraction), shown(fraction * scale));
        let (right, label) = (WIDTH - RIGHT, LEFT - 8.0);
        let _ = write!(
            out,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"{GRID}\"/>\n\
             <text x=\"{label}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"{FAINT}\">{value}</text>\n",
            y + 4.0
        );
    }
    let every = scores.points.len().div_ceil(20).max(1);
    for point in scores.points.iter().step_by(every) {
        let (x, y, number) = (frame.x(point.iteration), HEIGHT - BOTTOM + 18.0, point.iteration);
        let _ = writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\" fill=\"{FAINT}\">{number}</text>"
        );
    }
    let (middle, bottom) = ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 12.0);
    let _ = writeln!(
        out,
        "<text x=\"{middle}\" y=\"{bottom}\" text-anchor=\"middle\" fill=\"{FAINT}\">iteration</text>"
    );
}

fn thresholds(out: &mut String, frame: &Frame, scores: &Scores) {
    let (approve, soft) = scores.thresholds.fractions();
    for (fraction, name, colour) in [(approve, "approve", APPROVE), (soft, "soft fail", SOFT)] {
        let (y, right, value) = (frame.y(fraction), WIDTH - RIGHT, shown(fraction * scores.scale()));
        let _ = write!(
            out,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"{colour}\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{name} {value}</text>\n",
            right + 8.0,
            y + 4.0
        );
    }
}

/// Joins scores that follow each other; nothing joins the two sides of a gap.
fn lines(out: &mut String, frame: &Frame, scores: &Scores) {
    for stretch in scores.points.split(|point| point.fraction().is_none()).filter(|stretch| stretch.len() > 1)
    {
        let place = |point: &Point| {
            format!("{:.1},{:.1}", frame.x(point.iteration), frame.y(point.fraction().unwrap_or(0.0)))
        };
        let places: Vec<String> = stretch.iter().map(place).collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{LINE}\" stroke-width=\"2\"/>",
            places.join(" ")
        );
    }
}

fn points(out: &mut String, frame: &Frame, scores: &Scores) {
    let radius = if scores.points.len() > 40 { 2.5 } else { 4.5 };
    for point in &scores.points {
        let x = frame.x(point.iteration);
        let Some(fraction) = point.fraction() else {
            gap(out, frame, point, scores.points.len());
            continue;
        };
        let (y, value) = (frame.y(fraction), shown(fraction * scores.scale()));
        let verdict = point.scored.and_then(|scored| scored.verdict).map_or("", |verdict| verdict.as_str());
        let _ = writeln!(
            out,
            "<circle class=\"score\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{LINE}\"><title>iteration {}: {value} {verdict}</title></circle>",
            point.iteration
        );
        if scores.best == Some(point.iteration) {
            best(out, x, y, radius, &value);
        }
    }
}

fn best(out: &mut String, x: f64, y: f64, radius: f64, value: &str) {
    // Above the point, unless that is where the title is.
    let text = if y < TOP + 24.0 { y + 24.0 } else { y - 13.0 };
    let _ = write!(
        out,
        "<circle class=\"best\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\" fill=\"none\" stroke=\"{INK}\" stroke-width=\"2\"/>\n\
         <text x=\"{x:.1}\" y=\"{text:.1}\" text-anchor=\"middle\" font-weight=\"bold\" stroke=\"#ffffff\" stroke-width=\"4\" paint-order=\"stroke\">best {value}</text>\n",
        radius + 4.0
    );
}

fn gap(out: &mut String, frame: &Frame, point: &Point, count: usize) {
    let (x, y, why) = (frame.x(point.iteration), frame.y(0.0), point.gap.unwrap_or("no score"));
    let _ = write!(
        out,
        "<g class=\"gap\"><title>iteration {}: {why}</title><line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{y:.1}\" stroke=\"{GRID}\" stroke-width=\"6\"/>",
        point.iteration
    );
    if count <= 12 {
        let _ = write!(
            out,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"{FAINT}\" font-style=\"italic\" stroke=\"#ffffff\" stroke-width=\"4\" paint-order=\"stroke\">{why}</text>",
            y - 6.0
        );
    }
    out.push_str("</g>\n");
}

/// A number with as many digits as it needs, at most two.
fn shown(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            c if c.is_control() => {}
            c => safe.push(c),
        }
    }
    safe
}
