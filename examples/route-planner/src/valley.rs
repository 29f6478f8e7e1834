//! The valley: its places and roads, and loops through it.

use std::collections::BTreeSet;
use std::error::Error;

use serde::Deserialize;

/// A map small enough to ship.
#[derive(Debug, Deserialize)]
pub(crate) struct Valley {
    pub(crate) places: Vec<Spot>,
    roads: Vec<Road>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Spot {
    pub(crate) name: String,
    pub(crate) lat: f64,
    pub(crate) lon: f64,
    pub(crate) ele: f64,
    pub(crate) about: String,
    #[serde(default)]
    pub(crate) stop: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Road {
    from: String,
    to: String,
    pub(crate) name: String,
    pub(crate) surface: String,
    #[serde(default)]
    pub(crate) busy: bool,
}

/// A way that ends where it began.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Loop {
    pub(crate) places: Vec<String>,
    pub(crate) km: f64,
    pub(crate) up: f64,
}

impl Valley {
    pub(crate) fn shipped() -> Result<Self, Box<dyn Error>> {
        Ok(serde_json::from_str(include_str!("../data/valley.json"))?)
    }

    pub(crate) fn spot(&self, name: &str) -> Option<&Spot> {
        self.places.iter().find(|spot| spot.name == name)
    }

    pub(crate) fn road(&self, one: &str, other: &str) -> Option<&Road> {
        self.roads
            .iter()
            .find(|road| (road.from == one && road.to == other) || (road.from == other && road.to == one))
    }

    /// Every loop from a place that avoids some roads and places, each in one direction only, shortest first.
    pub(crate) fn loops(&self, start: &str, avoid: &[String]) -> Vec<Loop> {
        let mut found = Vec::new();
        self.extend(&mut vec![start.to_owned()], avoid, &mut found);
        let mut seen = BTreeSet::new();
        found.retain(|one: &Loop| seen.insert(one.places.iter().cloned().collect::<BTreeSet<_>>()));
        found.sort_by(|a, b| a.km.total_cmp(&b.km));
        found
    }

    fn extend(&self, path: &mut Vec<String>, avoid: &[String], found: &mut Vec<Loop>) {
        let here = path[path.len() - 1].clone();
        let avoided = |name: &str| avoid.iter().any(|avoid| avoid.eq_ignore_ascii_case(name));
        for road in self.roads.iter().filter(|road| !avoided(&road.name)) {
            let there = match (road.from == here, road.to == here) {
                (true, _) => &road.to,
                (_, true) => &road.from,
                _ => continue,
            };
            if *there == path[0] && path.len() > 2 {
                found.push(self.measured([path.as_slice(), &path[..1]].concat()));
            } else if !path.contains(there) && !avoided(there) {
                path.push(there.clone());
                self.extend(path, avoid, found);
                path.pop();
            }
        }
    }

    fn measured(&self, places: Vec<String>) -> Loop {
        let spots: Vec<&Spot> = places.iter().filter_map(|name| self.spot(name)).collect();
        // Roads wind: a third more than the straight line.
        let km = spots.windows(2).map(|pair| distance(pair[0], pair[1]) * 1.33).sum();
        let up = spots.windows(2).map(|pair| (pair[1].ele - pair[0].ele).max(0.0)).sum();
        Loop { places, km, up }
    }
}

/// The distance over the ground in kilometres.
fn distance(one: &Spot, other: &Spot) -> f64 {
    let (a, b) = (one.lat.to_radians(), other.lat.to_radians());
    let (dlat, dlon) = (b - a, (other.lon - one.lon).to_radians());
    let h = (dlat / 2.0).sin().powi(2) + a.cos() * b.cos() * (dlon / 2.0).sin().powi(2);
    2.0 * 6371.0 * h.sqrt().asin()
}
