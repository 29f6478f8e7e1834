//! Ctrl-C and its kin: a wish to stop, heard by whoever drives programs.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use stagepost::process::Cancel;

use crate::failure::Code;

/// Has a write beyond the limit of a file's size (`ulimit -f`) fail as any other that is refused, with a word about what was
/// written: otherwise the system ends the program on the spot. Programs that it starts are not affected.
pub(crate) fn too_large_is_an_error() {
    // Where nobody can be told, it stays as it was.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// Does some work that can be asked to stop.
pub(crate) fn listening<T>(work: impl FnOnce(Cancel) -> T) -> io::Result<T> {
    let cancel = Cancel::new()?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let (handle, heard) = (signals.handle(), cancel.clone());
    let listener = thread::spawn(move || {
        for (times, _) in signals.forever().enumerate() {
            heard.cancel();
            if times > 0 {
                // Whoever asks twice does not want to wait; the guard ends what still runs.
                std::process::exit(Code::Interrupted as i32);
            }
        }
    });
    let done = work(cancel);
    handle.close();
    let _ = listener.join();
    Ok(done)
}
