//! Which option an answer takes: by name, part of a name, description, number, position or letter.
//!
//! Asking back is always allowed, a wrong choice never: what is negated, asked about, hedged or named beside
//! another option is not taken.

use super::answer::{Action, Reply};
use super::lexicon::{Classes, Lexicon};
use super::meaning::Answer;
use super::normalise::Gap;
use super::options::{Hit, Options};
use super::question::{Choice, Question};
use super::units::{Token, Unit};

/// Longer answers are not searched for options.
const MOST_TOKENS: usize = 200;

/// Reads a choice; `None` where the answer names no option and means something else.
pub(super) fn choose(
    answer: &Answer<'_, '_>,
    question: &Question<'_>,
    lexicon: &'static Lexicon,
) -> Option<Reply> {
    if question.options.is_empty() || answer.tokens.len() > MOST_TOKENS {
        return None;
    }
    let options = Options::new(question.options, lexicon, answer.echo());
    let mut hits = options.hits(answer.tokens);
    hits.iter_mut().for_each(|hit| *hit = hit.filter(|hit| hit.whole || !is_set_phrase(answer.units, hit)));
    let chance: Vec<bool> =
        hits.iter().map(|hit| hit.is_some_and(|hit| is_by_chance(answer, &hits, &hit))).collect();
    hits.iter_mut().zip(chance).for_each(|(hit, chance)| *hit = hit.filter(|_| !chance));
    let choice = Choosing { answer, choices: question.options, hits: &hits, multiple: question.multiple };
    choice.read()
}

/// "I'll pass" names no mountain pass: a word within a set phrase belongs to the phrase.
fn is_set_phrase(units: &[Unit<'_>], hit: &Hit) -> bool {
    let refusing = Classes::NO.or(Classes::NONE).or(Classes::DECLINE).or(Classes::LATER).or(Classes::STOP);
    let meaning = refusing.or(Classes::BACK).or(Classes::ANY).or(Classes::HEDGE).or(Classes::CLOSE);
    let within = |unit: &Unit<'_>| unit.first <= hit.tokens.0 && hit.tokens.1 < unit.first + unit.len;
    units.iter().any(|unit| unit.len > 1 && unit.is(meaning) && within(unit))
}

/// A word of a label among other words that nothing accounts for: the talk is of something else.
fn is_by_chance(answer: &Answer<'_, '_>, hits: &[Option<Hit>], hit: &Hit) -> bool {
    let named = |at: usize| hits.iter().flatten().any(|hit| (hit.tokens.0..=hit.tokens.1).contains(&at));
    let foreign = |unit: &&Unit<'_>| {
        let known = !unit.classes.is_blank() || answer.tokens[unit.first].is_known();
        !known && !named(unit.first) && !answer.echo().contains(unit.text)
    };
    let counted = |unit: &&Unit<'_>| unit.is(Classes::NUM.or(Classes::ORDINAL)) && !named(unit.first);
    let around = sentence(answer.units, hit.tokens);
    let short = hit.tokens.0 == hit.tokens.1 && answer.tokens[hit.tokens.0].text.len() < 4;
    hit.slight
        && (short || around.iter().filter(foreign).count() > 1 || around.iter().any(|unit| counted(&unit)))
}

/// The units of the sentence around a name.
fn sentence<'t, 'a>(units: &'t [Unit<'a>], (first, last): (usize, usize)) -> &'t [Unit<'a>] {
    let start =
        units.iter().rposition(|unit| unit.first < first && unit.after >= Gap::Stop).map_or(0, |at| at + 1);
    let end = units.iter().position(|unit| unit.first + unit.len > last && unit.after >= Gap::Stop);
    &units[start..end.map_or(units.len(), |at| at + 1)]
}

/// Words after which a number counts things: "get me 3", "for two".
fn counts(word: &str) -> bool {
    matches!(
        word,
        "for" | "me" | "us" | "just" | "only" | "get" | "of" | "about" | "around" | "from" | "until" | "my"
    )
}

fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic())
}

/// Said where one option is called by the number or letter of another's place.
const TWO_MEANINGS: &str = "it is the id of one option and the place of another";

/// An answer beside the options it may name.
pub(super) struct Choosing<'c, 'a, 'q> {
    pub(super) answer: &'c Answer<'a, 'q>,
    choices: &'c [Choice],
    hits: &'c [Option<Hit>],
    multiple: bool,
}

