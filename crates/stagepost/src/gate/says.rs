//! What to say for an action, in the language in which answers count.

use crate::reply::{Action, Kind, Language};

/// What to say in one language.
struct Words {
    yes: &'static str,
    none: &'static str,
    no: &'static str,
    change: &'static str,
    more: &'static str,
    correct: &'static str,
    back: &'static str,
    cancel: &'static str,
}

const ENGLISH: Words = Words {
    yes: "yes",
    none: "none of them",
    no: "no",
    change: "change the …",
    more: "tell me more about …",
    correct: "actually, …",
    back: "go back",
    cancel: "cancel",
};

const SPANISH: Words = Words {
    yes: "sí",
    none: "ninguno",
    no: "no",
    change: "cambia …",
    more: "más sobre …",
    correct: "en realidad, …",
    back: "volver",
    cancel: "cancelar",
};

const FRENCH: Words = Words {
    yes: "oui",
    none: "aucun",
    no: "non",
    change: "change …",
    more: "explique …",
    correct: "en fait, …",
    back: "retour",
    cancel: "annuler",
};

const GERMAN: Words = Words {
    yes: "ja",
    none: "keine",
    no: "nein",
    change: "ändere …",
    more: "mehr über …",
    correct: "eigentlich …",
    back: "zurück",
    cancel: "abbrechen",
};

/// What to say for an action; `…` stands for words of one's own. Every one is read back as that action.
pub(super) fn say(action: Action, kind: Kind, languages: &[Language]) -> Option<&'static str> {
    let english = languages.contains(&Language::English);
    let words = match languages.first().filter(|_| !english) {
        None | Some(Language::English) => ENGLISH,
        Some(Language::Spanish) => SPANISH,
        Some(Language::French) => FRENCH,
        Some(Language::German) => GERMAN,
    };
    Some(match action {
        Action::Confirm | Action::Approve => words.yes,
        Action::Reject if kind == Kind::Choose => words.none,
        Action::Reject => words.no,
        Action::Refine => words.change,
        Action::RequestMore => words.more,
        Action::Clarify => words.correct,
        Action::Back => words.back,
        Action::Cancel => words.cancel,
        _ => return None,
    })
}
