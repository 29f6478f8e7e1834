"""What a project looks like from outside: its files, what plain git says of it, what `stagepost log` lists.

Nothing here knows how a store is made. Files are compared byte by byte, the repository by plain git.
"""
import hashlib
import json
import os
import resource
import stat
import subprocess
import time

# Derived from the store, with ids and times of their own; they are looked at separately.
VIEWS = (".flow/maestro", ".claude", "artifacts", ".checkpoint-metadata.", ".agent-progress.", "agent-progress.txt")


class Bad(Exception):
    """A promise that does not hold."""


def ask(program, *args, cwd, codes=(0,), env=None, limit=60):
    """Runs a program and returns what it printed; any other exit code is a broken promise."""
    done = subprocess.run([program, *args], cwd=cwd, capture_output=True, text=True, errors="surrogateescape",
                          stdin=subprocess.DEVNULL, timeout=limit, env=dict(os.environ, **(env or {})))
    if done.returncode not in codes:
        said = (done.stderr + done.stdout).strip()
        said = " ".join(said.split())
        raise Bad(f"`{os.path.basename(program)} {' '.join(args)}` ended with {done.returncode}: {said[-400:]}")
    return done.stdout


def repository(found):
    """Where a work tree keeps what is its own and what it shares with others, if there is git."""
    if os.path.isdir(found):
        return found, found
    if not os.path.isfile(found):
        return None, None
    with open(found) as file:
        own = os.path.normpath(os.path.join(os.path.dirname(found), file.read().removeprefix("gitdir: ").strip()))
    return own, os.path.normpath(os.path.join(own, "../.."))


class Place:
    """A project folder; programs in `bin` beside it go before all others."""

    def __init__(self, root):
        self.root = root
        self.own, self.common = repository(os.path.join(root, ".git"))
        self.has_git = self.common is not None
        self.binary = os.environ["STAGEPOST_BIN"]
        programs = os.path.join(os.path.dirname(root), "bin")
        self.env = {"PATH": programs + ":" + os.environ["PATH"]} if os.path.isdir(programs) else None

    def stagepost(self, *args, codes=(0,)):
        return ask(self.binary, *args, cwd=self.root, codes=codes, env=self.env)

    def shell(self, line, codes=(0,)):
        """What a line for the shell prints, in which `$S` is the program."""
        return ask("/bin/sh", "-c", line, cwd=self.root, codes=codes, env=dict(self.env or {}, S=self.binary))

    def told(self, *args, codes=(0,)):
        return json.loads(self.stagepost(*args, "--json", codes=codes))

    def git(self, *args, codes=(0,)):
        return ask("git", *args, cwd=self.root, codes=codes)

    def files(self):
        """Every file of the project: its kind and what is in it."""
        found = {}
        for folder, folders, names in os.walk(self.root):
            below = os.path.relpath(folder, self.root)
            folders[:] = [name for name in folders if name not in (".git", ".stagepost")]
            links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
            for name in names + links:
                path = os.path.normpath(os.path.join(below, name))
                if path.startswith(VIEWS):
                    continue
                found[path] = self.one_file(path)
        return found

    def views(self):
        """Every view that is JSON, read: one that cannot be read is torn."""
        found = {}
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name not in (".git", ".stagepost")]
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), self.root)
                if not path.startswith(VIEWS) or not name.endswith(".json"):
                    continue
                with open(os.path.join(folder, name), "rb") as file:
                    text = file.read()
                try:
                    found[path] = json.loads(text)
                except ValueError as error:
                    raise Bad(f"the view {path} is torn: {error}: {text[:80]}") from error
        return found

    def one_file(self, path):
        whole = os.path.join(self.root, path)
        about = os.lstat(whole)
        if stat.S_ISLNK(about.st_mode):
            return "link " + os.readlink(whole)
        with open(whole, "rb") as file:
            kind = "run " if about.st_mode & 0o100 else "file "
            return kind + hashlib.sha256(file.read()).hexdigest()

    def refs(self):
        """Every ref and what it names, by one question."""
        lines = self.git("for-each-ref", "--format=%(objectname) %(refname)").splitlines()
        return {name: object for object, name in (line.split(" ", 1) for line in lines)}

    def head(self):
        """The branch that HEAD names, or nothing."""
        with open(os.path.join(self.own, "HEAD")) as file:
            text = file.read().strip()
        if text.endswith("/.invalid"):
            # Refs are no files here.
            return self.git("symbolic-ref", "-q", "HEAD", codes=(0, 1)).strip()
        return text.removeprefix("ref: ") if text.startswith("ref: ") else ""

    def repository(self, refs):
        """Where HEAD, branch, index, tags and stash stand. Names of commits are left out: they hold times."""
        if not self.has_git:
            return None
        log = self.git("log", "--format=%T %s", codes=(0, 128)).splitlines()
        theirs = ("refs/heads/", "refs/stash", "refs/remotes/", "refs/notes/")
        return {"branch": self.head(), "log": log, "index": self.git("ls-files", "-s", "-t"),
                "refs": [name for name in refs if name.startswith(theirs)]}

    def state(self, refs=None):
        """Files and repository; refs that were just asked for need not be asked for again."""
        return {"files": self.files(), "repository": self.repository(refs or (self.has_git and self.refs()))}

    def log(self):
        return self.told("log", "--all", "-n", "0")["checkpoints"]

    def left_locks(self, own=False):
        """Locks in the repository that would stop the user's own git; with `own`, also those that only look like it. Locks
        of our own refs and of our tags stop nobody, and the next command removes them."""
        found = []
        for folder, folders, names in os.walk(self.common or ""):
            folders[:] = [name for name in folders if name not in ("stagepost", "objects")]
            found += [os.path.relpath(os.path.join(folder, name), self.root) for name in names if name.endswith(".lock")]
        return sorted(name for name in found if own or ("stagepost" not in os.path.basename(name) and "/refs/tags/" not in name))


def record(checkpoint):
    """A checkpoint without what differs from run to run."""
    kind = checkpoint["kind"]["type"]
    tree = (checkpoint.get("snapshot") or {}).get("tree", "")
    # A safety checkpoint is about an id.
    text = "" if kind == "safety" else checkpoint.get("description", "")
    # A run of plans gets a name of its own each time.
    run = "plan" if kind == "iteration" else checkpoint["run"]
    return [run, checkpoint["seq"], kind, text, tree]


def timed(function):
    """The result, how long it took, and how long processors worked for it: a machine may be busy with other things."""
    def busy():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime
    start, before = time.monotonic(), busy()
    result = function()
    return result, time.monotonic() - start, busy() - before
