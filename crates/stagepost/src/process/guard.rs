//! Ending what we started when we ourselves are killed and can no longer do it.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Waits for a word, or for the end of us. In the second case it kills every process with the mark, and looks again until it has
/// found none twice: one of them may just have started another, or may itself be just starting and not have its mark yet.
/// That `grep` fails says nothing: a process that ends while it looks makes it fail.
const WATCH: &str = r#"
trap '' INT TERM HUP QUIT
read -r word && [ "$word" = done ] && exit 0
none=0
for again in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  found=$(grep -lszx -e "$1" /proc/[0-9]*/environ 2>/dev/null)
  if [ -z "$found" ]; then
    none=$((none + 1))
    [ "$none" -ge 2 ] && exit 0
  else
    none=0
  fi
  for file in $found; do
    pid=${file#/proc/}; pid=${pid%/environ}
    [ "$pid" = "$$" ] || kill -KILL "$pid" 2>/dev/null
  done
  sleep 0.05
done
"#;

/// Waits for a word, or for the end of us. In the second case it waits until no process with the mark is alive, and then
/// removes those of the files named after it that stand unchanged for a while. Something marked that lives on may be using
/// them: then they stay.
const TIDY: &str = r#"
trap '' INT TERM HUP QUIT
read -r word && [ "$word" = done ] && exit 0
mark=$1
shift
left=150
while grep -qszx -e "$mark" /proc/[0-9]*/environ 2>/dev/null; do
  left=$((left - 1))
  [ "$left" -gt 0 ] || exit 0
  sleep 0.2
done
for file; do
  before=$(stat -c '%i %s %y' -- "$file" 2>/dev/null) || continue
  sleep 0.3
  [ "$(stat -c '%i %s %y' -- "$file" 2>/dev/null)" = "$before" ] && rm -f -- "$file"
done
"#;

/// A small process that outlives us by a moment: if we are killed, it ends or tidies up what we can no longer.
#[derive(Debug)]
pub struct Guard {
    watcher: Child,
}

impl Guard {
    /// Starts watching over processes that will have `mark` (`NAME=value`) in their environment: if we are killed, it
    /// kills them.
    pub fn over(mark: &str) -> io::Result<Self> {
        Self::start(WATCH, mark, &[])
    }

    /// Starts watching over files that processes with `mark` in their environment make and remove again: if we and they are
    /// killed, it removes what they left.
    pub fn over_files(mark: &str, files: &[PathBuf]) -> io::Result<Self> {
        Self::start(TIDY, mark, files)
    }

    fn start(script: &str, mark: &str, files: &[PathBuf]) -> io::Result<Self> {
        let watcher = Command::new("/bin/sh")
            .args(["-c", script, "stagepost-guard", mark])
            .args(files)
            // It must not take the mark over from us, nor hear what is meant for the terminal's group.
            .env_remove(mark.split('=').next().unwrap_or_default())
            .process_group(0)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { watcher })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut input) = self.watcher.stdin.take() {
            let _ = input.write_all(b"done\n");
        }
        let _ = self.watcher.wait();
    }
}
