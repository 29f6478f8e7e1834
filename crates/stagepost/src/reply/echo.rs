//! What the question said: an answer that only repeats it adds nothing.

use std::cell::OnceCell;

use super::counter::{Counter, Found, is_asked};
use super::lexicon::{Classes, Lexicon};
use super::normalise::{Folded, Gap};
use super::objects::is_pointer;
use super::question::Question;
use super::units::{Token, is_courtesy, tokens};

/// A question that is read only when an answer needs it: most refusals are plain without.
pub(super) struct Asked<'q> {
    question: &'q Question<'q>,
    folded: &'q OnceCell<Folded>,
    lexicon: &'static Lexicon,
    echo: OnceCell<Echo<'q>>,
}

impl<'q> Asked<'q> {
    /// Takes a question in one language; `folded` is shared by all of them.
    pub(super) fn new(
        question: &'q Question<'q>,
        folded: &'q OnceCell<Folded>,
        lexicon: &'static Lexicon,
    ) -> Self {
        Self { question, folded, lexicon, echo: OnceCell::new() }
    }

    /// Reads what the question said.
    pub(super) fn echo(&self) -> &Echo<'q> {
        self.echo.get_or_init(|| {
            let folded = self.folded.get_or_init(|| Echo::folded(self.question));
            Echo::new(folded, self.is_known(), self.lexicon)
        })
    }

    /// Whether the words that were asked are known. The kinds of a journey ask something even where their text is not.
    pub(super) fn is_known(&self) -> bool {
        self.question.text.is_some() || !self.question.kind.own_words().is_empty()
    }
}

/// The words of a question, ready to be compared with those of an answer.
#[derive(Debug, Default)]
pub(super) struct Echo<'q> {
    stems: Vec<&'q str>,
    /// Every word as it stands, for comparing numbers with what is beside them.
    words: Vec<&'q str>,
    /// The words for what the act is done to, and those for the same.
    things: Vec<(&'q str, u64)>,
    /// Acts that the language does not know, told by where they stand: "shall I archive it?".
    acts: Vec<&'q str>,
    /// Acts that it does know.
    verbs: Vec<&'q str>,
    /// Where words are joined to one name, such as a path: from and to, in `words`.
    joined: Vec<(usize, usize)>,
    /// How many numbers it has.
    pub(super) numbers: usize,
    same: u64,
    /// Whether the words that were asked are known.
    pub(super) asked: bool,
    /// Whether it offers further help ("anything else?"): praise and thanks then mean no.
    pub(super) closing: bool,
    /// Whether it names an act: then a different one in the answer is something else.
    pub(super) names_act: bool,
    /// Whether it names things, known or unknown.
    pub(super) names_things: bool,
    /// Whether it names things by common words that are not known: they may be anything.
    names_unknown: bool,
    /// Whether it only points at what it is about ("reserve this?").
    pub(super) only_points: bool,
    /// Whether it offers to do something: "it's okay" may then turn it down.
    pub(super) offers: bool,
    /// Whether it asks for words of one's own ("which city?"): neither a yes nor repeating it answers that.
    pub(super) wants_words: bool,
    /// Whether it asks which of two: a yes chooses neither.
    pub(super) either_or: bool,
    /// Whether it asks in the negative ("don't you want …?"): a bare yes or no can then mean either.
    pub(super) negative: bool,
    /// Whether it speaks of several things as "them".
    pub(super) says_them: bool,
    /// Whether it suggests something ("how about …?"): to like it is then to agree.
    pub(super) suggests: bool,
    /// Whether it asks for faults ("any objections?"): to have none is then a no.
    pub(super) faults: bool,
    /// Whether it asks several things: praise of "that" leaves open which of them.
    pub(super) several: bool,
    /// Whether it leaves something out ("without subtitles"): repeating that thing may mean the opposite.
    pub(super) leaves_out: bool,
    /// Whether it asks about all of something: then saying "all" does not widen it.
    pub(super) says_all: bool,
    /// Whether it names alternatives: repeating one of them chooses it, which is more than a yes.
    pub(super) alternatives: bool,
    /// What it asks to stop, refuse, undo or destroy, if that is what it asks.
    pub(super) counter: Option<Box<Counter<'q>>>,
    /// Whether it asks to make something different: "it's good" may then say that it need not be.
    pub(super) alters: bool,
}

/// An answer to a longer question repeats nothing: too many words would be accounted for.
const MOST_WORDS: usize = 400;

