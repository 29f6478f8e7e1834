//! Ending what we started when we ourselves are killed and can no longer do it.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::Identity;

/// Waits for a word, or for the end of us. In the second case it kills every process with the mark, those of the groups that
/// are listed, and what all these started, and looks again until it has found none twice: one of them may just have
/// started another, or may itself be just starting and not have its mark yet. That `grep` fails says nothing: a process
/// that ends while it looks makes it fail.
///
/// What a process was called stands in brackets in its line and may have brackets and blanks, but no end of line. A
/// group counts by who leads it: if that number is somebody else's by now, so is the group.
const WATCH: &str = r#"
trap '' INT TERM HUP QUIT
read -r word && [ "$word" = done ] && exit 0
none=0
seen=
boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)
for again in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  marked=$(grep -lszx -e "$1" /proc/[0-9]*/environ 2>/dev/null)
  found=$({
    printf '%s\n' $marked $seen
    [ -z "$2" ] || cat -- "$2"
    cat /proc/[0-9]*/stat
  } 2>/dev/null | awk -v self="$$" -v driver="$3" -v boot="$boot" '
    /^\/proc\// { split($0, part, "/"); ours[part[3]] = 1; next }
    /^=/ { split($0, part, "="); leads[part[2]] = part[3]; next }
    /^driver\t/ { split($0, part, "\t"); mine = (part[2] " " part[3] == driver); next }
    /^process\t/ { split($0, part, "\t"); if (mine && part[4] == boot) leads[part[2]] = part[3]; next }
    /^over\t/ { split($0, part, "\t"); if (part[2] in leads && leads[part[2]] == part[3]) delete leads[part[2]]; next }
    /^[0-9]+ \(/ {
      pid = $1; sub(/^.*\) /, "")
      if ($1 == "Z" || $1 == "X" || pid == self || pid == 1) next
      parent[pid] = $2; group[pid] = $3; started[pid] = $20
    }
    END {
      for (pid in parent) {
        lead = group[pid]
        if (lead in leads && (!(lead in started) || started[lead] == leads[lead])) ours[pid] = 1
      }
      do {
        more = 0
        for (pid in parent) if (!(pid in ours) && parent[pid] in ours) { ours[pid] = 1; more = 1 }
      } while (more)
      for (pid in ours) if (pid in parent) print "=" pid "=" started[pid]
    }')
  # Without awk there are still the marks.
  for file in $marked; do
    pid=${file#/proc/}; pid=${pid%/environ}
    [ "$pid" = "$$" ] || kill -KILL "$pid" 2>/dev/null
  done
  for one in $found; do
    pid=${one#=}
    kill -KILL "${pid%=*}" 2>/dev/null
  done
  if [ -z "$marked$found" ]; then
    none=$((none + 1))
    [ "$none" -ge 2 ] && exit 0
  else
    none=0
    seen="$seen $found"
  fi
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
    /// kills them and what they started.
    pub fn over(mark: &str) -> io::Result<Self> {
        Self::start(WATCH, mark, [OsStr::new("")])
    }

    /// As [`Guard::over`], and also over the groups in a list that we write: a line with `driver`, our number and start, and after
    /// it one for each program with `process`, its number, start and boot, and one with `over` and the same when nothing of
    /// its group is left, all with tabs between. Lines after those words of another process are not ours. So also a
    /// program is found that has no environment any more.
    pub fn over_listed(mark: &str, list: &Path) -> io::Result<Self> {
        let ours = Identity::of(std::process::id().cast_signed());
        let driver = format!("{} {}", ours.pid, ours.started);
        Self::start(WATCH, mark, [list.as_os_str(), OsStr::new(&driver)])
    }

    /// Starts watching over files that processes with `mark` in their environment make and remove again: if we and they are
    /// killed, it removes what they left.
    pub fn over_files(mark: &str, files: &[PathBuf]) -> io::Result<Self> {
        Self::start(TIDY, mark, files)
    }

    fn start(
        script: &str,
        mark: &str,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> io::Result<Self> {
        let watcher = Command::new("/bin/sh")
            .args(["-c", script, "stagepost-guard", mark])
            .args(arguments)
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
