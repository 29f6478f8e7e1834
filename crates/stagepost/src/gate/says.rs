//! What to say for an action, in the language in which answers count.

use crate::reply::{Action, Kind, Language};

/// What to say for an action; `…` stands for words of one's own. Every one is read back as that action.
pub(super) fn say(action: Action, kind: Kind, languages: &[Language]) -> Option<&'static str> {
    let english = languages.contains(&Language::English);
    let language = languages.first().copied().filter(|_| !english).unwrap_or(Language::English);
    match language {
        Language::English => english_words(action, kind),
        Language::Spanish => spanish(action, kind),
        Language::French => french(action, kind),
        Language::German => german(action, kind),
    }
}

fn english_words(action: Action, kind: Kind) -> Option<&'static str> {
    Some(match action {
        Action::Confirm | Action::Approve => "yes",
        Action::Reject if kind == Kind::Choose => "none of them",
        Action::Reject => "no",
        Action::Refine => "change the …",
        Action::RequestMore => "tell me more about …",
        Action::Clarify => "actually, …",
        Action::Back => "go back",
        Action::Cancel => "cancel",
        _ => return None,
    })
}

fn spanish(action: Action, kind: Kind) -> Option<&'static str> {
    Some(match action {
        Action::Confirm | Action::Approve => "sí",
        Action::Reject if kind == Kind::Choose => "ninguno",
        Action::Reject => "no",
        Action::Refine => "cambia …",
        Action::RequestMore => "más sobre …",
        Action::Clarify => "en realidad, …",
        Action::Back => "volver",
        Action::Cancel => "cancelar",
        _ => return None,
    })
}

fn french(action: Action, kind: Kind) -> Option<&'static str> {
    Some(match action {
        Action::Confirm | Action::Approve => "oui",
        Action::Reject if kind == Kind::Choose => "aucun",
        Action::Reject => "non",
        Action::Refine => "change …",
        Action::RequestMore => "explique …",
        Action::Clarify => "en fait, …",
        Action::Back => "retour",
        Action::Cancel => "annuler",
        _ => return None,
    })
}

fn german(action: Action, kind: Kind) -> Option<&'static str> {
    Some(match action {
        Action::Confirm | Action::Approve => "ja",
        Action::Reject if kind == Kind::Choose => "keine",
        Action::Reject => "nein",
        Action::Refine => "ändere …",
        Action::RequestMore => "mehr über …",
        Action::Clarify => "eigentlich …",
        Action::Back => "zurück",
        Action::Cancel => "abbrechen",
        _ => return None,
    })
}