impl<'q> Echo<'q> {
    /// Reads the words of a question.
    pub(super) fn new(folded: &'q Folded, asked: bool, lexicon: &'static Lexicon) -> Self {
        let tokens = tokens(folded, lexicon);
        let mut echo = Self { asked, ..Self::default() };
        let said = tokens.iter().fold(Classes::default(), |said, token| said.or(token.classes()));
        echo.stems.reserve(tokens.len());
        echo.words.reserve(tokens.len());
        let mut ends = Vec::new();
        for at in 0..tokens.len().min(MOST_WORDS) {
            ends.extend(echo.add(&tokens, at, lexicon));
        }
        echo.alternatives |= tokens.len() > MOST_WORDS;
        echo.only_points = asked && !echo.names_things;
        echo.several = tokens.iter().filter(|token| token.after == Gap::Question).count() >= 2;
        let last = last_sentence(&tokens);
        if !ends.is_empty() {
            echo.add_counter(&tokens, ends, last);
        }
        echo.closing |= is_bad_news(&tokens, last, lexicon);
        echo.wants_words = said.any(Classes::ASK.or(Classes::VALUE)) && wants_words(&tokens[last..]);
        if echo.alternatives || said.any(Classes::NOT) {
            for sentence in questions(&tokens, last) {
                echo.either_or |= echo.alternatives && is_either_or(sentence);
                echo.negative |= is_negative(sentence);
            }
        }
        echo
    }

