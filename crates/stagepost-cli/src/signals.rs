//! Ctrl-C and its kin: a wish to stop, heard by whoever drives programs.

use std::io;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use stagepost::process::Cancel;

use crate::failure::Code;

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
