//! The words of a language and what they do in an answer, read once from its data file.
//!
//! A data file has lines `class: word, phrase of several words, …`. In a phrase, `a|b` stands for either word.
//! `num` and `ordinal` lines hold `word=value` pairs, `short` lines hold `contraction = spelled out;`, and a `same`
//! line holds words for one act or thing. `#` starts a comment.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use super::echo::stem;
use super::normalise::Folded;
use super::phrases::Phrases;
use super::question::Language;

/// What a word can do in an answer; a set of classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Classes(u64);

macro_rules! classes {
    ($($bit:literal $name:ident $key:literal: $about:literal)*) => {
        impl Classes {
            $(#[doc = $about] pub(super) const $name: Classes = Classes(1 << $bit);)*
        }
        const KEYS: &[(&str, Classes)] = &[$(($key, Classes::$name)),*];
    };
}

classes! {
    0 YES "yes": "Agrees."
    1 GOOD "good": "Praises; agrees where something is proposed."
    2 GO "go": "Asks to go on."
    3 TAIL "tail": "Agrees only where a clause ends after it."
    4 ALONE "alone": "Agrees only when it is the whole answer, or repeats the question."
    5 FILL "fill": "Decides nothing."
    6 WANT "want": "Says what someone wants or thinks; decides nothing by itself."
    7 WHO "who": "Stands for a person or thing."
    8 AUX "aux": "Asks when it stands before a `who`."
    9 NO "no": "Refuses."
    10 NOT "not": "Negates what follows."
    11 BAD "bad": "Finds fault."
    12 STOP "stop": "Ends the matter."
    13 LATER "later": "Puts it off."
    14 DECLINE "decline": "Politely wants nothing."
    15 CLOSE "close": "Says that this is all."
    16 BACK "back": "Goes back."
    17 MORE "more": "Wants more or other."
    18 TELL "tell": "Wants to be told or shown."
    19 ASK "ask": "Asks."
    20 GREET "greet": "Greets."
    21 CONTRAST "contrast": "Takes something back."
    22 COND "cond": "Sets a condition."
    23 HEDGE "hedge": "Is not sure."
    24 CHANGE "change": "Wants a change."
    25 VERB "verb": "Names an act that can be agreed to."
    26 NONE "none": "None of the options."
    27 ALL "all": "All of the options."
    28 ANY "any": "Whichever option."
    29 OPTION "option": "A word for an option."
    30 OTHERS "others": "Other options."
    31 DET "det": "Makes a following `one` a thing, not a number."
    32 AVERSE "not_over": "What follows is not chosen."
    33 NUM "num": "A number."
    34 ORDINAL "ordinal": "A position."
    35 CLOSING "closing": "In a question: offers further help."
    36 SORRY "sorry": "In a notice: something did not work."
    37 OFFER "offer": "In a question: offers to do something."
    38 NAME "name": "Addresses someone; decides nothing where it only does that."
    39 BOOST "boost": "Only strengthens; a phrase is the same with it inside."
    40 THING "thing": "A word for a kind of thing: the object of an act."
    41 MATTER "matter": "A word for what was proposed; decides nothing where it is praised or pointed at."
    42 TIME "time": "Names a day or a part of it."
    43 PLAIN "plain": "In a question: names no thing."
    44 DEED "deed": "An act named as a thing, such as `booking`."
    45 FAULT "fault": "Something to object to; having none agrees."
    46 OR "or": "Stands between alternatives."
    47 VALUE "value": "Opening a question: asks for more than a yes."
    48 HALT "halt": "In a question: stops something that runs or waits."
    49 REFUSE "refuse": "In a question: refuses something."
    50 UNDO "undo": "In a question: undoes or destroys something."
    51 NAMED "named": "A word of these three wherever it stands, such as `deletion`."
    52 ALTER "alter": "In a question: makes something different from what it is."
    53 AVOID "avoid": "Among options: dislikes, avoids or leaves out what is named beside it."
    54 UNMEANT "unmeant": "A hedge that is no yes at any risk: another's, an old one, scorn, or an idiom."
}

impl Classes {
    pub(super) const APPROVAL: Classes = Classes(0b111);
    /// What only tells something about a question; in an answer such a phrase is just its words.
    pub(super) const ASKING: Classes =
        Classes::CLOSING.or(Classes::SORRY).or(Classes::OFFER).or(Classes::COUNTER);
    /// What ends something: the words that agree elsewhere may then speak against it.
    pub(super) const COUNTER: Classes =
        Classes::HALT.or(Classes::REFUSE).or(Classes::UNDO).or(Classes::NAMED);

    /// What is only told about a word; by itself it still does nothing in an answer.
    const MARKS: Classes = Classes::BOOST
        .or(Classes::THING)
        .or(Classes::TIME)
        .or(Classes::PLAIN)
        .or(Classes::DEED)
        .or(Classes::FAULT)
        .or(Classes::OR)
        .or(Classes::VALUE)
        .or(Classes::COUNTER)
        .or(Classes::ALTER)
        .or(Classes::AVOID);

    pub(super) const fn or(self, other: Classes) -> Classes {
        Classes(self.0 | other.0)
    }

    pub(super) const fn without(self, other: Classes) -> Classes {
        Classes(self.0 & !other.0)
    }

    pub(super) const fn any(self, other: Classes) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether nothing is known about what it does in an answer.
    pub(super) const fn is_blank(self) -> bool {
        self.without(Classes::MARKS).0 == 0
    }

    /// Names the first class of `among` that is in this set.
    pub(super) fn name_in(self, among: Classes) -> &'static str {
        KEYS.iter().find(|(_, class)| self.any(*class) && among.any(*class)).map_or("word", |(key, _)| key)
    }
}

