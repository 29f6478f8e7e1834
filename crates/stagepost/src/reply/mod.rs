//! Understanding an answer given in plain words.
//!
//! [`parse`] reads a reply to a [`Question`] and says which [`Action`] it asks for, with details and the reason.
//! It is pure: no I/O, no clock, no randomness, no model; the same words at the same question always mean the same.
//!
//! What always holds:
//! - A consent ([`Action::Confirm`], [`Action::Approve`]) needs a word of approval, and every other word must be
//!   accounted for. Anything else is at most [`Action::Clarify`], with what it could have meant.
//! - A language that is not switched on gives no consent.
//! - Only the actions of [`open_actions`] are returned, and only ids of the question's own options.
//! - A consent holds without what a reply quotes or strikes out (`quoted`), and no sign in it may negate it (`marks`). A mail
//!   signature under it (`signature`) is not a part of it.
//!
//! The way of a reply: folded and cut into words (`normalise`), joined into phrases with their scope of negation
//! (`units`), tested for consent (`consent`), read for its meaning (`meaning`) or for its choice (`choose`), and
//! turned into an action by a table per kind (`decide`). The words themselves are data: one file per language.

mod acts;
mod answer;
mod choose;
mod consent;
mod counter;
mod decide;
mod echo;
mod given;
mod lexicon;
mod marks;
mod meaning;
mod normalise;
mod objects;
mod options;
mod phrases;
mod praise;
mod question;
mod quoted;
mod refused;
mod roles;
mod signature;
mod topics;
mod units;

pub use answer::{Action, Details, Reply};
pub use decide::open_actions;
pub use question::{Choice, Kind, Language, Question, Risk, UnknownKind};

use std::borrow::Cow;
use std::cell::OnceCell;

use echo::Asked;
use lexicon::Lexicon;
use meaning::{Answer, Meaning, Reading};
use normalise::Folded;
use units::{Token, Unit, tokens, units};

/// A longer text is a document, not an answer; only a question for text takes it.
const MOST_BYTES: usize = 64 * 1024;

/// Understands `text` as an answer to `question`.
pub fn parse(text: &str, question: &Question<'_>) -> Reply {
    let question = &question.at_its_risk();
    if text.len() > MOST_BYTES && (question.kind != Kind::Input || question.risk == Risk::High) {
        return Reply::clarify("it is too long to be an answer", Vec::new());
    }
    let folded = Folded::new(text);
    if folded.spans.is_empty() {
        return Reply::clarify("nothing was said", Vec::new());
    }
    if question.risk == Risk::High && question.phrase.is_some_and(|phrase| same_words(phrase, text)) {
        return typed_phrase(question);
    }
    if question.kind == Kind::Input {
        return parse_words(text, &folded, question);
    }
    let reply = match marks::without_ticks(text) {
        Cow::Borrowed(text) => parse_said(text, &folded, question),
        Cow::Owned(text) => parse_said(&text, &Folded::new(&text), question),
    };
    // Who wrote it stands under it: a plain yes above that is one.
    if reply.action == Action::Clarify
        && question.risk != Risk::High
        && let Some(above) = signature::without_signature(text)
    {
        let unsigned = parse(above, question);
        return if unsigned.action.is_consent() { unsigned } else { reply };
    }
    reply
}

/// Understands words as what was said by them: not quoted, not struck out, not negated by a sign.
fn parse_said(text: &str, folded: &Folded, question: &Question<'_>) -> Reply {
    if folded.spans.is_empty() {
        return Reply::clarify("nothing was said", Vec::new());
    }
    let reply = parse_words(text, folded, question);
    let own = quoted::own_words(text);
    let said = own.as_deref().unwrap_or(text);
    let reply = match &own {
        Some(own) => own_reply(reply, own, question),
        None => reply,
    };
    let decides = reply.action.is_consent() || reply.action == Action::Select;
    if decides && marks::may_negate(said) {
        let could_mean = match reply.action {
            Action::Select => reply.details.option_ids,
            action => vec![action.name().to_owned()],
        };
        return Reply::clarify("a sign in it may negate it or take it back", could_mean)
            .with_text(text.trim());
    }
    reply
}

/// An answer must mean the same without what it quotes or strikes out.
fn own_reply(reply: Reply, own: &str, question: &Question<'_>) -> Reply {
    let folded = Folded::new(own);
    if folded.spans.is_empty() {
        return Reply::clarify("it only quotes or strikes out", Vec::new());
    }
    let words = own.trim();
    let own = parse_words(own, &folded, question);
    if own.action == reply.action && own.details.option_ids == reply.details.option_ids {
        return own;
    }
    Reply::clarify("it reads otherwise without what it quotes or strikes out", own.details.could_mean)
        .with_text(words)
}

