//! How the scores of a run went.

use serde::Serialize;

use super::history::{Call, History, Iteration};
use super::plot;
use crate::formats::plans::{Scored, Thresholds};
use crate::model::RunId;

/// How the scores of a run went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scores {
    /// The run.
    pub run: RunId,
    /// What it is about.
    pub project: String,
    /// What was demanded.
    #[serde(flatten)]
    pub thresholds: Thresholds,
    /// The iterations in order, those without a score too.
    pub points: Vec<Point>,
    /// The best of them.
    pub best: Option<u32>,
}

/// An iteration and its score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// The iteration.
    pub iteration: u32,
    /// Its score; `None` is a gap, not a zero.
    #[serde(flatten)]
    pub scored: Option<Scored>,
    /// Why there is no score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<&'static str>,
    /// How many tokens it cost.
    pub tokens: u64,
    /// How long its calls took.
    pub seconds: f64,
}

impl Point {
    fn of(number: u32, one: Option<&Iteration>) -> Self {
        let calls = one.into_iter().flat_map(Iteration::checkpoints).filter_map(Call::of);
        let (tokens, seconds) =
            calls.fold((0, 0.0), |(tokens, seconds), call| (tokens + call.tokens, seconds + call.seconds));
        let scored = one.and_then(|one| one.judgement.as_ref()).map(|said| said.scored);
        let gap = if scored.is_some_and(|scored| scored.score.is_some()) { None } else { Some(gap(one)) };
        Self { iteration: number, scored, gap, tokens, seconds }
    }

    /// The score as a part of 1.
    pub fn fraction(&self) -> Option<f64> {
        self.scored.and_then(|scored| scored.fraction())
    }
}

fn gap(one: Option<&Iteration>) -> &'static str {
    match one {
        None => "not recorded",
        Some(one) if one.judgement.is_some() => "no score",
        Some(one) if one.validation.as_ref().is_some_and(|said| !said.valid) => "not valid",
        Some(one) if one.raw.is_some() => "not judged",
        Some(_) => "no plan",
    }
}

impl Scores {
    /// Reads them from what happened.
    pub fn of(history: &History) -> Self {
        let (first, last) = (history.iterations.keys().next(), history.iterations.keys().next_back());
        let numbers = first.zip(last).map(|(first, last)| *first..=*last).into_iter().flatten();
        Self {
            run: history.run.id.clone(),
            project: history.about.project.clone(),
            thresholds: history.thresholds(),
            points: numbers.map(|number| Point::of(number, history.iterations.get(&number))).collect(),
            best: history.best().map(|one| one.number),
        }
    }

    /// What all scores are of; where they differ, all are shown as parts of 100.
    pub fn scale(&self) -> f64 {
        let mut all = self.points.iter().filter_map(|point| point.scored).map(|scored| scored.score_max);
        let first = all.next().unwrap_or(10.0);
        if all.all(|other| other == first) { first } else { 100.0 }
    }

    /// One character for each iteration, a dot for a gap.
    pub fn sparkline(&self) -> String {
        const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let bar = |fraction: f64| BARS[((fraction.clamp(0.0, 1.0) * 8.0) as usize).min(7)];
        self.points.iter().map(|point| point.fraction().map_or('·', bar)).collect()
    }

    /// A picture of them, with what was demanded, gaps where there is no score, and the best marked.
    pub fn svg(&self) -> String {
        plot::svg(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_no_zero() {
        let point = |iteration, score: Option<f64>| Point {
            iteration,
            scored: score.map(|score| Scored { score: Some(score), score_max: 10.0, verdict: None }),
            gap: None,
            tokens: 0,
            seconds: 0.0,
        };
        let scores = Scores {
            run: RunId::new("a3f9b2c1").unwrap(),
            project: "a<b".into(),
            thresholds: Thresholds::default(),
            points: vec![point(1, Some(0.0)), point(2, None), point(3, Some(7.0)), point(4, Some(10.0))],
            best: Some(4),
        };
        assert_eq!(scores.sparkline(), "▁·▆█");
        let svg = scores.svg();
        assert!(svg.contains("a&lt;b") && svg.contains("approve"), "{svg}");
        assert_eq!(svg.matches("class=\"score\"").count(), 3);
        assert_eq!(svg.matches("class=\"gap\"").count(), 1);
        assert_eq!(svg.matches("<polyline").count(), 1, "nothing joins the two sides of a gap: {svg}");
        assert_eq!(svg.matches("class=\"best\"").count(), 1);
    }
}