/// What is known about one word.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) word: &'static str,
    /// The word without its commonest endings.
    pub(super) stem: &'static str,
    /// The word's number, which is also where its phrases begin: phrases compare numbers, not letters.
    pub(super) number: u32,
    pub(super) classes: Classes,
    pub(super) value: Option<i32>,
    pub(super) short: Vec<&'static str>,
    /// Bits of the `same` lines this word stands in.
    pub(super) same: u64,
    /// Whether a phrase that begins with it tells what kind of question it is.
    pub(super) tells: bool,
}

impl Entry {
    /// Whether the word means something by itself, not only within phrases.
    pub(super) fn is_known(&self) -> bool {
        !self.classes.is_blank() || self.same != 0
    }
}

/// A fast hash for short words; nobody chooses the keys, so collisions cannot be provoked.
#[derive(Default)]
pub(super) struct WordHasher(u64);

impl WordHasher {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((chunk, after)) = rest.split_first_chunk::<8>() {
            self.mix(u64::from_le_bytes(*chunk));
            rest = after;
        }
        let mut last = bytes.len() as u64;
        if let Some((chunk, after)) = rest.split_first_chunk::<4>() {
            last = last << 32 | u64::from(u32::from_le_bytes(*chunk));
            rest = after;
        }
        self.mix(rest.iter().fold(last, |word, byte| word << 8 | u64::from(*byte)));
    }

    /// The end mark that `str` adds tells nothing: the length is mixed in already.
    fn write_u8(&mut self, _: u8) {}
}

/// A map keyed by words.
pub(super) type WordMap<K, V> = HashMap<K, V, BuildHasherDefault<WordHasher>>;

/// Short forms that are the same word in a phrase.
const FULL: [(&str, &str); 6] =
    [("'s", "is"), ("'re", "are"), ("'m", "am"), ("'ll", "will"), ("'d", "would"), ("'ve", "have")];

/// The words of one language.
#[derive(Debug, Default)]
pub(super) struct Lexicon {
    entries: WordMap<&'static str, Entry>,
    pub(super) phrases: Phrases,
    approvals: Vec<&'static str>,
    sames: u32,
}