/// The options that are meant by their places.
#[derive(Debug, Default)]
struct Places {
    taken: Vec<usize>,
    declined: Vec<usize>,
    /// Where the taken ones are said.
    tokens: Vec<usize>,
    /// Why it cannot be told which places are meant.
    unclear: Option<&'static str>,
}

impl Places {
    fn add(&mut self, averse: bool, token: usize, indexes: impl IntoIterator<Item = usize>) {
        let before = self.taken.len();
        if averse { &mut self.declined } else { &mut self.taken }.extend(indexes);
        if self.taken.len() > before {
            self.tokens.push(token);
        }
    }
}

/// Several places said as one.
struct Spanned {
    /// The options; none where there are no such places.
    range: Option<std::ops::Range<usize>>,
    /// How many units say so.
    units: usize,
}

/// How an option that was named stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stance {
    Taken,
    Declined,
    Asked,
}

impl Choosing<'_, '_, '_> {
    fn read(&self) -> Option<Reply> {
        if self.leaves() {
            return None;
        }
        let named = self.leading();
        let stances: Vec<Stance> = named.iter().map(|&index| self.stance(index)).collect();
        let with = |wanted: Stance| {
            let fits = named.iter().zip(&stances).filter(move |(_, stance)| **stance == wanted);
            fits.map(|(index, _)| *index).collect::<Vec<_>>()
        };
        let places = self.places();
        let mut declined: Vec<usize> = (0..self.hits.len()).filter(|&index| self.declines(index)).collect();
        declined.extend(&places.declined);
        let taken = with(Stance::Taken);
        if self.says_all() {
            return Some(self.all_but(&taken, &declined, &places));
        }
        if let Some(why) = places.unclear.or_else(|| self.only_speaks(&taken, &places)) {
            return Some(self.ask(&[taken, places.taken].concat(), why));
        }
        match (taken, Some(places.taken).filter(|taken| !taken.is_empty())) {
            (taken, Some(positions)) if taken.is_empty() || taken == positions => {
                Some(self.take(positions, "its position"))
            }
            (taken, None) if !taken.is_empty() => Some(self.take(taken, "its name")),
            (taken, Some(positions)) => {
                Some(self.ask(&[taken, positions].concat(), "a name and a number disagree"))
            }
            (_, None) => self.nothing_taken(&with(Stance::Asked), &declined),
        }
    }

    /// Whether the answer goes back or cancels, in words that name no option.
    fn leaves(&self) -> bool {
        let leaving =
            |unit: &&Unit<'_>| unit.says(Classes::BACK.or(Classes::STOP)) && !self.is_named(unit.first);
        self.answer.units.iter().any(|unit| leaving(&unit))
            && !self.hits.iter().flatten().any(|hit| hit.whole)
    }

    fn nothing_taken(&self, asked: &[usize], declined: &[usize]) -> Option<Reply> {
        if self.says(Classes::OTHERS.or(Classes::MORE)) || self.says(Classes::NONE) {
            return None;
        }
        if !asked.is_empty() {
            return Some(self.ask(asked, "an option is asked about or named with doubt, not taken"));
        }
        let every: Vec<usize> = (0..self.choices.len()).collect();
        if self.says(Classes::ANY) && declined.is_empty() {
            return Some(self.ask(&every, "no option is preferred"));
        }
        if self.is_plain() && declined.is_empty() && self.says(Classes::NUM.or(Classes::ORDINAL)) {
            return Some(self.ask(&every, "no option has that number"));
        }
        let left: Vec<usize> = every.into_iter().filter(|index| !declined.contains(index)).collect();
        (!declined.is_empty()).then(|| self.ask(&left, "it says only which option is not wanted"))
    }

    /// The options that are named most strongly, with a clear lead over the others.
    fn leading(&self) -> Vec<usize> {
        let score =
            |index: usize| self.hits[index].filter(|_| !self.declines(index)).map_or(0.0, |hit| hit.score);
        let best = (0..self.hits.len()).map(score).fold(0.0, f32::max);
        let close = |index: &usize| best > 0.0 && score(*index) >= best * 0.6;
        let apart =
            |index: &usize| self.multiple && self.hits[*index].is_some_and(|hit| self.is_own(*index, &hit));
        (0..self.hits.len())
            .filter(|index| !self.declines(*index))
            .filter(|index| close(index) || apart(index))
            .collect()
    }

    /// Whether an option is named by words that name no other.
    fn is_own(&self, index: usize, hit: &Hit) -> bool {
        let others = self
            .hits
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != index)
            .filter_map(|(_, hit)| hit.as_ref());
        !others.into_iter().any(|other| other.tokens.0 <= hit.tokens.1 && hit.tokens.0 <= other.tokens.1)
    }

    fn take(&self, taken: Vec<usize>, by: &str) -> Reply {
        if taken.len() > 1 && (!self.multiple || self.says_or()) {
            return self.ask(&taken, "it names more than one option");
        }
        let Some(&first) = taken.first() else { return self.ask(&[], "it leaves no option") };
        let label = |index: &usize| self.choices[*index].label.as_str();
        let labels: Vec<&str> = taken.iter().map(label).collect();
        let sure = if by == "its position" {
            0.95
        } else {
            self.hits[first].map_or(0.6, |hit| if hit.whole { 0.97 } else { 0.85 })
        };
        let are = if labels.len() == 1 { "is" } else { "are" };
        let mut reply =
            Reply::new(Action::Select, sure, format!("`{}` {are} taken by {by}", labels.join("`, `")));
        reply.details.option_ids = taken.iter().map(|&index| self.choices[index].id.clone()).collect();
        reply
    }

    fn ask(&self, could_mean: &[usize], because: &str) -> Reply {
        let mut indexes = could_mean.to_vec();
        indexes.sort_unstable();
        indexes.dedup();
        Reply::clarify(because, indexes.iter().map(|&index| self.choices[index].id.clone()).collect())
    }

    fn all_but(&self, taken: &[usize], declined: &[usize], places: &Places) -> Reply {
        let left: Vec<usize> = (0..self.choices.len()).filter(|index| !declined.contains(index)).collect();
        let leaves_out = |unit: &Unit<'_>| unit.is(Classes::AVERSE) && !self.is_named(unit.first);
        let unsaid = declined.is_empty() && self.answer.units.iter().any(leaves_out);
        let fits = taken.is_empty() || taken.len() == left.len();
        match places.unclear {
            Some(why) => self.ask(&left, why),
            None if unsaid => self.ask(&left, "it does not say which option is left out"),
            None if self.asks_in(0..self.answer.units.len()) => self.ask(&left, "it is put as a question"),
            None if !fits || !places.taken.is_empty() => {
                self.ask(&[taken, places.taken.as_slice()].concat(), "it says all, and names some")
            }
            None => self.take(left, "being among all"),
        }
    }

    /// Whether options are named without being taken: "2?", "2 or?", "let me look at 2".
    fn only_speaks(&self, taken: &[usize], places: &Places) -> Option<&'static str> {
        if taken.is_empty() && places.taken.is_empty() {
            return None;
        }
        let at = |index: &usize| self.hits[*index].map(|hit| hit.tokens.0);
        let said = taken.iter().filter_map(at).chain(places.tokens.iter().copied());
        let mut said = said.collect::<Vec<_>>();
        said.dedup();
        if said.iter().any(|&token| self.is_doubted(token)) {
            Some("an option is asked about, not taken")
        } else if self.says_or() && taken.len().max(places.taken.len()) == 1 {
            Some("it names one option and leaves another open")
        } else if self.is_refused(taken, places) {
            Some("an option is refused or described, not taken")
        } else if self.looks() {
            Some("an option is to be looked at, not taken")
        } else {
            None
        }
    }

    /// Whether what is named is spoken against: "castle no", "option 2 is closed".
    fn is_refused(&self, taken: &[usize], places: &Places) -> bool {
        let named = taken.iter().filter_map(|index| self.hits[*index].map(|hit| hit.tokens));
        let placed = places.tokens.iter().map(|&token| (token, token));
        named.chain(placed).any(|(first, last)| self.is_spoken_against(first, last))
    }

    /// "2?", "the castle?": nothing but the name, and a question mark.
    fn is_doubted(&self, token: usize) -> bool {
        let units = self.answer.units;
        let around = sentence(units, (token, token));
        let bare = Classes::DET.or(Classes::OPTION).or(Classes::NUM).or(Classes::ORDINAL);
        let plain = |unit: &Unit<'_>| {
            unit.is(bare)
                || self.is_named(unit.first)
                || letter(unit.text).is_some()
                || matches!(
                    unit.text,
                    "so" | "and" | "or" | "oh" | "hm" | "hmm" | "well" | "one" | "ok" | "yes" | "right"
                )
        };
        around.last().is_some_and(|last| last.after == Gap::Question) && around.iter().all(plain)
    }

    fn asks_in(&self, units: std::ops::Range<usize>) -> bool {
        self.answer.units[units].iter().any(|unit| unit.after == Gap::Question)
    }

    /// "Or" beside an option that is taken, not within a name or among what is left out.
    fn says_or(&self) -> bool {
        let or = |(at, token): (usize, &Token<'_>)| {
            token.classes().any(Classes::OR) && !self.is_named(at) && !self.is_averse(at)
        };
        self.answer.tokens.iter().enumerate().any(or)
    }

    /// "Let me look at 2"; but not "2 looks good" or "I am looking for 2".
    fn looks(&self) -> bool {
        let units = self.answer.units;
        let wants = |next: &Unit<'_>| {
            next.is(Classes::APPROVAL) || matches!(next.text, "for" | "to" | "forward" | "like")
        };
        let looks = |at: usize| {
            let unit = &units[at];
            let judged = unit.after == Gap::None && units.get(at + 1).is_some_and(wants);
            matches!(unit.text, "look" | "looking") && unit.len == 1 && !judged && !self.is_named(unit.first)
        };
        (0..units.len()).any(looks)
    }

    /// "All of them", "both": with nothing beside it that names or means something else.
    fn says_all(&self) -> bool {
        let both = |unit: &Unit<'_>| unit.text != "both" || self.choices.len() == 2;
        let all = |unit: &&Unit<'_>| unit.says(Classes::ALL) && both(unit) && !self.is_named(unit.first);
        let fits = |unit: &Unit<'_>| {
            !unit.is(Classes::CLOSE.or(Classes::NOT).or(Classes::NO)) || self.is_averse(unit.first)
        };
        self.answer.units.iter().any(|unit| all(&unit))
            && self.answer.units.iter().all(fits)
            && self.is_plain()
    }

    fn says(&self, classes: Classes) -> bool {
        self.answer.units.iter().any(|unit| unit.is(classes) && !self.is_named(unit.first))
    }

    /// Whether a token belongs to an option's name.
    pub(super) fn is_named(&self, token: usize) -> bool {
        self.hits.iter().flatten().any(|hit| (hit.tokens.0..=hit.tokens.1).contains(&token))
    }

    fn unit_of(&self, token: usize) -> &Unit<'_> {
        let at = self.answer.units.partition_point(|unit| unit.first + unit.len <= token);
        &self.answer.units[at]
    }

    fn declines(&self, index: usize) -> bool {
        self.hits[index].is_some_and(|hit| self.stance(index) == Stance::Declined && hit.score > 0.0)
    }

    fn stance(&self, index: usize) -> Stance {
        let Some(hit) = self.hits[index] else { return Stance::Asked };
        let clause = self.clause(hit.tokens);
        let outside = |classes: Classes| {
            clause.clone().any(|at| {
                !self.is_named(at) && self.unit_of(at).first == at && self.unit_of(at).says(classes)
            })
        };
        if self.is_averse(hit.tokens.0) || outside(Classes::BAD) {
            return Stance::Declined;
        }
        let before = clause.start..hit.tokens.0;
        let others = before.clone().any(|at| self.unit_of(at).is(Classes::OTHERS) && !self.is_named(at));
        let asked = self.asks(before) && !self.approved_elsewhere(&clause);
        let doubted = clause.clone().any(|at| !self.is_named(at) && is_doubt(self.answer.tokens[at].text));
        if others || asked || doubted { Stance::Asked } else { Stance::Taken }
    }

    /// Whether a negator or "rather than" reaches a token.
    fn is_averse(&self, token: usize) -> bool {
        let unit = self.unit_of(token);
        let before = self.answer.units.iter().take_while(|other| other.first < unit.first);
        let mut averse = false;
        for other in before {
            averse |= other.is(Classes::AVERSE.or(Classes::NONE)) && !self.is_named(other.first);
            averse |= self.avoids(other);
            averse &= other.after == Gap::None && !matches!(other.text, "but" | "just");
        }
        averse || (unit.negated && !self.negator_is_named(token))
    }

    /// A negator within an option's own name negates nothing.
    fn negator_is_named(&self, token: usize) -> bool {
        let before = self.answer.units.iter().take_while(|unit| unit.first < token);
        before
            .filter(|unit| unit.is(Classes::NOT.or(Classes::NO)))
            .last()
            .is_some_and(|unit| self.is_named(unit.first))
    }

    /// The tokens of the clause around a name.
    fn clause(&self, (first, last): (usize, usize)) -> std::ops::Range<usize> {
        let tokens = self.answer.tokens;
        let start = tokens[..first].iter().rposition(|token| token.after != Gap::None).map_or(0, |at| at + 1);
        let end = tokens[last..].iter().position(|token| token.after != Gap::None);
        start..end.map_or(tokens.len(), |at| last + at + 1)
    }

    /// Whether the words before a name ask about it ("is …", "how long is …"), rather than for it ("how about …").
    fn asks(&self, before: std::ops::Range<usize>) -> bool {
        let words = &self.answer.tokens[before];
        let is =
            |token: &Token<'_>, class: Classes| token.entry.is_some_and(|entry| entry.classes.any(class));
        let proposes = |pair: &[Token<'_>]| matches!(pair[0].text, "how" | "what") && pair[1].text == "about";
        let opening =
            |token: &&Token<'_>| !matches!(token.text, "and" | "so" | "ok" | "okay" | "oh" | "well");
        let inverted = match words.iter().find(opening).map_or("", |token| token.text) {
            "is" | "are" | "does" | "do" | "did" | "was" | "has" => true,
            // "Could we take …" asks for it, "can the castle …" asks about it.
            "can" | "could" | "will" | "would" => {
                words.len() > 1 && !words.iter().any(|token| is(token, Classes::WHO))
            }
            _ => false,
        };
        let asking = inverted || words.iter().any(|token| is(token, Classes::ASK));
        asking && !words.windows(2).any(proposes)
    }

    fn approved_elsewhere(&self, clause: &std::ops::Range<usize>) -> bool {
        let praise = Classes::GOOD.or(Classes::GO);
        let approves = |unit: &&Unit<'_>| unit.says(praise) && !clause.contains(&unit.first);
        self.answer.units.iter().any(|unit| approves(&unit) && !self.is_named(unit.first))
    }

    /// The options taken or left out by number, ordinal or letter.
    fn places(&self) -> Places {
        let plain = self.is_plain();
        let mut places = Places::default();
        if self.asks(0..self.answer.tokens.len().min(1)) {
            return places;
        }
        let mut at = 0;
        while at < self.answer.units.len() {
            at += match self.span_at(at).filter(|_| plain) {
                Some(span) => self.add_span(&mut places, at, &span),
                None => self.add_place(&mut places, at, plain),
            };
        }
        for found in [&mut places.taken, &mut places.declined] {
            found.sort_unstable();
            found.dedup();
        }
        places
    }

    /// Adds what one unit names, and returns how many units that were.
    fn add_place(&self, places: &mut Places, at: usize, plain: bool) -> usize {
        let unit = &self.answer.units[at];
        let averse = self.is_averse(unit.first);
        let numbered = self.is_number(at, unit, plain);
        let lettered = if numbered { None } else { self.letter(at, unit, plain, averse) };
        // A number or a letter may be an option's id as well as its place: where they differ, both are asked about.
        let is_code = |choice: &Choice| choice.id.eq_ignore_ascii_case(unit.text);
        let coded = self.choices.iter().position(is_code).filter(|_| numbered || lettered.is_some());
        let index = match numbered {
            true => unit.value.and_then(|value| usize::try_from(value - 1).ok()),
            false => self.ordinal(at, unit, plain).or(lettered),
        };
        let index = index.filter(|index| *index < self.choices.len());
        if self.counts_all(at) {
            return 1;
        }
        let counted = averse && unit.is(Classes::NUM) && self.is_count(at);
        let missing = numbered && coded.is_none() && index.is_none() && unit.value.is_some();
        let lost = averse && plain && unit.is(Classes::NUM.or(Classes::ORDINAL)) && index.is_none();
        if counted {
            places.unclear = Some("it may say how many, not which");
        } else if (lost || missing) && !self.is_named(unit.first) {
            places.unclear = Some("no option has one of the numbers");
        } else if coded.is_some_and(|coded| index.is_some_and(|index| index != coded)) {
            places.unclear = Some(TWO_MEANINGS);
        }
        places.add(averse, unit.first, coded.into_iter().chain(index.filter(|_| !counted)));
        1
    }

    /// Whether the number of a place is the id of an option that stands elsewhere.
    fn is_code_of_another(&self, place: usize) -> bool {
        let number = (place + 1).to_string();
        self.choices.iter().position(|choice| choice.id == number).is_some_and(|coded| coded != place)
    }

    /// "All three" only counts them.
    fn counts_all(&self, at: usize) -> bool {
        let units = self.answer.units;
        let all = |before: &Unit<'_>| before.is(Classes::ALL) && !before.is(Classes::AVERSE);
        let after_all = at.checked_sub(1).is_some_and(|before| all(&units[before]));
        let count = usize::try_from(units[at].value.unwrap_or_default()).ok();
        units[at].is(Classes::NUM) && after_all && count == Some(self.choices.len())
    }

    /// "All but one", "all except two" may say how many.
    fn is_count(&self, at: usize) -> bool {
        let unit = &self.answer.units[at];
        let after_but = at.checked_sub(1).is_some_and(|before| self.ends_with_but(before));
        !self.is_labelled(at) && (is_word(unit.text) || (after_but && unit.value == Some(1)))
    }

    fn ends_with_but(&self, at: usize) -> bool {
        let unit = &self.answer.units[at];
        self.answer.tokens[unit.first + unit.len - 1].text == "but"
    }

    fn add_span(&self, places: &mut Places, at: usize, span: &Spanned) -> usize {
        let averse = self.is_averse(self.answer.units[at].first);
        match &span.range {
            Some(range) if range.clone().any(|place| self.is_code_of_another(place)) => {
                places.unclear = Some(TWO_MEANINGS);
            }
            Some(range) => places.add(averse, self.answer.units[at].first, range.clone()),
            None => places.unclear = Some("no options are numbered so"),
        }
        span.units
    }

    /// "1-3", "2 to 4", "the first two", "last three": several places said as one.
    fn span_at(&self, at: usize) -> Option<Spanned> {
        let units = self.answer.units;
        let (first, next) = (units.get(at)?, units.get(at + 1)?);
        let count = i32::try_from(self.choices.len()).ok()?;
        let place = |unit: &Unit<'_>| match unit.value {
            Some(-1) => Some(count),
            value => value.filter(|value| *value > 0),
        };
        let is_place =
            |unit: &Unit<'_>| unit.is(Classes::NUM.or(Classes::ORDINAL)) && !self.is_named(unit.first);
        if !is_place(first) {
            return None;
        }
        let joined = first.after == Gap::None;
        let range = |from: i32, to: i32| {
            let whole = from >= 1 && from < to && to <= count;
            whole.then(|| from as usize - 1..to as usize)
        };
        let to = |last: &Unit<'_>, units| {
            let range = place(first).zip(place(last)).and_then(|(from, to)| range(from, to));
            Some(Spanned { range, units })
        };
        if is_place(next) && self.is_dashed(first, next) {
            return to(next, 2);
        }
        if joined && is_place(next) && first.is(Classes::ORDINAL) && next.is(Classes::NUM) {
            let number = next.value.filter(|number| (1..=count).contains(number));
            let range = number.and_then(|number| match (first.value, number) {
                (Some(1), number) => Some(0..number as usize),
                (Some(-1), number) => Some((count - number) as usize..count as usize),
                _ => None,
            });
            return Some(Spanned { range, units: 2 });
        }
        // "The two first" may be the first two, or the second and the first.
        if joined && is_place(next) && first.is(Classes::NUM) && next.is(Classes::ORDINAL) {
            return Some(Spanned { range: None, units: 2 });
        }
        let last =
            units[at + 2..].iter().position(|unit| unit.text != "the").map(|skipped| at + 2 + skipped)?;
        // "Second to last" is the one before the last.
        let before_last =
            units[last].value == Some(-1) && first.is(Classes::ORDINAL) && first.value != Some(1);
        let spans = joined && next.after == Gap::None && is_to(next.text) && is_place(&units[last]);
        if spans && before_last {
            return Some(Spanned { range: None, units: last - at + 1 });
        }
        if spans { to(&units[last], last - at + 1) } else { None }
    }

    /// Whether only a dash or dots stand between two words.
    fn is_dashed(&self, first: &Unit<'_>, next: &Unit<'_>) -> bool {
        let from = self.answer.tokens[first.first].source + first.text.len();
        let between = self.answer.text.get(from..self.answer.tokens[next.first].source);
        between.is_some_and(|between| {
            let between = between.trim();
            !between.is_empty()
                && between.chars().all(|sign| matches!(sign, '-' | '–' | '—' | '.' | '…'))
                && between != "."
        })
    }

    /// "Option", "number", "route" before a unit.
    fn is_labelled(&self, at: usize) -> bool {
        at > 0
            && self.answer.units[at - 1].is(Classes::OPTION)
            && self.answer.units[at - 1].after <= Gap::Stop
    }

    fn is_number(&self, at: usize, unit: &Unit<'_>, plain: bool) -> bool {
        let before = at.checked_sub(1).map(|before| &self.answer.units[before]);
        let one = unit.text == "one" && before.is_some_and(|before| !before.is(Classes::YES));
        let counted = one || before.is_some_and(|before| counts(before.text));
        unit.is(Classes::NUM) && (self.is_labelled(at) || (plain && !counted && !self.is_named(unit.first)))
    }

    fn ordinal(&self, at: usize, unit: &Unit<'_>, plain: bool) -> Option<usize> {
        let units = self.answer.units;
        let next = units.get(at + 1).filter(|_| unit.after == Gap::None);
        let follows = |words: &[&str]| next.is_some_and(|next| words.contains(&next.text));
        let pointed = follows(&["one"]) || next.is_some_and(|next| next.is(Classes::OPTION));
        let judged = at > 0
            && units[at - 1].text == "the"
            && follows(&["is", "sounds", "looks"])
            && is_word(unit.text);
        let dated = follows(&["of"]) || units[..at].iter().rev().take(2).any(|unit| unit.text == "on");
        let fits =
            unit.is(Classes::ORDINAL) && !dated && (plain || pointed || judged || self.is_labelled(at));
        let count = self.choices.len();
        match unit.value.filter(|_| fits)? {
            -1 => count.checked_sub(1),
            0 => (count % 2 == 1).then_some(count / 2),
            place => usize::try_from(place - 1).ok(),
        }
    }

    fn letter(&self, at: usize, unit: &Unit<'_>, plain: bool, averse: bool) -> Option<usize> {
        let alone = |other: &Unit<'_>| other.first == unit.first || is_courteous(other);
        let ends = unit.after != Gap::None || at + 1 == self.answer.units.len();
        let left_out = averse && ends && !self.is_named(unit.first);
        let fits = self.is_labelled(at) || (plain && (left_out || self.answer.units.iter().all(alone)));
        letter(unit.text).filter(|_| fits)
    }

    /// Whether every word belongs to choosing: nothing else is talked about, so a number is a position.
    fn is_plain(&self) -> bool {
        let choosing = Classes::APPROVAL
            .or(Classes::FILL)
            .or(Classes::WANT)
            .or(Classes::WHO)
            .or(Classes::AUX)
            .or(Classes::OPTION)
            .or(Classes::NUM)
            .or(Classes::ORDINAL)
            .or(Classes::ALL)
            .or(Classes::GREET)
            .or(Classes::AVERSE)
            .or(Classes::DET);
        let picks = |unit: &Unit<'_>| {
            matches!(unit.text, "choose" | "pick" | "select" | "prefer" | "think" | "or" | "guess" | "opt")
        };
        let fits = |unit: &Unit<'_>| {
            unit.is(choosing) || picks(unit) || self.is_named(unit.first) || letter(unit.text).is_some()
        };
        let units = self.answer.units;
        let counts = |at: usize| units.get(at).is_some_and(|unit| unit.is(Classes::NUM));
        let spans = |at: usize| is_to(units[at].text) && at > 0 && counts(at - 1) && counts(at + 1);
        (0..units.len()).all(|at| fits(&units[at]) || spans(at))
    }
}

fn is_courteous(unit: &Unit<'_>) -> bool {
    super::units::is_courtesy(unit.text) || unit.is(Classes::OPTION)
}

fn is_doubt(word: &str) -> bool {
    matches!(word, "maybe" | "perhaps" | "possibly" | "unsure" | "if" | "unless" | "depends" | "similar")
}

/// Words between the two ends of a range.
fn is_to(word: &str) -> bool {
    matches!(word, "to" | "through" | "thru" | "bis" | "a" | "hasta")
}

fn letter(word: &str) -> Option<usize> {
    let [byte @ b'a'..=b'z'] = word.as_bytes() else { return None };
    Some(usize::from(byte - b'a'))
}
