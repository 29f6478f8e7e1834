//! Which action a meaning has at each kind of question: a table, and nothing else decides.

use super::answer::{Action, Reply};
use super::consent::Obstacle;
use super::meaning::{Meaning, Reading};
use super::question::Kind;

/// Returns the actions that are open at a kind of question.
pub fn open_actions(kind: Kind) -> &'static [Action] {
    use Action::{Approve, Back, Cancel, Clarify, Confirm, Refine, Reject, RequestMore, Select};
    match kind {
        Kind::Confirm => &[Confirm, Reject, Refine, RequestMore, Clarify, Back, Cancel],
        Kind::Choose => &[Select, Reject, RequestMore, Clarify, Back, Cancel],
        Kind::Approve => &[Approve, Reject, Refine, RequestMore, Clarify, Back, Cancel],
        Kind::Input => &[Confirm, Clarify, Back, Cancel],
        Kind::ConfirmIntent => &[Confirm, Clarify, Back, Cancel],
        Kind::PresentFindings => &[Confirm, RequestMore, Clarify, Back, Cancel],
        Kind::SelectRoute => &[Select, RequestMore, Clarify, Back, Cancel],
        Kind::RefineRoute => &[Confirm, Refine, Clarify, Back, Cancel],
        Kind::PresentFinal => &[Approve, Refine, Clarify, Back, Cancel],
    }
}

/// Returns the action of a meaning at a kind of question, always one of the open ones.
pub(super) fn decide(kind: Kind, meaning: Meaning) -> Action {
    let wishes = wished(kind, meaning);
    let open = open_actions(kind);
    wishes.iter().copied().find(|action| open.contains(action)).unwrap_or(Action::Clarify)
}

/// The actions that fit a meaning, best first.
fn wished(kind: Kind, meaning: Meaning) -> &'static [Action] {
    use Action::{Approve, Back, Cancel, Confirm, Refine, Reject, RequestMore};
    match meaning {
        Meaning::Consent => &[Confirm, Approve],
        // Where changes are asked for, a plain no and words of one's own are one.
        Meaning::Refusal | Meaning::Other if kind == Kind::RefineRoute => &[Refine],
        Meaning::Refusal => &[Reject],
        Meaning::Cancel => &[Cancel],
        Meaning::Back => &[Back],
        Meaning::Change(_) => &[Refine],
        Meaning::More => &[RequestMore],
        Meaning::Question => &[RequestMore],
        Meaning::Qualified | Meaning::Either | Meaning::Hedge | Meaning::Empty | Meaning::Other => &[],
    }
}

/// Says why an answer was read so.
pub(super) fn because(reading: &Reading<'_>) -> String {
    let word = reading.word;
    match reading.meaning {
        Meaning::Consent => {
            format!("`{word}` agrees, and every other word decides nothing or repeats the question")
        }
        Meaning::Refusal => format!("`{word}` refuses or puts off"),
        Meaning::Cancel => format!("`{word}` ends it"),
        Meaning::Back => format!("`{word}` goes back"),
        Meaning::Change(_) => format!("`{word}` asks for something different"),
        Meaning::More => format!("`{word}` asks for more or other"),
        Meaning::Question => "it asks something back".to_owned(),
        Meaning::Qualified => format!("`{word}` agrees, but {}", obstacle(reading)),
        Meaning::Either => format!("`{word}` can mean either: the question was put in the negative"),
        Meaning::Hedge => format!("`{word}` is not sure"),
        Meaning::Empty => "it decides nothing".to_owned(),
        Meaning::Other => "it does not answer the question".to_owned(),
    }
}

fn obstacle(reading: &Reading<'_>) -> String {
    match reading.obstacle {
        Some(Obstacle::Reserve(word, class)) => format!("`{word}` ({class}) holds back"),
        Some(Obstacle::Unknown(word)) => format!("`{word}` says something else"),
        Some(Obstacle::Partial(word)) => format!("only to `{word}`"),
        Some(Obstacle::NotGiven(word)) => format!("`{word}` speaks of a yes that is not given here and now"),
        Some(Obstacle::Open(why)) => why.to_owned(),
        Some(Obstacle::Question) => "it is put as a question".to_owned(),
        Some(Obstacle::Long) => "it says much more".to_owned(),
        Some(Obstacle::NoApproval) | None => "not to what was asked".to_owned(),
    }
}

/// What an answer that has to be asked again could have meant.
pub(super) fn could_mean(kind: Kind, meaning: Meaning) -> Vec<String> {
    use Action::{Approve, Confirm, Refine, Reject, RequestMore, Select};
    let likely: &[Action] = match meaning {
        Meaning::Consent | Meaning::Qualified => &[Confirm, Approve, Refine],
        Meaning::Refusal => &[Reject, Refine, Action::Cancel, Action::Back],
        Meaning::Hedge | Meaning::Either => &[Confirm, Approve, Select, Reject],
        Meaning::Change(_) | Meaning::Other => &[Refine, Select],
        Meaning::More | Meaning::Question => &[RequestMore, Refine, Action::Back],
        Meaning::Cancel | Meaning::Back | Meaning::Empty => &[],
    };
    let open = open_actions(kind);
    likely.iter().filter(|action| open.contains(action)).map(|action| action.name().to_owned()).collect()
}

/// How plainly something was said.
pub(super) fn confidence(reading: &Reading<'_>, words: usize) -> f32 {
    let plain: f32 = match reading.meaning {
        Meaning::Consent | Meaning::Cancel | Meaning::Back => 0.95,
        Meaning::Refusal => 0.9,
        Meaning::Change(_) | Meaning::More => 0.8,
        Meaning::Question => 0.7,
        Meaning::Qualified | Meaning::Either | Meaning::Hedge | Meaning::Empty | Meaning::Other => 0.3,
    };
    // A long answer may hold more than what was understood.
    if words > 12 { plain * 0.8 } else { plain }
}

/// Refuses a consent where the exact words are needed.
pub(super) fn needs_phrase(phrase: Option<&str>) -> Reply {
    let because = match phrase {
        Some(phrase) => format!("only the exact words `{phrase}` consent here"),
        None => "this question names no words that consent".to_owned(),
    };
    Reply::clarify(because, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEANINGS: [Meaning; 12] = [
        Meaning::Consent,
        Meaning::Refusal,
        Meaning::Cancel,
        Meaning::Back,
        Meaning::Change(0),
        Meaning::More,
        Meaning::Question,
        Meaning::Qualified,
        Meaning::Either,
        Meaning::Hedge,
        Meaning::Empty,
        Meaning::Other,
    ];

    #[test]
    fn every_meaning_has_an_open_action_and_only_consent_consents() {
        for kind in Kind::all() {
            for meaning in MEANINGS {
                let action = decide(kind, meaning);
                assert!(open_actions(kind).contains(&action), "{kind} {meaning:?}");
                assert!(!action.is_consent() || meaning == Meaning::Consent, "{kind} {meaning:?}");
            }
        }
    }

    #[test]
    fn going_back_and_cancelling_are_open_everywhere() {
        for kind in Kind::all() {
            assert_eq!(decide(kind, Meaning::Back), Action::Back);
            assert_eq!(decide(kind, Meaning::Cancel), Action::Cancel);
        }
    }
}