impl Lexicon {
    /// Returns the words of a language.
    pub(super) fn of(language: Language) -> &'static Lexicon {
        static ENGLISH: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::read(include_str!("lang/en.txt")));
        static SPANISH: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::read(include_str!("lang/es.txt")));
        static FRENCH: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::read(include_str!("lang/fr.txt")));
        static GERMAN: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::read(include_str!("lang/de.txt")));
        match language {
            Language::English => &ENGLISH,
            Language::Spanish => &SPANISH,
            Language::French => &FRENCH,
            Language::German => &GERMAN,
        }
    }

    /// Looks a folded word up; a drawn-out one ("yesss") as what it is drawn from.
    pub(super) fn get(&self, word: &str) -> Option<&Entry> {
        self.entries.get(word).or_else(|| self.drawn_out(word))
    }

    /// The longer words of approval and those that decide nothing, for recognising them misspelled.
    pub(super) fn approvals(&self) -> &[&'static str] {
        &self.approvals
    }

    /// "Yesss", "okk": letters that are drawn out. One letter doubled at the end may belong to another word ("inn"), so
    /// that only makes a word that agrees or refuses.
    fn drawn_out(&self, word: &str) -> Option<&Entry> {
        let bytes = word.as_bytes();
        let doubled = matches!(bytes, [.., before, last] if before == last);
        let drawn = bytes.windows(3).any(|three| three[0] == three[1] && three[1] == three[2]);
        if bytes.len() > 40 || !(drawn || doubled) {
            return None;
        }
        let mut found = [2, 1].iter().filter_map(|&most| self.entries.get(squeezed(word, most).as_str()));
        found.find(|entry| drawn || entry.classes.any(Classes::YES.or(Classes::NO)))
    }

    fn read(data: &'static str) -> Self {
        let mut lexicon = Self::default();
        for line in include_str!("lang/common.txt").lines().chain(data.lines()) {
            let Some((class, items)) = line.split_once(':').filter(|_| !line.starts_with('#')) else {
                continue;
            };
            lexicon.add_line(class.trim(), items.trim());
        }
        let long = |entry: &&Entry| {
            let agrees = entry.classes.any(Classes::APPROVAL) && entry.word.len() >= 5;
            agrees || (entry.classes.any(Classes::FILL) && entry.word.len() >= 6)
        };
        lexicon.approvals = lexicon.entries.values().filter(long).map(|entry| entry.word).collect();
        lexicon.approvals.sort_unstable();
        lexicon
    }

    fn add_line(&mut self, class: &str, items: &'static str) {
        match class {
            "short" => items.split(';').filter_map(|pair| pair.split_once('=')).for_each(|(from, to)| {
                self.entry(from.trim()).short = to.split_whitespace().collect();
            }),
            "same" => {
                items.split(',').for_each(|word| self.entry(&fold(word)).same |= 1 << self.sames);
                self.sames += 1;
            }
            _ => {
                // A class the program does not know is a mistake in the data; a test reads every line.
                let Some((_, bits)) = KEYS.iter().find(|(key, _)| *key == class) else { return };
                let hedges = if *bits == Classes::UNMEANT { Classes::HEDGE } else { Classes::default() };
                self.add_words(bits.or(hedges), items);
            }
        }
    }

    fn add_words(&mut self, bits: Classes, items: &'static str) {
        if bits == Classes::NUM || bits == Classes::ORDINAL {
            for (word, value) in items.split_whitespace().filter_map(|pair| pair.split_once('=')) {
                let entry = self.entry(&fold(word));
                entry.classes = entry.classes.or(bits);
                entry.value = value.parse().ok();
            }
            return;
        }
        let signs = !items.is_ascii() && !items.contains(',') && !items.contains(char::is_alphabetic);
        let split = move |c: char| if signs { c == ' ' } else { c == ',' };
        items.split(split).for_each(|item| self.add_phrase(&spelled(item), bits));
    }

    /// Adds every reading of a phrase with alternatives.
    fn add_phrase(&mut self, words: &[Vec<&'static str>], bits: Classes) {
        let Some((firsts, rest)) = words.split_first() else { return };
        let numbers = |word: &Vec<&'static str>| word.iter().map(|word| self.entry(word).number).collect();
        let rest: Vec<Vec<u32>> = rest.iter().map(numbers).collect();
        for first in firsts {
            let entry = self.entry(first);
            if rest.is_empty() {
                entry.classes = entry.classes.or(bits);
                continue;
            }
            entry.tells |= bits.any(Classes::ASKING);
            let root = entry.number;
            combinations(&rest).iter().for_each(|tail| self.phrases.add(root, tail, bits));
        }
    }

    fn entry(&mut self, word: &str) -> &mut Entry {
        if !self.entries.contains_key(word) {
            // Built once per language and kept for the life of the program: leaking is the plain way to `'static`.
            let word: &'static str = Box::leak(word.to_owned().into_boxed_str());
            let number = match FULL.iter().find(|(short, _)| *short == word) {
                Some((_, full)) => self.entry(full).number,
                None => self.phrases.root(),
            };
            self.entries.insert(word, Entry { word, stem: stem(word), number, ..Entry::default() });
        }
        self.entries.get_mut(word).expect("inserted above if it was missing")
    }
}

