//! The newest layout: `<domain>/<session>/<step>/<fingerprint>/artifact.json`, with `meta.json` written last.

use serde::Deserialize;

use super::Name;

/// What `meta.json` says of the artifact beside it. Without it, the artifact was never finished.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Meta {
    /// Which step made it: `agent.<type>` for checkpoints of plans.
    pub step_id: String,
    /// What it was made from: `project[_run][_iterNN]` for checkpoints of plans.
    pub input_fingerprint: String,
    /// When, in seconds since 1970.
    #[serde(default)]
    pub created_at: Option<f64>,
}

impl Meta {
    /// Reads it, if it speaks of a checkpoint of a plan.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Self>(bytes).ok().filter(|meta| meta.part().is_some())
    }

    fn part(&self) -> Option<&str> {
        self.step_id.strip_prefix("agent.").filter(|part| !part.is_empty())
    }

    /// What the file would be called in the older layouts.
    pub fn name(&self) -> Option<Name> {
        let part = self.part()?;
        let plain = Name {
            project: self.input_fingerprint.clone(),
            run: None,
            iteration: None,
            part: part.to_owned(),
        };
        let as_file = format!("{}_{part}.json", self.input_fingerprint);
        let named = Name::read(&as_file).filter(|name| name.part == part);
        // A run may come without an iteration here, which the older names do not have.
        let with_run = || Name::read(&format!("{}_iter00_{part}.json", self.input_fingerprint));
        match named {
            Some(name) if name.iteration.is_some() => Some(name),
            _ => with_run()
                .filter(|name| name.run.is_some())
                .map(|name| Name { iteration: None, ..name })
                .or(Some(plain)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_names_project_run_and_iteration() {
        let meta = |step: &str, made_from: &str| {
            let text =
                format!(r#"{{"step_id":"{step}","input_fingerprint":"{made_from}","created_at":1.5,"x":1}}"#);
            Meta::read(text.as_bytes())?.name()
        };
        let name = |run: Option<&str>, iteration| {
            Some(Name { project: "my_song".into(), run: run.map(Into::into), iteration, part: "raw".into() })
        };
        assert_eq!(meta("agent.raw", "my_song_a3f9b2c1_iter02"), name(Some("a3f9b2c1"), Some(2)));
        assert_eq!(meta("agent.raw", "my_song_iter02"), name(None, Some(2)));
        assert_eq!(meta("agent.raw", "my_song_a3f9b2c1"), name(Some("a3f9b2c1"), None));
        assert_eq!(meta("agent.raw", "my_song"), name(None, None));
        assert_eq!(meta("render", "my_song"), None);
    }
}