/// Understands words in every language that is switched on.
fn parse_words(text: &str, folded: &Folded, question: &Question<'_>) -> Reply {
    let asked = OnceCell::new();
    let mut replies = question.languages.iter().map(|language| {
        let lexicon = Lexicon::of(*language);
        read(text, folded, &Asked::new(question, &asked, lexicon), lexicon, question)
    });
    let Some(first) = replies.next() else { return Reply::clarify("no language is switched on", Vec::new()) };
    replies.fold(first, agree)
}

/// Whether the exact words were typed; only the space around and between them may differ.
fn same_words(phrase: &str, text: &str) -> bool {
    !phrase.trim().is_empty() && phrase.split_whitespace().eq(text.split_whitespace())
}

fn typed_phrase(question: &Question<'_>) -> Reply {
    let action = decide::decide(question.kind, Meaning::Consent);
    let because = "the exact words were typed";
    if action.is_consent() { Reply::new(action, 1.0, because) } else { Reply::clarify(because, Vec::new()) }
}

/// Joins the readings of two languages: they must not contradict each other.
fn agree(one: Reply, other: Reply) -> Reply {
    let vague = |reply: &Reply| reply.action == Action::Clarify;
    match (vague(&one), vague(&other)) {
        (true, false) => other,
        (_, true) => one,
        _ if one.action == other.action && one.details.option_ids == other.details.option_ids => one,
        // What one language takes for a consent must be one in every language that understands it.
        _ if one.action.is_consent() => other,
        _ if other.action.is_consent() => one,
        _ => one,
    }
}

/// Reads a reply in one language.
fn read(
    text: &str,
    folded: &Folded,
    asked: &Asked<'_>,
    lexicon: &'static Lexicon,
    question: &Question<'_>,
) -> Reply {
    let tokens = tokens(folded, lexicon);
    let units = units(&tokens, lexicon);
    let answer = Answer { text, tokens: &tokens, units: &units, asked };
    if matches!(question.kind, Kind::Choose | Kind::SelectRoute)
        && let Some(reply) = choose::choose(&answer, question, lexicon)
    {
        return reply.with_text(text.trim());
    }
    let reading = answer.read(lexicon, question.risk);
    if question.kind == Kind::Input {
        return input(text, &units, &reading, question);
    }
    reply(text, &tokens, &units, &reading, question)
}

/// At a question for text the text is the answer, unless the whole of it goes back or cancels.
fn input(text: &str, units: &[Unit<'_>], reading: &Reading<'_>, question: &Question<'_>) -> Reply {
    let short = units.len() <= 3;
    match reading.meaning {
        Meaning::Back | Meaning::Cancel if short => {
            Reply::new(decide::decide(question.kind, reading.meaning), 0.8, decide::because(reading))
        }
        _ if question.risk == Risk::High => decide::needs_phrase(question.phrase),
        _ => Reply::new(Action::Confirm, 0.9, "the text is the answer").with_text(text.trim()),
    }
}

/// Turns a reading into the action that is open for it.
fn reply(
    text: &str,
    tokens: &[Token<'_>],
    units: &[Unit<'_>],
    reading: &Reading<'_>,
    question: &Question<'_>,
) -> Reply {
    let meaning = reading.meaning;
    let action = decide::decide(question.kind, meaning);
    if action.is_consent() && question.risk == Risk::High {
        return decide::needs_phrase(question.phrase).with_text(text.trim());
    }
    if action == Action::Clarify {
        let could_mean = decide::could_mean(question.kind, meaning);
        return Reply::clarify(decide::because(reading), could_mean).with_text(text.trim());
    }
    let mut reply = Reply::new(action, decide::confidence(reading, tokens.len()), decide::because(reading));
    reply.details = details(text, tokens, units, action, meaning);
    reply
}

fn details(
    text: &str,
    tokens: &[Token<'_>],
    units: &[Unit<'_>],
    action: Action,
    meaning: Meaning,
) -> Details {
    let said = match meaning {
        Meaning::Consent => None,
        Meaning::Change(at) => tokens.get(at).map(|token| text[token.source..].trim().to_owned()),
        _ => Some(text.trim().to_owned()),
    };
    let topics = if action == Action::RequestMore { topics::topics(text, tokens, units) } else { Vec::new() };
    let back_to = if action == Action::Back { topics::back_to(text, tokens, units) } else { None };
    Details { text: said, topics, back_to, ..Details::default() }
}
