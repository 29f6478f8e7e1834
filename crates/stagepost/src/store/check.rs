//! What no store takes in: records that could not be read back, prunings that do not say what they do, and tokens.

use serde_json::Value;

use super::{Error, NewEntry};
use crate::model::{CheckpointId, Event, Topic, redact_members, redact_text, redact_value};

/// JSON in records nests at most so deep: readers give up at 128, and a record may be shown inside others.
const DEEPEST: usize = 100;

/// Refuses a record that could not be read back.
pub(super) fn check_record(entry: &NewEntry) -> Result<(), Error> {
    let sound = match entry {
        NewEntry::Run(run) => run.metadata.values().all(|value| nests_at_most(value, DEEPEST)),
        NewEntry::Checkpoint(draft) => {
            draft.content.metadata.values().all(|value| nests_at_most(value, DEEPEST))
        }
        NewEntry::Event(event) => nests_at_most(&event.body, DEEPEST),
    };
    let what = || format!("its JSON is nested more than {DEEPEST} deep");
    if sound { Ok(()) } else { Err(Error::Refused { what: what() }) }
}

/// Takes tokens out of what a record says in words. What other parts of the program act on later is left as it is: a path
/// that looks like a token is still a path.
pub(super) fn redact_record(entry: &mut NewEntry) {
    let (text, metadata) = match entry {
        NewEntry::Run(run) => (&mut run.description, &mut run.metadata),
        NewEntry::Checkpoint(draft) => (&mut draft.content.description, &mut draft.content.metadata),
        NewEntry::Event(event) => {
            redact_event(event);
            return;
        }
    };
    redact_text(text);
    redact_members(metadata);
}

/// Where the events of a topic hold names and ids. Others look for what has that name: without it, a gate that waits would
/// be found no more.
fn names_in(topic: Topic) -> &'static [&'static str] {
    match topic {
        Topic::Gate => &["/waiting", "/of", "/back_to"],
        Topic::Run => &[
            "/gate",
            "/step",
            "/steps",
            "/led_to",
            "/definition/name",
            "/definition/path",
            "/rollback/id",
            "/rollback/checkpoint",
            "/rollback/commit",
            "/rollback/head_before",
            "/rollback/head_after",
        ],
        _ => &[],
    }
}

/// Takes tokens out of what an event says in words. The names in it are put aside meanwhile.
fn redact_event(event: &mut Event) {
    if !matches!(event.topic, Topic::Note | Topic::Gate | Topic::Run) {
        return;
    }
    let names = names_in(event.topic);
    let aside: Vec<Option<Value>> =
        names.iter().map(|place| event.body.pointer_mut(place).map(Value::take)).collect();
    redact_value(&mut event.body);
    for (place, name) in names.iter().zip(aside) {
        if let (Some(place), Some(name)) = (event.body.pointer_mut(place), name) {
            *place = name;
        }
    }
}

/// Says whether JSON nests at most so deep.
pub(crate) fn nests_at_most(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(items) => depth > 0 && items.iter().all(|item| nests_at_most(item, depth - 1)),
        Value::Object(members) => {
            depth > 0 && members.values().all(|member| nests_at_most(member, depth - 1))
        }
        _ => true,
    }
}

/// Reads from the event of a pruning which checkpoints were pruned: `{"checkpoints": [id, …]}`.
pub(super) fn pruned_by(event: &Event) -> impl Iterator<Item = CheckpointId> {
    let listed = event.body.get("checkpoints").filter(|_| event.topic == Topic::Prune);
    let ids = listed.and_then(Value::as_array).into_iter().flatten();
    ids.filter_map(|id| id.as_str()?.parse().ok())
}

/// Refuses a pruning whose event does not list what is pruned: the stubs would look like damage.
pub(super) fn check_prune(ids: &[CheckpointId], event: &Event) -> Result<(), Error> {
    let listed: std::collections::HashSet<_> = pruned_by(event).collect();
    match ids.iter().find(|id| !listed.contains(id)) {
        None => Ok(()),
        Some(id) => Err(Error::Refused { what: format!("the event of the pruning does not list {id}") }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::Timestamp;

    #[test]
    fn names_in_events_stay_and_words_lose_their_tokens() {
        let token = ["ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat();
        let redacted = |topic, body: Value| {
            let at = Timestamp::from_micros(0).unwrap();
            let mut entry = NewEntry::Event(Event { topic, key: token.clone(), at, body });
            redact_record(&mut entry);
            let NewEntry::Event(event) = entry else { unreachable!() };
            assert_eq!(event.key, token);
            event.body
        };
        assert_eq!(redacted(Topic::Gate, json!({"waiting": [token, "g"]})), json!({"waiting": [token, "g"]}));
        let asked = json!({"of": {"run": token}, "by": token, "prompt": {"data": {"of": token}}});
        let kept = json!({"of": {"run": token}, "by": "***", "prompt": {"data": {"of": "***"}}});
        assert_eq!(redacted(Topic::Gate, asked), kept);
        let waiting = json!({"type": "waiting", "step": token, "gate": token, "why": token});
        let kept = json!({"type": "waiting", "step": token, "gate": token, "why": "***"});
        assert_eq!(redacted(Topic::Run, waiting), kept);
        let voided =
            json!({"type": "voided", "steps": [token], "definition": {"name": token, "text": token}});
        let kept = json!({"type": "voided", "steps": [token], "definition": {"name": token, "text": "***"}});
        assert_eq!(redacted(Topic::Run, voided), kept);
        assert_eq!(redacted(Topic::Note, json!({"text": token})), json!({"text": "***"}));
    }
}
