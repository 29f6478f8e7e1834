//! The work between the gates: from words to a query, findings, candidates, refinements and a final route.

use std::error::Error;
use std::path::PathBuf;

use serde_json::{Value, json};
use stagepost::gate::journey::Work;

use crate::file;
use crate::valley::{Loop, Valley};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

pub(crate) struct Planner {
    valley: Valley,
    query: String,
    output: PathBuf,
}

impl Work for Planner {
    fn work(&mut self, stop: &str, input: &Value) -> Result<Value> {
        match stop {
            "query" => Ok(self.query(input)),
            "research" => Ok(self.research(input)),
            "candidates" => self.candidates(input),
            "refine" => self.refine(input),
            "finish" => Ok(finish(input)),
            "generate" => self.generate(input),
            other => Err(format!("nothing is known about `{other}`").into()),
        }
    }
}

impl Planner {
    pub(crate) fn new(query: &str, output: PathBuf) -> std::result::Result<Self, Box<dyn Error>> {
        Ok(Self { valley: Valley::shipped()?, query: query.to_owned(), output })
    }

    /// Understands the query, with every correction that was made since.
    fn query(&self, input: &Value) -> Value {
        let corrections = said(input, "confirm_intent", &["clarify"]);
        let words = std::iter::once(self.query.clone()).chain(corrections).collect::<Vec<_>>().join(". ");
        let named = |name: &str| words.to_lowercase().contains(&name.to_lowercase());
        let numbers: Vec<f64> =
            words.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
        // The last number that can be a distance is the one that counts; 1 is a highway.
        let km = numbers.into_iter().rfind(|km| (10.0..300.0).contains(km)).unwrap_or(40.0);
        let start = self.valley.places.iter().find(|spot| named(&format!("from {}", spot.name)));
        let start = start.map_or("Millbrook", |spot| &spot.name);
        let avoid: Vec<&str> =
            ["Highway 1", "Birch Pass"].into_iter().filter(|road| named(&format!("avoid {road}"))).collect();
        json!({
            "query": {
                "destinations": [start],
                "distance": {"min": km - 8.0, "max": km + 8.0},
                "constraints": {"mustVisit": [], "avoid": avoid, "surfacePreferences": []},
                "reference": words,
            },
            "skillsNeeded": {"climbs": true, "waterStops": true, "surface": true, "weather": false},
        })
    }

    fn research(&self, input: &Value) -> Value {
        let more = said(input, "present_findings", &["request_more"]);
        let stops: Vec<&str> =
            self.valley.places.iter().filter(|spot| spot.stop.is_some()).map(|spot| &*spot.name).collect();
        let highest = self.valley.places.iter().max_by(|a, b| a.ele.total_cmp(&b.ele));
        let climb = highest
            .map_or_else(String::new, |spot| format!("{} at {} m is the highest point", spot.name, spot.ele));
        let mut results = vec![
            json!({"skillName": "climbs", "summary": climb}),
            json!({"skillName": "waterStops", "summary": format!("water or food at {}", stops.join(", "))}),
        ];
        results.extend(
            more.iter()
                .map(|words| json!({"skillName": "further", "summary": format!("looked again: {words}")})),
        );
        json!({"skillResults": results, "insights": ["the east side is flat, the west side climbs"]})
    }

    /// The three loops whose length fits best.
    fn candidates(&self, input: &Value) -> Result<Value> {
        let query = &input["results"]["query"]["query"];
        let start = query["destinations"][0].as_str().unwrap_or("Millbrook");
        let avoid: Vec<String> = serde_json::from_value(query["constraints"]["avoid"].clone())?;
        let wanted = (query["distance"]["min"].as_f64().unwrap_or(30.0)
            + query["distance"]["max"].as_f64().unwrap_or(50.0))
            / 2.0;
        let mut loops = self.valley.loops(start, &avoid);
        loops.sort_by(|a, b| (a.km - wanted).abs().total_cmp(&(b.km - wanted).abs()));
        let skipped = 3 * said(input, "select_route", &["request_more"]).len();
        let skipped = if skipped + 2 < loops.len() { skipped } else { 0 };
        let routes: Vec<Value> = loops.iter().skip(skipped).take(3).map(|one| self.route(one)).collect();
        if routes.is_empty() { Err("no loop fits".into()) } else { Ok(json!({ "candidates": routes })) }
    }