/// Cuts a phrase of the data into words, each with its alternatives, folded as replies are.
fn spelled(phrase: &str) -> Vec<Vec<&'static str>> {
    let alternatives = |group: &str| group.split('|').map(leaked_fold).collect::<Vec<_>>();
    let mut words: Vec<Vec<&'static str>> = Vec::new();
    for group in phrase.split_whitespace() {
        match group.split_once('-').filter(|(head, _)| !head.is_empty()) {
            Some((head, tail)) => words.extend([alternatives(head), alternatives(tail)]),
            None if group.contains('|') || group.starts_with('\'') || !group.contains('\'') => {
                words.push(alternatives(group));
            }
            None => {
                let (head, tail) = group.split_once('\'').unwrap_or((group, ""));
                words.extend([alternatives(head), vec![leaked_fold(&format!("'{tail}"))]]);
            }
        }
    }
    words
}

fn leaked_fold(word: &str) -> &'static str {
    Box::leak(fold(word).into_boxed_str())
}

/// Folds one word of the data as a word of a reply is folded.
fn fold(word: &str) -> String {
    let word = word.trim();
    let folded = Folded::new(word.trim_start_matches('\''));
    let plain = folded.spans.first().map_or("", |span| folded.word(span));
    if word.starts_with('\'') { format!("'{plain}") } else { plain.to_owned() }
}

fn combinations(words: &[Vec<u32>]) -> Vec<Vec<u32>> {
    words.iter().fold(vec![Vec::new()], |done, group| {
        let extend = |known: &Vec<u32>| {
            let known = known.clone();
            group.iter().map(move |word| known.iter().copied().chain([*word]).collect())
        };
        done.iter().flat_map(extend).collect()
    })
}

/// Shortens every run of one letter to at most `most`.
fn squeezed(word: &str, most: usize) -> String {
    let mut run = (' ', 0);
    let keep = |char: &char| {
        run = if run.0 == *char { (*char, run.1 + 1) } else { (*char, 1) };
        run.1 <= most
    };
    word.chars().filter(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_every_language_is_understood() {
        let files = [include_str!("lang/en.txt"), include_str!("lang/es.txt"), include_str!("lang/fr.txt")];
        for line in files
            .iter()
            .chain([&include_str!("lang/de.txt"), &include_str!("lang/common.txt")])
            .flat_map(|file| file.lines())
        {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (class, items) = line.split_once(':').expect("a line has a class");
            assert!(
                ["short", "same"].contains(&class) || KEYS.iter().any(|(key, _)| *key == class),
                "{line}"
            );
            assert!(!items.trim().is_empty(), "{line}");
        }
    }

    #[test]
    fn drawn_out_words_are_known() {
        let english = Lexicon::of(Language::English);
        for word in ["yesss", "yeeees", "okkkk", "sooo", "nooooo"] {
            assert!(english.get(word).is_some(), "{word}");
        }
        assert!(english.get("zzz").is_none());
    }

    #[test]
    fn no_word_both_agrees_and_refuses() {
        let against = Classes::NO.or(Classes::NOT).or(Classes::BAD).or(Classes::STOP).or(Classes::HEDGE);
        for language in [Language::English, Language::Spanish, Language::French, Language::German] {
            let both = |classes: Classes| classes.any(Classes::APPROVAL) && classes.any(against);
            for entry in Lexicon::of(language).entries.values() {
                assert!(!both(entry.classes), "{language:?} {}", entry.word);
            }
            assert!(!Lexicon::of(language).phrases.all().any(both), "{language:?}");
        }
    }
}
