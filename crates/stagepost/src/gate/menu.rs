//! Choosing an answer with keys: a state and a key give the next state or what was said.
//!
//! It neither reads nor draws; a front end does. Whatever is picked is said in the words that a person would have
//! typed, so it is understood and recorded as those. A row is found by how its own words begin and by its number, never
//! by what it means: typing "no" must not lead to a "yes" that is explained with it.

use std::collections::BTreeSet;

use super::message::clean;
use super::terminal::{columns, shortened_to};
use super::{Gate, Message, Span, Tone};

/// So many rows are shown at a time.
const MOST_ROWS: usize = 10;

/// A key that was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Key {
    /// The row above.
    Up,
    /// The row below.
    Down,
    /// The first row.
    Home,
    /// The last row.
    End,
    /// Done.
    Enter,
    /// Out of the menu.
    Escape,
    /// Takes the last letter back.
    Backspace,
    /// A letter, digit, space or sign.
    Char(char),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D: nobody says anything.
    EndOfInput,
}

/// What a key led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The menu goes on.
    Again(Menu),
    /// Something was said.
    Said(String),
    /// A line is to be typed instead, beginning with this.
    Type(String),
    /// Someone wants out; nothing was said.
    Interrupted,
    /// Nobody says anything.
    Nothing,
}

/// What can be said at a gate, and what was pressed so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Menu {
    rows: Vec<Row>,
    multiple: bool,
    typed: String,
    /// The row that is marked, among all.
    at: usize,
    chosen: BTreeSet<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    say: String,
    means: String,
    /// Whether it is one of the things to choose from, of which there may be several.
    option: bool,
}

impl Menu {
    /// The menu of a gate; `None` where there is nothing to pick, because only words of one's own are an answer.
    pub fn of(gate: &Gate) -> Option<Self> {
        let message = Message::of(gate);
        let row = |answer: &super::Possible| Row {
            say: clean(&answer.say),
            means: clean(&answer.means),
            option: answer.option.is_some(),
        };
        let rows: Vec<Row> = message.fixed(&gate.prompt).map(row).collect();
        let multiple = gate.prompt.takes_several();
        let menu = Self { rows, multiple, typed: String::new(), at: 0, chosen: BTreeSet::new() };
        (!menu.rows.is_empty()).then_some(menu)
    }

    /// Takes a key.
    #[must_use]
    pub fn press(mut self, key: Key) -> Step {
        match key {
            Key::Interrupt => return Step::Interrupted,
            Key::EndOfInput => return Step::Nothing,
            Key::Escape => return Step::Type(self.typed),
            Key::Enter => return self.enter(),
            Key::Up => self.go(-1),
            Key::Down => self.go(1),
            Key::Home => self.at = self.visible().first().copied().unwrap_or(0),
            Key::End => self.at = self.visible().last().copied().unwrap_or(0),
            Key::Backspace => {
                self.typed.pop();
                self.settle();
            }
            Key::Char(char) => self.letter(char),
        }
        Step::Again(self)
    }

    fn letter(&mut self, char: char) {
        match char {
            'j' if self.typed.is_empty() => self.go(1),
            'k' if self.typed.is_empty() => self.go(-1),
            ' ' if self.typed.is_empty() => self.toggle(),
            _ if char.is_control() => {}
            _ => {
                self.typed.push(char);
                self.settle();
            }
        }
    }

    /// Where several can be chosen, marks or unmarks one; a way out cannot be one of several.
    fn toggle(&mut self) {
        if self.multiple && self.rows[self.at].option && !self.chosen.remove(&self.at) {
            self.chosen.insert(self.at);
        }
    }

    fn enter(self) -> Step {
        let visible = self.visible();
        if !self.typed.trim().is_empty() && visible.is_empty() {
            return Step::Said(self.typed);
        }
        let chosen: Vec<&str> = self.chosen.iter().map(|row| self.rows[*row].say.as_str()).collect();
        if self.typed.is_empty() && !chosen.is_empty() {
            return Step::Said(chosen.join(" and "));
        }
        match visible.contains(&self.at) {
            true => Step::Said(self.rows[self.at].say.clone()),
            false => Step::Again(self),
        }
    }