    fn route(&self, one: &Loop) -> Value {
        let spots: Vec<_> = one.places[1..].iter().filter_map(|name| self.valley.spot(name)).collect();
        let inner = &spots[..spots.len() - 1];
        let far = inner.iter().max_by(|a, b| a.ele.total_cmp(&b.ele));
        let stops: Vec<Value> = inner
            .iter()
            .filter_map(|spot| {
                Some(json!({"type": spot.stop.as_ref()?, "name": spot.about, "location": spot.name}))
            })
            .collect();
        let roads = one.places.windows(2).filter_map(|pair| self.valley.road(&pair[0], &pair[1]));
        let warnings: Vec<String> = roads
            .filter_map(|road| match (road.busy, road.surface.as_str()) {
                (true, _) => Some(format!("{} is busy", road.name)),
                (_, "gravel") => Some(format!("{} is gravel", road.name)),
                _ => None,
            })
            .collect();
        json!({
            "id": format!("loop-{}", one.places[1..one.places.len() - 1].join("-").to_lowercase().replace(' ', "_")),
            "name": format!("{} Loop", far.map_or("Valley", |spot| &spot.name)),
            "distance": one.km.round(), "elevation": one.up.round(),
            "highlights": inner.iter().map(|spot| &spot.about).collect::<Vec<_>>(),
            "stops": stops, "warnings": warnings, "places": one.places,
        })
    }

    fn refine(&self, input: &Value) -> Result<Value> {
        let answers = input["answers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let chosen = answers.iter().rev().find(|answer| answer["action"] == "select");
        let id = chosen.map_or(&Value::Null, |answer| &answer["details"]["option_ids"][0]);
        let candidates = input["results"]["candidates"]["candidates"].as_array();
        let route = candidates
            .into_iter()
            .flatten()
            .find(|route| route["id"] == *id)
            .ok_or("nothing was selected")?;
        let mut refinements =
            vec!["start at 9 in the morning".to_owned(), "lunch at the second stop".to_owned()];
        refinements.extend(said(input, "refine_route", &["refine"]));
        refinements.extend(said(input, "present_final", &["refine"]));
        Ok(json!({"selectedRoute": route, "proposedRefinements": refinements}))
    }

    fn generate(&self, input: &Value) -> Result<Value> {
        let route = &input["results"]["finish"]["finalRoute"];
        let places: Vec<String> = serde_json::from_value(route["places"].clone())?;
        let spots: Vec<_> = places.iter().filter_map(|name| self.valley.spot(name)).collect();
        file::write(&self.output, route["name"].as_str().unwrap_or("Route"), &spots)?;
        Ok(json!({"file": self.output, "points": spots.len()}))
    }
}

fn finish(input: &Value) -> Value {
    let refined = &input["results"]["refine"];
    let mut route = refined["selectedRoute"].clone();
    let km = route["distance"].as_f64().unwrap_or(40.0);
    route["adjustments"] = refined["proposedRefinements"].clone();
    route["nutritionPlan"] = json!({"water": format!("{:.1} l", km / 25.0), "bars": (km / 20.0).ceil()});
    route["clothingRecommendations"] = json!(["windproof vest", "long gloves"]);
    json!({ "finalRoute": route })
}

/// What was said at a gate on the way here, with one of these actions.
fn said(input: &Value, stop: &str, actions: &[&str]) -> Vec<String> {
    let answers = input["answers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let here =
        |answer: &&Value| answer["stop"] == stop && actions.iter().any(|action| answer["action"] == *action);
    let words =
        |answer: &Value| answer["details"]["text"].as_str().or(answer["words"].as_str()).map(str::to_owned);
    answers.iter().filter(here).filter_map(words).collect()
}
