//! What was configured, where, and which of several places wins.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::retention::Policy;

/// What was configured. Later layers win: built in, user file, project file, environment, flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How long to wait for other processes.
    pub busy_timeout: Duration,
    /// What `gc` keeps.
    pub retention: Policy,
    /// Where snapshots of files are kept.
    pub store: StoreKind,
    /// Larger files are left out of snapshots, and listed.
    pub max_file_size: u64,
    /// More untracked files than this are not captured without consent.
    pub max_untracked: usize,
    /// Whether files that look like secrets, and that git neither ignores nor tracks, are in snapshots.
    pub secrets: bool,
    /// After this long a capture fails as a whole.
    pub deadline: Option<Duration>,
    values: BTreeMap<&'static str, (String, Origin)>,
}

/// Where snapshots of files are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// In the project's own git repository, readable with plain git.
    Repository,
    /// In a repository of our own.
    Private,
}

/// Where a setting comes from, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Built in.
    Default,
    /// The user's file.
    User,
    /// The project's `stagepost.toml`.
    Project,
    /// An environment variable.
    Environment,
    /// A flag.
    Flag,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Origin::Default => "default",
            Origin::User => "user file",
            Origin::Project => "stagepost.toml",
            Origin::Environment => "environment",
            Origin::Flag => "flag",
        })
    }
}

/// Settings from one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    origin: Origin,
    values: Vec<(String, String)>,
}

/// Every setting: its name, what it is by default, and what it means.
const KNOWN: &[(&str, &str, &str)] = &[
    ("busy_timeout", "10s", "how long to wait for other processes before giving up"),
    ("retention.keep", "", "gc: keep the newest so many checkpoints of each run"),
    ("retention.max_age", "", "gc: give up checkpoints older than this, such as 30d"),
    ("retention.max_size", "", "gc: give up the oldest until the payloads fit, such as 2G"),
    ("snapshot.deadline", "10s", "give up capturing files after this long; 0s for never"),
    ("snapshot.max_file_size", "50M", "leave larger files out of snapshots, and list them"),
    ("snapshot.max_untracked", "50000", "do not capture more untracked files than this without consent"),
    ("snapshot.secrets", "false", "keep files such as .env and *.pem that git neither ignores nor tracks"),
    ("store", "repository", "where snapshots of files are kept: repository (in git's own) or private"),
];

impl Layer {
    /// Reads the settings of a TOML file.
    pub fn from_toml(origin: Origin, text: &str) -> Result<Self, SettingsError> {
        let table: toml::Table =
            text.parse().map_err(|fault: toml::de::Error| SettingsError::toml(origin, text, &fault))?;
        let mut values = Vec::new();
        flatten(&table, "", &mut values);
        Ok(Self { origin, values })
    }

    /// Takes settings from environment variables: `STAGEPOST_RETENTION_KEEP` is `retention.keep`.
    pub fn from_environment(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let known = |name: &str| {
            KNOWN.iter().find(|(key, ..)| variable(key) == name).map(|(key, ..)| (*key).to_owned())
        };
        let values = variables.into_iter().filter_map(|(name, value)| Some((known(&name)?, value))).collect();
        Self { origin: Origin::Environment, values }
    }

    /// Takes settings from flags.
    pub fn from_flags(values: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        Self {
            origin: Origin::Flag,
            values: values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        }
    }
}

/// The environment variable of a setting.
fn variable(key: &str) -> String {
    format!("STAGEPOST_{}", key.to_ascii_uppercase().replace('.', "_"))
}

fn flatten(table: &toml::Table, prefix: &str, values: &mut Vec<(String, String)>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            toml::Value::Table(inner) => flatten(inner, &key, values),
            toml::Value::String(text) => values.push((key, text.clone())),
            other => values.push((key, other.to_string())),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::from_layers(&[]).expect("the built-in settings are sound")
    }
}