    fn go(&mut self, by: isize) {
        let visible = self.visible();
        let place = visible.iter().position(|row| *row == self.at).unwrap_or(0);
        let next = place.saturating_add_signed(by).min(visible.len().saturating_sub(1));
        self.at = visible.get(next).copied().unwrap_or(self.at);
    }

    /// Marks a row that fits what is typed, one that is exactly that before others.
    fn settle(&mut self) {
        let visible = self.visible();
        let typed = self.typed.trim().to_lowercase();
        let exact = visible
            .iter()
            .find(|row| self.rows[**row].say.to_lowercase() == typed || (**row + 1).to_string() == typed);
        let stays = visible.iter().find(|row| **row == self.at);
        self.at = exact.or(stays).or(visible.first()).copied().unwrap_or(self.at);
    }

    /// The rows that fit what is typed.
    fn visible(&self) -> Vec<usize> {
        let typed = self.typed.trim().to_lowercase();
        (0..self.rows.len()).filter(|row| typed.is_empty() || self.fits(*row, &typed)).collect()
    }

    fn fits(&self, row: usize, typed: &str) -> bool {
        let say = self.rows[row].say.to_lowercase();
        let starts = say
            .match_indices(typed)
            .any(|(at, _)| say[..at].chars().next_back().is_none_or(|before| !before.is_alphanumeric()));
        starts || (row + 1).to_string().starts_with(typed)
    }

    /// Lays the menu out in lines of at most `width` columns; the last is where letters are typed.
    pub fn lines(&self, width: usize) -> Vec<Vec<Span>> {
        let visible = self.visible();
        let place = visible.iter().position(|row| *row == self.at).unwrap_or(0);
        let first = place.saturating_sub(MOST_ROWS - 1).min(visible.len().saturating_sub(MOST_ROWS));
        let shown = visible.iter().skip(first).take(MOST_ROWS);
        let mut lines: Vec<Vec<Span>> = shown.map(|row| self.row(*row, width)).collect();
        let span = |tone, text: String| vec![Span { tone, text: shortened_to(&text, width) }];
        if visible.len() > MOST_ROWS {
            lines.push(span(Tone::Faint, format!("  … {} of {}", place + 1, visible.len())));
        }
        lines.push(span(Tone::Faint, self.hint()));
        lines.push(span(Tone::Plain, format!("> {}", clean(&self.typed))));
        lines
    }

    fn row(&self, row: usize, width: usize) -> Vec<Span> {
        let (marked, Row { say, means, .. }) = (row == self.at, &self.rows[row]);
        let box_of = |chosen| if chosen { "[x] " } else { "[ ] " };
        let several = self.multiple && self.rows[row].option;
        let mark = if several { box_of(self.chosen.contains(&row)) } else { "" };
        let start = format!("{} {:>2} {mark}", if marked { '›' } else { ' ' }, row + 1);
        let room = width.saturating_sub(columns(&start));
        let said = shortened_to(say, room);
        let left = room.saturating_sub(columns(&said) + 2);
        let means = if left < 4 { String::new() } else { format!("  {}", shortened_to(means, left)) };
        let tone = if marked { Tone::Question } else { Tone::Say };
        vec![
            Span { tone: Tone::Plain, text: start },
            Span { tone, text: said },
            Span { tone: Tone::Faint, text: means },
        ]
    }

