//! What files are called, and where they are.

use super::{AUDIO, SEQUENCE, TYPES};

/// The folder below the output folder.
pub const FOLDER: &str = "checkpoints";
/// The folder of everything about plans.
pub const PLANS: &str = "checkpoints/plans";

/// Returns the folder that files of a type are in, below the output folder.
pub fn folder_of(part: &str) -> &'static str {
    if [SEQUENCE, AUDIO].contains(&part) { FOLDER } else { PLANS }
}

/// Returns what a file is called: with a run and an iteration if it belongs to one.
pub fn file_name(project: &str, iteration: Option<(&str, u32)>, part: &str) -> String {
    match iteration {
        Some((run, number)) => format!("{project}_{run}_iter{number:02}_{part}.json"),
        None => format!("{project}_{part}.json"),
    }
}

/// What the name of a file tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The project.
    pub project: String,
    /// The run, if the name has one.
    pub run: Option<String>,
    /// The iteration, if the name has one.
    pub iteration: Option<u32>,
    /// The type.
    pub part: String,
}

impl Name {
    /// Reads a name from the right, for a project may have underscores of its own.
    pub fn read(file: &str) -> Option<Self> {
        let stem = file.strip_suffix(".json")?;
        if let Some((before, part)) = type_at_end(stem) {
            return Some(match iteration_at_end(before) {
                Some((before, number)) => Self::of_iteration(before, number, part),
                None => {
                    Self { project: before.to_owned(), run: None, iteration: None, part: part.to_owned() }
                }
            });
        }
        // A type of someone's own: only an iteration tells it from any other file.
        let at = stem.rfind("_iter")?;
        let (digits, part) = stem[at + 5..].split_once('_')?;
        let (before, number) = iteration_at_end(&stem[..at + 5 + digits.len()])?;
        (!part.is_empty()).then(|| Self::of_iteration(before, number, part))
    }

    fn of_iteration(before: &str, number: u32, part: &str) -> Self {
        let run = before.rsplit_once('_').filter(|(project, run)| !project.is_empty() && is_run(run));
        let (project, run) = run.map_or((before, None), |(project, run)| (project, Some(run.to_owned())));
        Self { project: project.to_owned(), run, iteration: Some(number), part: part.to_owned() }
    }
}

fn type_at_end(stem: &str) -> Option<(&str, &'static str)> {
    let (before, part) = stem.rsplit_once('_')?;
    let known = TYPES.into_iter().find(|known| *known == part)?;
    (!before.is_empty()).then_some((before, known))
}

fn iteration_at_end(text: &str) -> Option<(&str, u32)> {
    let (before, digits) = text.rsplit_once("_iter")?;
    let is_number = digits.len() >= 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !before.is_empty()).then_some(())?;
    Some((before, digits.parse().ok()?))
}

/// Says whether a text is a run as the original program names them.
fn is_run(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for (project, run, number, part) in [
            ("need_a_favor", "a3f9b2c1", 1, "raw"),
            ("x", "00000000", 100, "evaluation"),
            ("a_iter01_raw", "a3f9b2c1", 7, "notes_of_mine"),
        ] {
            let name = Name::read(&file_name(project, Some((run, number)), part)).unwrap();
            let expected = Name {
                project: project.into(),
                run: Some(run.into()),
                iteration: Some(number),
                part: part.into(),
            };
            assert_eq!(name, expected);
        }
        assert_eq!(
            file_name("need_a_favor", Some(("a3f9b2c1", 1)), "raw"),
            "need_a_favor_a3f9b2c1_iter01_raw.json"
        );
    }

    #[test]
    fn what_is_missing_in_a_name_is_missing() {
        let read =
            |file: &str| Name::read(file).map(|name| (name.project, name.run, name.iteration, name.part));
        let core = Some(("my_song".into(), None, None, "final".into()));
        assert_eq!(read("my_song_final.json"), core);
        let without_run = Some(("my_song".into(), None, Some(2), "raw".into()));
        assert_eq!(read("my_song_iter02_raw.json"), without_run);
        for other in
            ["raw.json", "_raw.json", "my_song.json", "my_song_raw.txt", "a_iter1_b.json", "_iter01_x.json"]
        {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