impl Settings {
    /// Joins layers; those of a stronger origin win, whatever their order. An empty value is the built-in one.
    pub fn from_layers(layers: &[Layer]) -> Result<Self, SettingsError> {
        let built_in = KNOWN.iter().map(|(key, value, _)| (*key, ((*value).to_owned(), Origin::Default)));
        let mut values: BTreeMap<&'static str, (String, Origin)> = built_in.collect();
        let mut sorted: Vec<&Layer> = layers.iter().collect();
        sorted.sort_by_key(|layer| layer.origin);
        for layer in sorted {
            for (name, value) in &layer.values {
                let unknown = || SettingsError::Unknown { name: name.clone(), origin: layer.origin };
                let (key, built_in, _) = KNOWN.iter().find(|(key, ..)| key == name).ok_or_else(unknown)?;
                let value = if value.is_empty() { *built_in } else { value };
                values.insert(key, (value.to_owned(), layer.origin));
            }
        }
        Self::parse(values)
    }

    /// Joins layers as [`Settings::from_layers`] does, but leaves out what is wrong and says what that was.
    pub fn without_faults(mut layers: Vec<Layer>) -> (Self, Vec<SettingsError>) {
        let mut faults = Vec::new();
        loop {
            let fault = match Self::from_layers(&layers) {
                Ok(settings) => return (settings, faults),
                Err(fault) => fault,
            };
            if let SettingsError::Unknown { name, origin } = &fault {
                leave_out(&mut layers, *origin, name);
            } else if let SettingsError::Value { name, origin, .. } = &fault {
                leave_out(&mut layers, *origin, name);
            }
            faults.push(fault);
        }
    }

    fn parse(values: BTreeMap<&'static str, (String, Origin)>) -> Result<Self, SettingsError> {
        let get = |key: &'static str| values.get(key).filter(|(value, _)| !value.is_empty());
        let wrong = |key: &'static str, expected: &'static str| {
            let (value, origin) = values.get(key).cloned().unwrap_or((String::new(), Origin::Default));
            SettingsError::Value { name: key, value, origin, expected }
        };
        let duration = |key| {
            get(key)
                .map(|(text, _)| {
                    parse_duration(text).ok_or_else(|| wrong(key, "a duration such as 30d or 10s"))
                })
                .transpose()
        };
        let size = |key| {
            get(key)
                .map(|(text, _)| parse_size(text).ok_or_else(|| wrong(key, "a size such as 500M or 2G")))
                .transpose()
        };
        let number = |key| {
            get(key).map(|(text, _)| text.parse::<usize>().map_err(|_| wrong(key, "a number"))).transpose()
        };
        let store = match get("store").map(|(text, _)| text.as_str()) {
            None | Some("repository") => StoreKind::Repository,
            Some("private") => StoreKind::Private,
            Some(_) => return Err(wrong("store", "repository or private")),
        };
        let secrets = match get("snapshot.secrets").map(|(text, _)| text.as_str()) {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(wrong("snapshot.secrets", "true or false")),
        };
        Ok(Self {
            store,
            secrets,
            max_file_size: size("snapshot.max_file_size")?.unwrap_or(50 << 20),
            max_untracked: number("snapshot.max_untracked")?.unwrap_or(50_000),
            deadline: duration("snapshot.deadline")?.filter(|deadline| !deadline.is_zero()),
            busy_timeout: duration("busy_timeout")?.unwrap_or(Duration::from_secs(10)),
            retention: Policy {
                keep_last: number("retention.keep")?,
                max_age: duration("retention.max_age")?,
                max_size: size("retention.max_size")?,
            },
            values,
        })
    }

    /// Lists every setting: name, value, where it comes from, and what it means.
    pub fn list(&self) -> impl Iterator<Item = (&'static str, &str, Origin, &'static str)> {
        KNOWN.iter().filter_map(|(key, _, meaning)| {
            let (value, origin) = self.values.get(key)?;
            Some((*key, value.as_str(), *origin, *meaning))
        })
    }
}

fn leave_out(layers: &mut [Layer], origin: Origin, name: &str) {
    let set = layers.iter_mut().filter(|layer| layer.origin == origin);
    set.for_each(|layer| layer.values.retain(|(key, _)| key != name));
}

/// Reads `90s`, `15m`, `12h`, `30d` or `4w`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "ms" => return number.parse().ok().map(Duration::from_millis),
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(seconds).filter(|total| *total < 1 << 40).map(Duration::from_secs)
}

