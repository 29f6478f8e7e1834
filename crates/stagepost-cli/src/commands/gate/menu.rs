//! Asking at a terminal with keys: rows to pick from, and letters to type.

use std::io::{self, Write};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use stagepost::gate::{Asker, Gate, Key, Lines, Menu, Message, Origin, Said, Step};

use super::{ask, show};

/// Says whether the terminal can do more than lines.
pub(super) fn is_comfortable() -> bool {
    std::env::var("TERM").is_ok_and(|term| !term.is_empty() && term != "dumb")
}

/// Asks a person with a menu; where there is nothing to pick, with a line.
pub(super) struct Keys;

impl Asker for Keys {
    fn ask(&mut self, gate: &Gate) -> io::Result<Option<Said>> {
        let Some(menu) = Menu::of(gate) else { return line(gate) };
        let mut message = Message::of(gate);
        message.answers.retain(|answer| answer.option.is_none() && answer.say.contains('…'));
        ask::forget_what_was_typed();
        show::message(&mut anstream::stderr().lock(), &message)?;
        match pick(menu)? {
            Step::Said(words) => Ok(Some(Said::new(words, Origin::Person))),
            Step::Type(_) => line(gate),
            Step::Interrupted => Err(io::Error::from(io::ErrorKind::Interrupted)),
            Step::Nothing | Step::Again(_) => Ok(None),
        }
    }
}

/// Asks for a line.
fn line(gate: &Gate) -> io::Result<Option<Said>> {
    Lines { input: io::stdin().lock(), show: ask::aloud, origin: Origin::Person }.ask(gate)
}

/// Lets someone pick, and leaves what was said where the menu was.
fn pick(mut menu: Menu) -> io::Result<Step> {
    let _raw = Raw::enter()?;
    let mut drawn = draw(&menu)?;
    loop {
        let step = match read_key()? {
            Some(key) => menu.press(key),
            None => continue,
        };
        erase(drawn)?;
        menu = match step {
            Step::Again(menu) => menu,
            ended => {
                let words = if let Step::Said(words) = &ended { words.as_str() } else { "" };
                writeln!(io::stderr().lock(), "> {}", crate::ui::printable(words))?;
                return Ok(ended);
            }
        };
        drawn = draw(&menu)?;
    }
}

/// Draws the menu; returns how many lines lie above the last.
fn draw(menu: &Menu) -> io::Result<usize> {
    let lines = menu.lines(show::width());
    let mut out = anstream::stderr().lock();
    for (at, line) in lines.iter().enumerate() {
        for span in line {
            let style = show::style(span.tone);
            write!(out, "{style}{}{style:#}", span.text)?;
        }
        if at + 1 < lines.len() {
            writeln!(out)?;
        }
    }
    out.flush()?;
    Ok(lines.len().saturating_sub(1))
}

/// Takes the menu away. This goes past the stream that drops colours, for it would drop this too.
fn erase(above: usize) -> io::Result<()> {
    let mut out = io::stderr().lock();
    write!(out, "\r")?;
    if above > 0 {
        write!(out, "\x1b[{above}A")?;
    }
    write!(out, "\x1b[J")?;
    out.flush()
}

/// How the terminal was, while it hands every key over at once.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
static WATCHED: OnceLock<()> = OnceLock::new();

/// The terminal hands every key over at once, until this is dropped or a signal ends the program.
struct Raw;

impl Raw {
    fn enter() -> io::Result<Self> {
        watch_signals()?;
        let before = tcgetattr(io::stdin())?;
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before.clone());
        let entered = Self;
        let mut raw = before;
        raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN);
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(entered)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
    }
}

/// A signal that ends the program must not leave the terminal as the menu needs it. Once caught, a signal is caught for
/// good, so the watch goes on after the menu and does what would have happened without it.
fn watch_signals() -> io::Result<()> {
    if WATCHED.set(()).is_err() {
        return Ok(());
    }
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            restore();
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
    Ok(())
}

/// Reads a key; `None` for one that means nothing here. The end of the input is Ctrl-D.
fn read_key() -> io::Result<Option<Key>> {
    let Some(first) = read_byte()? else { return Ok(Some(Key::EndOfInput)) };
    Ok(match first {
        b'\r' | b'\n' => Some(Key::Enter),
        3 => Some(Key::Interrupt),
        4 => Some(Key::EndOfInput),
        8 | 127 => Some(Key::Backspace),
        0x1b => read_escape()?,
        0..0x20 => None,
        _ => read_char(first)?.map(Key::Char),
    })
}

/// An escape that nothing follows at once is the key itself; otherwise it begins the name of another key.
fn read_escape() -> io::Result<Option<Key>> {
    if !is_more_soon()? {
        return Ok(Some(Key::Escape));
    }
    let Some(b'[' | b'O') = read_byte()? else { return Ok(None) };
    let mut last = read_byte()?;
    while let Some(b'0'..=b'9' | b';') = last {
        last = read_byte()?;
    }
    Ok(match last {
        Some(b'A') => Some(Key::Up),
        Some(b'B') => Some(Key::Down),
        Some(b'H') => Some(Key::Home),
        Some(b'F') => Some(Key::End),
        _ => None,
    })
}

fn is_more_soon() -> io::Result<bool> {
    let stdin = io::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
    let patience = Timespec { tv_sec: 0, tv_nsec: Duration::from_millis(50).subsec_nanos().into() };
    Ok(poll(&mut watched, Some(&patience))? > 0)
}

/// Reads the rest of a character that takes several bytes.
fn read_char(first: u8) -> io::Result<Option<char>> {
    let mut bytes = vec![first];
    let more = match first {
        0xc0..=0xdf => 1,
        0xe0..=0xef => 2,
        0xf0..=0xf7 => 3,
        _ => 0,
    };
    for _ in 0..more {
        bytes.extend(read_byte()?);
    }
    Ok(std::str::from_utf8(&bytes).ok().and_then(|text| text.chars().next()))
}

/// Reads past the buffer of standard input: what it took too early, a line that is asked for later would miss.
fn read_byte() -> io::Result<Option<u8>> {
    let mut byte = [0];
    loop {
        match rustix::io::read(io::stdin(), &mut byte) {
            Ok(0) => return Ok(None),
            Ok(_) => return Ok(Some(byte[0])),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
