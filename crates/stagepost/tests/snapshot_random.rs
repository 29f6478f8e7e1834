//! Random histories of a work tree: after every step the tree is the one of `git add -A`.

#![allow(clippy::unwrap_used)]

mod snapshot_support;

use std::fs;
use std::path::{Path, PathBuf};

use snapshot_support::{Fixture, id};
use stagepost::snapshot::{Capture, Keep, Way};

/// A small generator of numbers: the same seed gives the same history on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

const NAMES: [&str; 16] = [
    "a",
    "b.txt",
    "c.log",
    "d",
    "e.tmp",
    "keep.log",
    "sp ace",
    "x.bin",
    "build",
    "src",
    "déjà",
    "Z",
    "a.b",
    "a-b",
    "lib",
    "new\nline",
];
const CONTENTS: [&str; 8] =
    ["", "one\n", "two\r\nlines\r\n", "mixed\r\nends\n", "$Id$\n", "bin\0ary\r\n", "x", "long "];
const IGNORES: [&str; 9] = [
    "*.log\n",
    "build/\n",
    "*.tmp\n!keep.log\n",
    "/a\n",
    "src/**\n!src/b.txt\n",
    "d\n",
    "",
    "*\n!*/\n!*.txt\n",
    "\\#x\nlib\n",
];
const ATTRIBUTES: [&str; 6] = [
    "* text=auto\n",
    "*.txt text eol=crlf\n",
    "*.txt ident\n",
    "*.bin -text\n",
    "",
    "*.txt working-tree-encoding=latin1\n",
];

fn random_path(random: &mut Random, root: &Path) -> PathBuf {
    let mut path = root.to_owned();
    for _ in 0..random.below(3) {
        path.push(random.pick(&NAMES));
    }
    path.join(random.pick(&NAMES))
}

/// Makes room for a file: a folder of that name or a file in place of a parent goes.
fn clear(root: &Path, path: &Path) {
    for part in path.ancestors().skip(1).take_while(|part| *part != root) {
        if part.symlink_metadata().is_ok_and(|metadata| !metadata.is_dir()) {
            fs::remove_file(part).unwrap();
        }
    }
    remove(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
}

fn remove(path: &Path) {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

fn step(random: &mut Random, fixture: &Fixture) {
    let root = &fixture.root;
    let path = random_path(random, root);
    let write = |random: &mut Random, path: &Path| {
        let content = random.pick(&CONTENTS).repeat(1 + random.below(3));
        fs::write(path, content).unwrap();
    };
    match random.below(16) {
        0..6 => {
            clear(root, &path);
            write(random, &path);
        }
        6 if path.is_file() => write(random, &path),
        7 => remove(&path),
        8 => {
            clear(root, &path);
            std::os::unix::fs::symlink(random.pick(&NAMES), &path).unwrap();
        }
        9 if path.is_file() && !path.is_symlink() => {
            use std::os::unix::fs::PermissionsExt;
            let mode = if random.below(2) == 0 { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        10 => {
            let folder = random_path(random, root);
            if folder.is_dir() && !folder.is_symlink() {
                fs::write(folder.join(".gitignore"), random.pick(&IGNORES)).unwrap();
            } else {
                fs::write(root.join(".gitignore"), random.pick(&IGNORES)).unwrap();
            }
        }
        11 => fs::write(root.join(".gitattributes"), random.pick(&ATTRIBUTES)).unwrap(),
        12 => drop(fixture.command(root).args(["add", "-A"]).output()),
        13 => drop(fixture.command(root).args(["commit", "-qam", "x"]).output()),
        14 => {
            let name = path.strip_prefix(root).unwrap();
            drop(fixture.command(root).args(["add", "-f", "--"]).arg(name).output());
        }
        15 => drop(fixture.command(root).args(["rm", "-rq", "--cached", "--", "a", "b.txt", "src"]).output()),
        _ => {
            let target = random_path(random, root);
            if path.symlink_metadata().is_ok() && !target.starts_with(&path) && !path.starts_with(&target) {
                clear(root, &target);
                // Clearing the way may have taken the file itself.
                let _ = fs::rename(&path, &target);
            }
        }
    }
}

fn history(seed: u64, steps: usize) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let fixture = if seed.is_multiple_of(4) { Fixture::unborn(&[]) } else { Fixture::new() };
    if seed.is_multiple_of(3) {
        fixture.git(&["config", "core.autocrlf", if seed.is_multiple_of(2) { "true" } else { "input" }]);
    }
    let snapshots = fixture.open_as(&fixture.root, Keep::Repository, Way::Fastest);
    for number in 0..steps {
        for _ in 0..=random.below(4) {
            step(&mut random, &fixture);
        }
        let expected = fixture.oracle();
        let snapshot = snapshots.capture(&id(), &Capture::default()).unwrap();
        assert_eq!(
            snapshot.tree.as_str(),
            expected,
            "seed {seed}, step {number}: {}\n{}",
            fixture.explain(&expected, snapshot.tree.as_str()),
            fixture.git(&["status", "--short", "--ignored"]),
        );
        if number % 4 == 3 {
            snapshots.check(&snapshot).unwrap();
        }
    }
    let state = fixture.root.join(".git/stagepost/snapshots/main/state");
    assert!(state.exists(), "seed {seed} never went the fast way");
    let fsck = fixture.command(&fixture.root).args(["fsck", "--strict"]).output().unwrap();
    assert!(fsck.status.success(), "{}", String::from_utf8_lossy(&fsck.stderr));
}

#[test]
fn every_step_of_random_histories_gives_the_tree_of_git() {
    let seeds = std::env::var("STAGEPOST_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    let first = std::env::var("STAGEPOST_FIRST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    std::thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || {
                (first..first + seeds).filter(|seed| seed % 2 == half).for_each(|seed| history(seed, 20))
            });
        }
    });
}