/// Reads `800`, `4K`, `500M`, `2G` or `1T`, in powers of 1024.
pub fn parse_size(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim_end_matches('B').trim_end_matches('i') {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// What can be wrong with settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file is not TOML.
    #[error("the settings in the {origin} are not valid TOML: line {line}: {why}")]
    Toml {
        /// Where.
        origin: Origin,
        /// In which line, counted from 1.
        line: usize,
        /// Why.
        why: String,
    },
    /// There is no such setting.
    #[error("there is no setting `{}` (in the {origin})", name.escape_debug())]
    Unknown {
        /// The name.
        name: String,
        /// Where it was set.
        origin: Origin,
    },
    /// The value is not of the right kind.
    #[error("setting `{name}` is `{}` (in the {origin}), but must be {expected}", value.escape_debug())]
    Value {
        /// The setting.
        name: &'static str,
        /// The value.
        value: String,
        /// Where it was set.
        origin: Origin,
        /// What it must be.
        expected: &'static str,
    },
}

impl SettingsError {
    /// The parser draws the line and points at it, in several lines; the number of the line says as much.
    fn toml(origin: Origin, text: &str, fault: &toml::de::Error) -> Self {
        let start = fault.span().map_or(0, |span| span.start.min(text.len()));
        let line = 1 + text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count();
        let why = fault.message().lines().collect::<Vec<_>>().join(", ");
        Self::Toml { origin, line, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stronger_places_win_whatever_the_order() {
        let user = Layer::from_toml(Origin::User, "busy_timeout = \"1s\"\n[retention]\nkeep = 3\n").unwrap();
        let project =
            Layer::from_toml(Origin::Project, "retention.keep = 5\nretention.max_age = \"30d\"").unwrap();
        let environment = Layer::from_environment([
            ("STAGEPOST_RETENTION_KEEP".into(), "7".into()),
            ("OTHER".into(), "x".into()),
        ]);
        let settings = Settings::from_layers(&[environment, project, user]).unwrap();
        assert_eq!(settings.retention.keep_last, Some(7));
        assert_eq!(settings.retention.max_age, Some(Duration::from_secs(30 * 86_400)));
        assert_eq!(settings.busy_timeout, Duration::from_secs(1));
        let origin =
            settings.list().find(|(key, ..)| *key == "retention.keep").map(|(_, _, origin, _)| origin);
        assert_eq!(origin, Some(Origin::Environment));
    }

    #[test]
    fn an_empty_value_is_the_built_in_one() {
        let file =
            Layer::from_toml(Origin::Project, "snapshot.deadline = \"3s\"\nretention.keep = 2").unwrap();
        let names = ["STAGEPOST_SNAPSHOT_DEADLINE", "STAGEPOST_RETENTION_KEEP", "STAGEPOST_BUSY_TIMEOUT"];
        let empty = Layer::from_environment(names.map(|name| (name.to_owned(), String::new())));
        let settings = Settings::from_layers(&[file, empty]).unwrap();
        assert_eq!(settings.deadline, Some(Duration::from_secs(10)));
        assert_eq!(settings.retention.keep_last, None);
        let listed = settings.list().find(|(key, ..)| *key == "busy_timeout").map(|(_, value, ..)| value);
        assert_eq!(listed, Some("10s"));
    }

    #[test]
    fn unknown_names_and_wrong_values_are_refused() {
        let layer =
            |text| Layer::from_toml(Origin::Project, text).and_then(|layer| Settings::from_layers(&[layer]));
        for wrong in [
            "retension.keep = 3",
            "retention.keep = \"many\"",
            "busy_timeout = \"10\"",
            "retention = [1]",
            "x = ",
        ] {
            assert!(layer(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_and_sizes() {
        assert_eq!(parse_duration("2w"), Some(Duration::from_secs(14 * 86_400)));
        assert_eq!(parse_size("2GiB"), Some(2 << 30));
        for wrong in ["", "d", "1y", "-1d", "1.5h", "99999999999999999999d", "9999999999999999999s"] {
            assert_eq!(parse_duration(wrong), None, "{wrong}");
        }
        assert_eq!((parse_size("1X"), parse_size("99999999999T")), (None, None));
    }
}