    /// Reads what the question asks to end: in the sentences that ask, or before them where they name no act of their
    /// own ("I'll delete it. OK?").
    fn add_counter(&mut self, tokens: &[Token<'q>], mut ends: Vec<Found>, last: usize) {
        let asking = |at: usize| {
            let stop = tokens[at..].iter().find(|token| token.after >= Gap::Stop);
            at >= last || stop.is_some_and(|stop| stop.after == Gap::Question)
        };
        let acts = |at: usize| {
            names_act(&tokens[at]) || tokens[at].classes().any(Classes::GO) || is_unknown_act(tokens, at)
        };
        if ends.iter().any(|found| asking(found.at)) {
            ends.retain(|found| asking(found.at));
        } else if (0..tokens.len().min(MOST_WORDS)).any(|at| asking(at) && acts(at)) {
            return;
        }
        self.names_act = true;
        self.counter = Some(Box::new(Counter::new(tokens, &ends)));
    }

    /// Takes one word of the question in, and returns it where it asks to end something.
    fn add(&mut self, tokens: &[Token<'q>], at: usize, lexicon: &Lexicon) -> Option<Found> {
        let token = &tokens[at];
        let classes = token.classes();
        self.words.push(token.text);
        if !is_grammar(token) {
            self.stems.push(token.stem);
        }
        self.same |= token.same();
        self.numbers += usize::from(is_number(token));
        self.leaves_out |= leaves_out(tokens, at);
        self.names_act |= names_act(token);
        if classes.any(Classes::VERB) {
            self.verbs.push(token.stem);
        }
        if is_unknown_act(tokens, at) {
            self.names_act = true;
            self.acts.push(token.stem);
        }
        self.says_all |= classes.any(Classes::ALL);
        self.alternatives |= classes.any(Classes::OR);
        self.faults |= classes.any(Classes::FAULT);
        self.says_them |= matches!(token.text, "them" | "those" | "these");
        self.suggests |= token.text == "about" && at > 0 && matches!(tokens[at - 1].text, "how" | "what");
        let (told, len) = told(tokens, at, lexicon);
        self.alters |= told.any(Classes::ALTER) && is_asked(tokens, at, told);
        self.closing |= told.any(Classes::CLOSING);
        self.offers |= told.any(Classes::OFFER);
        let thing = is_thing(token) || (classes.any(Classes::THING) && is_named(tokens, at));
        let near_act = tokens[at.saturating_sub(3)..at].iter().any(names_act);
        if thing && !classes.any(Classes::PLAIN) && (near_act || !self.names_act) {
            self.things.push((token.stem, token.same()));
        }
        let begins = at.checked_sub(1).is_none_or(|before| tokens[before].after >= Gap::Stop);
        let nameless = classes.any(Classes::PLAIN.or(Classes::TIME).or(Classes::DEED)) || is_number(token);
        let unknown = !token.is_known() && !nameless;
        self.names_unknown |= unknown && (begins || !token.capital);
        self.names_things |= !token.is_known() || thing;
        if token.joined {
            let from = self.joined.last().filter(|(_, to)| *to == at).map_or(at, |(from, _)| *from);
            self.joined.retain(|(_, to)| *to != at);
            self.joined.push((from, at + 1));
        }
        let ends = told.any(Classes::COUNTER) && is_asked(tokens, at, told);
        ends.then_some(Found { at, len, classes: told })
    }

    /// Whether it asked about these with such a verb: "does that work?" for *it does*, "did I get it?" for *you did*.
    pub(super) fn asks_whether(&self, who: &str, verb: &str) -> bool {
        let same: &[&str] = match verb {
            "is" | "was" => &["is", "'s", "was"],
            "are" | "were" if who == "you" => &["am", "are", "was", "were"],
            "are" | "were" => &["are", "'re", "were"],
            "does" => &["does", "do"],
            "will" | "would" => &["will", "'ll", "would"],
            "did" => &["did"],
            _ => &["do"],
        };
        let about = |next: &str| match who {
            "you" => matches!(next, "i" | "we"),
            _ => !matches!(next, "i" | "we" | "you"),
        };
        self.words.windows(2).any(|pair| same.contains(&pair[0]) && about(pair[1]))
    }

    /// Whether it asks what something is like: "does that look right?", "are the figures ok?", "did I get it?".
    pub(super) fn asks_how_it_is(&self) -> bool {
        let ways = [("it", "is"), ("it", "does"), ("they", "are"), ("you", "did")];
        ways.iter().any(|(who, verb)| self.asks_whether(who, verb))
    }

    /// Folds what a question says, the words of its kind and its own.
    pub(super) fn folded(question: &Question<'_>) -> Folded {
        match (question.text, question.kind.own_words()) {
            (Some(text), "") => Folded::new(text),
            (text, own) => Folded::new(&format!("{own}. {}", text.unwrap_or_default())),
        }
    }

    /// Whether an answer's word repeats the question, in its own or another word for the same.
    pub(super) fn repeats(&self, token: &Token<'_>) -> bool {
        token.same() & self.same != 0 || self.says(token)
    }

    /// Whether an answer's word is an act that was asked about and that the language does not know.
    pub(super) fn is_act(&self, token: &Token<'_>) -> bool {
        self.acts.contains(&token.stem)
    }

    /// "Merge it?" "I'm fine with merging it".
    pub(super) fn is_gerund(&self, token: &Token<'_>) -> bool {
        token.text.ends_with("ing") && (self.verbs.contains(&token.stem) || self.acts.contains(&token.stem))
    }

    /// Whether an answer's word stands in the question itself.
    pub(super) fn says(&self, token: &Token<'_>) -> bool {
        self.stems.contains(&token.stem)
    }

    /// Whether a thing that the answer names is another than those of the question.
    pub(super) fn names_another(&self, token: &Token<'_>) -> bool {
        self.names_unknown || self.conflicts(token)
    }

    /// "Delete the branch?" "Delete the branches": more of a thing than was asked about.
    pub(super) fn asks_for_one(&self, token: &Token<'_>) -> bool {
        let one = token.text.strip_suffix('s').filter(|one| self.words.contains(one));
        let one = one.or_else(|| token.text.strip_suffix("es").filter(|one| self.words.contains(one)));
        one.is_some() && !self.words.contains(&token.text) && !token.classes().any(Classes::PLAIN)
    }

    /// Whether the question names a thing of another kind.
    pub(super) fn conflicts(&self, token: &Token<'_>) -> bool {
        self.things.iter().any(|(stem, same)| *stem != token.stem && same & token.same() == 0)
    }

    /// Whether the answer repeats only a part of a name such as a path.
    pub(super) fn cuts_a_name(&self, tokens: &[Token<'_>]) -> bool {
        let says = |word: &&str| tokens.iter().any(|token| token.text == *word);
        self.joined.iter().any(|&(from, to)| {
            let name = &self.words[from..(to + 1).min(self.words.len())];
            let said = name.iter().filter(|word| says(word)).count();
            said > 0 && said < name.len()
        })
    }

    /// Whether an answer's number is one of the question's, beside the same word as there: "7 pm" repeats "at 7 pm" and
    /// not "7 people". One that stands alone repeats the only number that was asked about.
    pub(super) fn repeats_number(&self, tokens: &[Token<'_>], at: usize) -> bool {
        let joined = |one: usize, next: usize| tokens.get(next).filter(|_| tokens[one].after == Gap::None);
        let before = at.checked_sub(1).and_then(|before| joined(before, at).map(|_| tokens[before].text));
        let after = joined(at, at + 1).filter(|token| !ends_a_number(token)).map(|token| token.text);
        let places = || (0..self.words.len()).filter(|place| self.words[*place] == tokens[at].text);
        let beside = |place: usize| {
            let same = |word: Option<&str>, there: Option<&&str>| word.is_some() && word == there.copied();
            // "At 7 am" does not repeat "at 7 pm": the word after it says what is counted.
            same(after, self.words.get(place + 1))
                || (after.is_none()
                    && same(before, place.checked_sub(1).and_then(|place| self.words.get(place))))
        };
        // A time of day such as 6:30 can be nothing else.
        let clear = self.numbers == 1 || tokens[at].text.contains(':');
        let alone = before.is_none_or(|word| matches!(word, "yes" | "at" | "the" | "on")) && after.is_none();
        !self.alternatives && places().any(|place| beside(place) || (alone && clear))
    }

    /// The words before each mention of a word, without those that only point at it.
    pub(super) fn leaders<'e>(&'e self, word: &'e str) -> impl Iterator<Item = &'q str> + 'e {
        let places = (0..self.words.len()).filter(move |place| self.words[*place] == word);
        places.filter_map(|place| self.words[..place].iter().rev().find(|word| !is_pointer(word)).copied())
    }

    /// Whether a word such as "into" leads to another thing than this one.
    pub(super) fn points_elsewhere(&self, leader: &str, thing: &str) -> bool {
        let follows = |place: usize| self.words[place + 1..].iter().find(|word| !is_pointer(word));
        // "Want me to send it" leads to an act.
        let acts = |word: &str| self.verbs.contains(&stem(word)) || self.acts.contains(&stem(word));
        let leads = |place: usize| follows(place).is_some_and(|next| *next != thing && !acts(next));
        (0..self.words.len()).any(|place| self.words[place] == leader && leads(place))
    }

    /// How often the question says a word as it stands.
    pub(super) fn count(&self, word: &str) -> usize {
        self.words.iter().filter(|known| **known == word).count()
    }

    /// How often the question says a word, whatever its ending.
    pub(super) fn times(&self, word: &str) -> usize {
        self.stems.iter().filter(|known| **known == stem(word)).count()
    }

    /// Whether the question says a word.
    pub(super) fn contains(&self, word: &str) -> bool {
        self.stems.contains(&stem(word))
    }
}

/// "7 works", "7 is fine, thanks": what is said of a number does not say what it counts.
fn ends_a_number(token: &Token<'_>) -> bool {
    is_courtesy(token.text)
        || matches!(
            token.text,
            "is" | "works" | "'s" | "sounds" | "looks" | "will" | "would" | "'ll" | "suits"
        )
}

/// A word for a thing: it means nothing by itself, but other words for the same are known.
pub(super) fn is_thing(token: &Token<'_>) -> bool {
    token.entry.is_some_and(|entry| {
        entry.classes.is_blank() && entry.same != 0 && !entry.classes.any(Classes::DEED.or(Classes::TIME))
    })
}

/// "Place the order" does something, "the place" is a thing.
fn is_named(tokens: &[Token<'_>], at: usize) -> bool {
    let points =
        |before: usize| matches!(tokens[before].text, "the" | "a" | "an" | "this" | "that" | "your" | "my");
    !tokens[at].classes().any(Classes::VERB.or(Classes::CHANGE)) || at.checked_sub(1).is_some_and(points)
}

fn is_number(token: &Token<'_>) -> bool {
    token.text.starts_with(|first: char| first.is_ascii_digit())
        || token.classes().any(Classes::NUM.or(Classes::ORDINAL))
}

fn is_grammar(token: &Token<'_>) -> bool {
    let grammar = Classes::FILL.or(Classes::WHO).or(Classes::AUX);
    token.entry.is_some_and(|entry| {
        entry.classes.any(grammar) && entry.same == 0 && !entry.classes.any(Classes::VERB)
    })
}

/// "Shall I archive it?", "want me to archive it?", "archive it?": an unknown word where an act is named.
fn is_unknown_act(tokens: &[Token<'_>], at: usize) -> bool {
    let word = |back: usize| at.checked_sub(back).map_or("", |before| tokens[before].text);
    let begins = at.checked_sub(1).is_none_or(|before| tokens[before].after >= Gap::Stop);
    let end = tokens[at..].iter().find(|token| token.after >= Gap::Stop);
    let asks = tokens[at].after < Gap::Stop && end.is_some_and(|end| end.after == Gap::Question);
    let asked = matches!(word(1), "i" | "we")
        && matches!(word(2), "shall" | "should" | "can" | "may" | "could" | "must");
    let wished = word(1) == "to"
        && matches!(
            word(2),
            "me" | "us" | "like" | "want" | "wish" | "ok" | "okay" | "ready" | "about" | "going" | "need"
        );
    let joined = word(1) == "and" && word(2) == "ahead";
    !tokens[at].is_known()
        && !tokens[at].classes().any(Classes::PLAIN.or(Classes::TIME))
        && (asked || wished || joined || (begins && asks && !is_number(&tokens[at])))
}

fn names_act(token: &Token<'_>) -> bool {
    let acts = Classes::VERB.or(Classes::CHANGE).or(Classes::STOP).or(Classes::BACK);
    token.text != "confirm" && token.entry.is_some_and(|entry| entry.classes.any(acts))
}

fn leaves_out(tokens: &[Token<'_>], at: usize) -> bool {
    let next = tokens.get(at + 1).map_or("", |next| next.text);
    let courtesy = matches!(next, "problem" | "problems" | "worries" | "longer");
    matches!(tokens[at].text, "without" | "no") && tokens[at].after == Gap::None && !courtesy
}

/// What the words and phrases that begin at a token tell about a question, and how many words ask to end something.
fn told(tokens: &[Token<'_>], at: usize, lexicon: &Lexicon) -> (Classes, usize) {
    let Some(entry) = tokens[at].entry else { return (Classes::default(), 1) };
    let (mut told, mut len) = (entry.classes, 1);
    let mut node = entry.number;
    for (step, pair) in tokens[at..].windows(2).take_while(|_| entry.tells).enumerate() {
        let next = pair[1].entry.filter(|_| pair[0].after == Gap::None);
        let Some(next) = next.and_then(|next| lexicon.phrases.step(node, next.number)) else { break };
        node = next;
        let classes = lexicon.phrases.classes(node);
        if classes.any(Classes::COUNTER) {
            len = step + 2;
        }
        told = told.or(classes);
    }
    (told, len)
}

/// Whether it is a notice, not a question, and ends with what did not work.
fn is_bad_news(tokens: &[Token<'_>], last: usize, lexicon: &Lexicon) -> bool {
    let asks = tokens.iter().any(|token| token.after == Gap::Question);
    !asks && (last..tokens.len()).any(|at| told(tokens, at, lexicon).0.any(Classes::SORRY))
}

/// The sentences that ask: those with a question mark, and the last.
fn questions<'t, 'q>(tokens: &'t [Token<'q>], last: usize) -> impl Iterator<Item = &'t [Token<'q>]> {
    let asks = |sentence: &&[Token<'_>]| sentence.last().is_some_and(|token| token.after == Gap::Question);
    let before = tokens[..last].split_inclusive(|token| token.after >= Gap::Stop).filter(asks);
    before.chain([&tokens[last..]])
}

/// Whether a sentence asks what, where, when, who or how many.
fn wants_words(sentence: &[Token<'_>]) -> bool {
    let leads = |token: &&Token<'_>| {
        token.classes().any(Classes::YES.or(Classes::GOOD))
            || matches!(
                token.text,
                "and"
                    | "so"
                    | "then"
                    | "now"
                    | "please"
                    | "at"
                    | "in"
                    | "on"
                    | "for"
                    | "from"
                    | "to"
                    | "until"
                    | "till"
                    | "by"
                    | "with"
            )
    };
    let skipped = sentence.iter().take_while(leads).count();
    let word = |at: usize| sentence.get(at).map_or("", |token| token.text);
    let value = sentence.get(skipped).is_some_and(|token| token.classes().any(Classes::VALUE));
    value || asks_for_a_value(word(skipped), word(skipped + 1)) || asks_within(sentence)
}

fn asks_for_a_value(first: &str, second: &str) -> bool {
    match first {
        "what" => !matches!(second, "about" | "if" | "do" | "say"),
        "which" | "where" | "when" | "who" | "whom" | "whose" => true,
        "how" => matches!(
            second,
            "many" | "much" | "long" | "far" | "often" | "soon" | "early" | "late" | "big" | "large"
        ),
        _ => false,
    }
}

/// "… from which city?", "tell me what time": a value is asked for within a sentence.
fn asks_within(sentence: &[Token<'_>]) -> bool {
    let leading = |word: &str| {
        matches!(
            word,
            "me" | "know"
                | "specify"
                | "from"
                | "to"
                | "for"
                | "in"
                | "at"
                | "on"
                | "choose"
                | "decide"
                | "and"
                | "by"
        )
    };
    let places = |word: &str| matches!(word, "from" | "to" | "for" | "in" | "at" | "on" | "and" | "by");
    sentence.windows(3).any(|three| {
        let [lead, ask, next] = three else { return false };
        let value = asks_for_a_value(ask.text, next.text) && lead.after == Gap::None && leading(lead.text);
        // "The one for when it rains" asks nothing.
        value && (!places(lead.text) || matches!(ask.text, "which" | "whom" | "what" | "how"))
    })
}

/// Whether a sentence asks which of two.
fn is_either_or(sentence: &[Token<'_>]) -> bool {
    let open = |token: &Token<'_>| {
        matches!(
            token.text,
            "any" | "anything" | "no" | "that" | "which" | "who" | "if" | "whether" | "without"
        )
    };
    let answers = |token: Option<&Token<'_>>| {
        token.is_some_and(|token| {
            token.classes().any(Classes::YES.or(Classes::NO).or(Classes::NOT))
                || matches!(token.text, "so" | "something" | "more" | "less" | "other" | "correct" | "right")
        })
    };
    let choice = |at: usize| {
        sentence[at].classes().any(Classes::OR)
            && !answers(sentence.get(at + 1))
            && !answers(at.checked_sub(1).and_then(|before| sentence.get(before)))
            && !sentence[..at].iter().any(open)
    };
    (0..sentence.len()).any(choice)
}

/// Whether a sentence begins in the negative: "don't you …?", "you don't …?", "shouldn't we …?".
fn is_negative(sentence: &[Token<'_>]) -> bool {
    let asks = sentence.last().is_some_and(|token| token.after == Gap::Question);
    let leads = |token: &&Token<'_>| {
        token.classes().any(Classes::YES) || matches!(token.text, "and" | "so" | "but" | "well" | "then")
    };
    let start = sentence.iter().take_while(leads).count();
    let words: Vec<&str> = sentence.iter().skip(start).take(3).map(|token| token.text).collect();
    let is =
        |at: usize, class: Classes| sentence.get(start + at).is_some_and(|token| token.classes().any(class));
    asks && match words.as_slice() {
        ["not", ..] => true,
        [_, "not", ..] => is(0, Classes::AUX),
        [_, _, "not"] => {
            (is(0, Classes::AUX) && is(1, Classes::WHO)) || (is(0, Classes::WHO) && is(1, Classes::AUX))
        }
        _ => false,
    }
}

fn last_sentence(tokens: &[Token<'_>]) -> usize {
    let before = &tokens[..tokens.len().saturating_sub(1)];
    before.iter().rposition(|token| token.after >= Gap::Stop).map_or(0, |at| at + 1)
}

/// Cuts the commonest endings off, so that "playing" repeats "play".
pub(super) fn stem(word: &str) -> &str {
    for ending in ["ations", "ation", "ating", "ated", "ates", "ate", "ings", "ing", "ed", "es", "s", "e"] {
        if let Some(rest) = word.strip_suffix(ending).filter(|rest| rest.len() >= 3) {
            return rest;
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::super::question::Language;
    use super::*;

    fn with<T>(question: &str, look: impl FnOnce(&Echo<'_>) -> T) -> T {
        let folded = Folded::new(question);
        look(&Echo::new(&folded, true, Lexicon::of(Language::English)))
    }

    #[test]
    fn endings_do_not_matter() {
        assert!(
            with("Shall I start playing the songs?", |echo| echo.contains("play") && echo.contains("song"))
        );
        assert_eq!(stem("is"), "is");
    }

    #[test]
    fn the_kind_of_question_is_seen() {
        assert!(with("Is there anything else?", |echo| echo.closing));
        assert!(with("Sorry, that did not work.", |echo| echo.closing));
        assert!(!with("Sorry for the wait. Shall I go on?", |echo| echo.closing));
        assert!(with("Red or blue?", |echo| echo.alternatives));
        assert!(with("Red? And round?", |echo| echo.several));
        assert!(with("Shall I print it?", |echo| echo.offers && echo.names_act));
        assert!(with("Ok, which city?", |echo| echo.wants_words));
        assert!(!with("What about Rome?", |echo| echo.wants_words));
        assert!(with("Print it without the map?", |echo| echo.leaves_out));
        assert!(!with("No problem, print it?", |echo| echo.leaves_out));
    }
}