    fn hint(&self) -> String {
        let several = if self.multiple { ", space marks" } else { "" };
        format!("  ↑↓ or a number{several}, Enter says it; or type an answer (Esc: a line)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn menu(says: &[&str], multiple: bool) -> Menu {
        let row =
            |say: &&str| Row { say: (*say).to_owned(), means: "yes or no".to_owned(), option: multiple };
        let rows = says.iter().map(row).collect();
        Menu { rows, multiple, typed: String::new(), at: 0, chosen: BTreeSet::new() }
    }

    fn press(menu: Menu, keys: &[Key]) -> Step {
        keys.iter().fold(Step::Again(menu), |step, key| match step {
            Step::Again(menu) => menu.press(*key),
            other => other,
        })
    }

    fn typed(text: &str) -> Vec<Key> {
        text.chars().map(Key::Char).chain([Key::Enter]).collect()
    }

    fn said(says: &[&str], keys: &[Key]) -> String {
        match press(menu(says, false), keys) {
            Step::Said(words) => words,
            other => panic!("{other:?}"),
        }
    }

    const SAYS: &[&str] = &["yes", "no", "go back"];

    #[test]
    fn arrows_and_letters_move_and_stop_at_the_ends() {
        use Key::{Char, Down, End, Enter, Home, Up};
        assert_eq!(said(SAYS, &[Enter]), "yes");
        assert_eq!(said(SAYS, &[Down, Enter]), "no");
        assert_eq!(said(SAYS, &[Char('j'), Char('j'), Char('k'), Enter]), "no");
        assert_eq!(said(SAYS, &[Up, Up, Enter]), "yes");
        assert_eq!(said(SAYS, &[Down, Down, Down, Down, Enter]), "go back");
        assert_eq!(said(SAYS, &[End, Enter]), "go back");
        assert_eq!(said(SAYS, &[End, Home, Enter]), "yes");
    }

    #[test]
    fn a_number_or_the_beginning_of_a_word_finds_a_row() {
        assert_eq!(said(SAYS, &typed("2")), "no");
        assert_eq!(said(SAYS, &typed("ba")), "go back");
        assert_eq!(said(SAYS, &typed("GO")), "go back");
        let many: Vec<String> = (1..=12).map(|number| format!("row {number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(said(&many, &typed("1")), "row 1");
        assert_eq!(said(&many, &typed("12")), "row 12");
    }

    #[test]
    fn what_is_typed_never_becomes_something_else() {
        // The explanation of "yes" has a "no" in it.
        assert_eq!(said(SAYS, &typed("no")), "no");
        assert_eq!(said(&["yes", "stop"], &typed("no")), "no");
        assert_eq!(said(SAYS, &typed("not yet")), "not yet");
        assert_eq!(said(SAYS, &typed("yes but later")), "yes but later");
        assert_eq!(said(&["ship it", "no"], &typed("it is wrong")), "it is wrong");
    }

    #[test]
    fn letters_can_be_taken_back() {
        let keys = [Key::Char('n'), Key::Char('x'), Key::Backspace, Key::Enter];
        assert_eq!(said(SAYS, &keys), "no");
        assert_eq!(said(SAYS, &[Key::Char('n'), Key::Backspace, Key::Backspace, Key::Enter]), "no");
    }

    #[test]
    fn space_marks_where_several_can_be_chosen() {
        let keys = [Key::Char(' '), Key::Down, Key::Down, Key::Char(' '), Key::Enter];
        assert_eq!(press(menu(SAYS, true), &keys), Step::Said("yes and go back".to_owned()));
        let keys = [Key::Char(' '), Key::Char(' '), Key::Down, Key::Enter];
        assert_eq!(press(menu(SAYS, true), &keys), Step::Said("no".to_owned()));
        assert_eq!(said(SAYS, &[Key::Down, Key::Char(' '), Key::Enter]), "no");
    }

    #[test]
    fn there_is_always_a_way_out() {
        assert_eq!(press(menu(SAYS, false), &[Key::Char('x'), Key::Escape]), Step::Type("x".to_owned()));
        assert_eq!(press(menu(SAYS, false), &[Key::Interrupt]), Step::Interrupted);
        assert_eq!(press(menu(SAYS, false), &[Key::EndOfInput]), Step::Nothing);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_the_marked_row_is_shown() {
        let long: Vec<String> =
            (0..40).map(|number| format!("{number} {}", "wide 漢字 ".repeat(9))).collect();
        let long: Vec<&str> = long.iter().map(String::as_str).collect();
        let mut state = menu(&long, true);
        for _ in 0..25 {
            let Step::Again(next) = state.press(Key::Down) else { panic!("it goes on") };
            state = next;
            let lines = state.lines(40);
            assert!(lines.len() <= MOST_ROWS + 3);
            let text = |line: &Vec<Span>| line.iter().map(|span| span.text.as_str()).collect::<String>();
            assert!(lines.iter().all(|line| columns(&text(line)) <= 40), "{lines:?}");
            assert_eq!(lines.iter().filter(|line| text(line).starts_with('›')).count(), 1);
        }
    }
}
