//! Writing the GPX file: beside its place first, so that a kill never leaves half of it.

use std::error::Error;
use std::fs::{self, File};
use std::path::Path;

use geo_types::Point;
use gpx::{Gpx, GpxVersion, Track, TrackSegment, Waypoint};

use crate::valley::Spot;

pub(crate) fn write(path: &Path, name: &str, spots: &[&Spot]) -> Result<(), Box<dyn Error + Send + Sync>> {
    let point = |spot: &&Spot| {
        let mut point = Waypoint::new(Point::new(spot.lon, spot.lat));
        point.elevation = Some(spot.ele);
        point.name = Some(spot.name.clone());
        point
    };
    let segment = TrackSegment { points: spots.iter().map(point).collect() };
    let track = Track { name: Some(name.to_owned()), segments: vec![segment], ..Track::default() };
    let gpx = Gpx {
        version: GpxVersion::Gpx11,
        creator: Some("route-planner".to_owned()),
        tracks: vec![track],
        ..Gpx::default()
    };
    let beside = path.with_extension("gpx.new");
    let file = File::create(&beside)?;
    gpx::write(&gpx, &file)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    Ok(())
}
