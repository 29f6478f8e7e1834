#!/usr/bin/env python3
"""Looks at what a fault left of a project, and says what does not hold.

killsweep runs this after each fault, in a folder with `project/` and `expect.json` (see cases.py). It asks plain git and the
program's own commands, and compares every file byte by byte.
"""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from place import Bad, Place, ask, record, timed  # noqa: E402

NOTES = os.environ.get("CRASH_NOTES")

# A second is what we promise; the machine that runs this may be busy with other things.
RECOVERED_WITHIN = float(os.environ.get("CRASH_PATIENCE", "3"))


class Check:
    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "expect.json")) as file:
            self.expect = json.load(file)
        self.place = Place(os.path.join(folder, "project"))
        self.mode = os.environ.get("CRASH_MODE", "kill")
        self.rc = os.environ["KS_RC"]
        self.hit = os.environ["KS_HIT"] == "1"
        with open(os.environ["KS_ACK"], errors="replace") as file:
            self.ack = file.read()
        self.empty, self.refs = False, {}
        self.beside = os.environ.get("CRASH_BESIDE", "")
        self.acknowledged = self.ack.endswith("\n") and self.expect["acknowledges"] or self.rc == "0"

    def run(self):
        if self.mode == "stop":
            return self.together()
        self.exit_code()
        self.git_is_free()
        self.place.views()
        listed = self.next_command()
        self.is_sound(listed)
        self.refs = self.place.refs() if self.place.has_git else {}
        self.is_whole(listed)
        self.restorable(listed)
        self.again()
        self.goes_on()
        self.views_tell_the_truth()
        # What was cut off does not keep what is old from being given up.
        self.place.stagepost("gc", "-q", "--keep", "1")

    def views_tell_the_truth(self):
        """What the files that others read say is what the store says, once commands went through."""
        if self.expect["again"] is None:
            return
        views = self.place.views()
        # Where nobody reads files, there is nothing to compare them with.
        listed = self.place.log() if views else []
        live = [one for one in listed if one["kind"]["type"] != "safety"]
        for path, view in views.items():
            if path.endswith("checkpoints.json") and "/sessions/" in path:
                shown = {one["checkpoint_id"] for one in view["checkpoints"]}
                known = {one["id"] for one in live if one["run"] == view["session_id"]}
                if shown != known:
                    raise Bad(f"{path} shows {sorted(shown - known)} too much and {sorted(known - shown)} too little")
            if path == ".checkpoint-metadata.json":
                shown = sorted(one["commit_hash"] for one in view)
                tasks = {}
                for one in reversed([one for one in live if one["kind"]["type"] == "stage"]):
                    tasks[one["run"], one["kind"]["stage"]] = one["metadata"]["git"]["commit"]
                if shown != sorted(tasks.values()):
                    raise Bad(f"{path} shows {shown} instead of {sorted(tasks.values())}")
            if path.endswith("/run.json") and self.expect["steps"] and view["status"] != self.expect["steps"]:
                raise Bad(f"{path} shows {view['status']} instead of {self.expect['steps']}")

    def exit_code(self):
        """An error has a name and an exit code; nothing panics."""
        with open(os.environ["KS_ERR"], errors="replace") as file:
            said = file.read()
        if "panicked" in said:
            raise Bad(f"it panicked: {said[-300:]}")
        if self.rc == "killed":
            return
        if self.rc not in ("0", *self.expect["codes"]) and not said.strip():
            raise Bad(f"exit code {self.rc} without a word")
        if self.rc not in ("0", "1", "4", "5", "6", "7", "75", *self.expect["codes"]):
            raise Bad(f"exit code {self.rc}: {said[-300:]}")
        if "database is locked" in said:
            raise Bad("it says that the database is locked")

    def note(self, **what):
        """Writes down what is worth a figure, faults only."""
        if NOTES and os.environ["KS_K"] != "0":
            with open(NOTES, "a") as file:
                file.write(json.dumps(dict(what, fault=os.environ["KS_FAULT"], point=os.environ["KS_POINT"])) + "\n")

    def git_is_free(self):
        left = self.place.left_locks()
        self.note(locks=len(left))
        if left and os.environ.get("CRASH_LOCKS", "none") == "none":
            raise Bad(f"left in the way of the user's git: {left}")

    def next_command(self):
        """The next command works, and puts right what was cut off, in a moment."""
        listed = self.in_a_moment(self.listed)
        left = self.place.left_locks(own=True)
        for lock in filter(self.is_forgotten, left[:]):
            os.remove(os.path.join(self.place.root, lock))
            left.remove(lock)
        if left:
            raise Bad(f"in the way of the user's git after the next command: {left}")
        return listed

    def in_a_moment(self, function):
        """Does what comes next after a fault, whatever it is, and writes down how long it took."""
        result, took, busy = timed(function)
        self.note(took=round(took, 3), busy=round(busy, 3))
        if took > RECOVERED_WITHIN:
            raise Bad(f"the next command took {took:.1f} s")
        return result

    def is_forgotten(self, lock):
        """Whether git was told that it could not remove this lock of its own, and went on with a good conscience. Nobody can know that
        it is not in use; a person removes it, here as there."""
        call, _, path = os.environ.get("KS_POINT", "").partition(" ")
        return self.mode.startswith("errno:") and call in ("unlink", "unlinkat") and path.endswith(lock.removeprefix("../"))

    def listed(self):
        """What is listed. Before the first save of a project, that nothing was saved is an answer."""
        if self.expect["before"]["records"] or self.acknowledged:
            return self.place.log()
        told = self.place.told("log", "--all", "-n", "0", codes=(0, 3))
        self.empty = "error" in told
        return told.get("checkpoints", [])

    def is_sound(self, listed):
        if self.empty:
            return
        told = self.place.told("verify", codes=(0, 5))
        if not told["sound"] and (self.acknowledged or not self.expect["unsound"]):
            raise Bad(f"verify finds damage: {json.dumps(told['damage'])[:300]}")
        runs = {}
        for one in listed:
            runs.setdefault(one["run"], []).append(one["seq"])
        for run, seqs in runs.items():
            whole = list(range(max(seqs), 0, -1))
            if not self.expect["prunes"] and "cleanup" not in self.beside and sorted(seqs, reverse=True) != whole:
                raise Bad(f"run {run} has the places {seqs}")
        if len({one["id"] for one in listed}) != len(listed):
            raise Bad("an id is there twice")

    def is_whole(self, listed):
        """Everything or nothing was done, and what was acknowledged was done."""
        before, after = self.expect["before"], self.expect["after"]
        if self.expect["steps"] and not self.acknowledged:
            # What steps did stays done; going on is what must work.
            return
        now = after["state"] if self.steps_unsynced() else self.place.state(self.refs)
        wanted = [after["state"]] if self.acknowledged else [before["state"], after["state"]]
        if now not in wanted:
            raise Bad(f"half done: {self.difference(now, wanted)}")
        records = [record(one) for one in listed]
        lost = [one for one in before["records"] if one not in records and one in after["records"]]
        if lost:
            raise Bad(f"lost: {lost}")
        if self.acknowledged:
            lost = [one for one in after["records"] if one not in records]
            if lost:
                raise Bad(f"acknowledged but not there: {lost}")
        known = before["records"] + after["records"]
        strange = [one for one in records if one not in known]
        if strange:
            raise Bad(f"nobody asked for {strange}")
        if self.expect["atomic"] and sorted(records) not in (sorted(before["records"]), sorted(after["records"])):
            raise Bad(f"part of the records: {records}")
        self.marked(listed)
        if self.expect["asks"]:
            told, known = self.place.shell(self.expect["asks"]), [part["told"] for part in (before, after)]
            if told not in (known[1:] if self.acknowledged else known):
                raise Bad(f"`{self.expect['asks']}` says {told!r} instead of {known}")

    def steps_unsynced(self):
        """Whether files of the project may be lost without anyone's fault: what a step writes, nobody syncs but the step."""
        return self.expect["steps"] and self.mode == "power"

    def difference(self, now, wanted):
        lines = []
        for other in wanted:
            for part in ("files", "repository"):
                a, b = now[part] or {}, other[part] or {}
                lines += [f"{key}: {a.get(key)!r} not {b.get(key)!r}" for key in sorted(set(a) | set(b)) if a.get(key) != b.get(key)]
            lines.append("or")
        return "; ".join(lines[:-1])[:600]

    def marked(self, listed):
        """A tag of ours has its record, and a record that names a tag has it."""
        if not self.place.has_git:
            return
        tags = {name.removeprefix("refs/tags/") for name in self.refs if name.startswith("refs/tags/checkpoint-")}
        # Those of another program stand there before they are imported.
        tags -= {tag for tag in tags if tag.startswith("checkpoint-3f2b8a52-")}
        named = {one["metadata"]["git"]["tag"] for one in listed
                 if one.get("metadata", {}).get("git", {}).get("tag")}
        named -= {tag for tag in named if tag.startswith("checkpoint-3f2b8a52-")}
        if tags != named:
            raise Bad(f"tags without a record: {sorted(tags - named)}, records without their tag: {sorted(named - tags)}")

    def restorable(self, listed):
        """What is listed comes back byte by byte, and plain git finds nothing missing."""
        if self.place.has_git:
            self.place.git("fsck", "--no-dangling", "--no-progress", "--connectivity-only")
            self.reachable(listed)
        known = {**self.expect["trees"], **self.expect["after_trees"]}
        candidates = [one for one in listed if (one.get("snapshot") or {}).get("tree") in known and one["kind"]["type"] != "safety"]
        chosen = {one["id"]: one for one in candidates[:1] + candidates[-1:]}
        chosen.update({one["id"]: one for one in candidates if one["id"] in self.ack})
        for one in chosen.values():
            copy = os.path.join(self.folder, "copy")
            os.mkdir(copy)
            parts = [name for name in ("project", "main", "bin") if os.path.isdir(os.path.join(self.folder, name))]
            ask("cp", "-a", *parts, "copy", cwd=self.folder)
            back = Place(os.path.join(copy, "project"))
            # As `log` in the project, it is the first that writes in this copy of what the fault left.
            self.in_a_moment(lambda: back.stagepost("restore", one["id"], "--yes"))
            found = {path: what for path, what in back.files().items() if not path.endswith(".ignored")}
            if found != known[one["snapshot"]["tree"]]:
                raise Bad(f"{one['run']}/{one['seq']} comes back as something else: {found}")
            shutil.rmtree(copy)

    def reachable(self, listed):
        """A ref keeps every snapshot, or git would throw it away one day."""
        apart = os.path.join(self.place.common, "stagepost", "snapshots.git")
        refs = self.refs
        if os.path.isdir(apart):
            lines = self.place.git("--git-dir", apart, "for-each-ref", "--format=%(refname) %(objectname)", "refs/stagepost").splitlines()
            refs = dict(line.split(" ") for line in lines)
        held = {name.rsplit("/", 1)[1]: commit for name, commit in refs.items() if name.startswith("refs/stagepost/")}
        for one in listed:
            snapshot = one.get("snapshot")
            if self.expect["unsound"] and not self.acknowledged:
                continue
            if snapshot and held.get(one["id"]) != snapshot["commit"]:
                raise Bad(f"no ref keeps {one['run']}/{one['seq']}")

    def together(self):
        """Another command ran in a gap of this one: both did all of their work or none, and nobody heard of a lock."""
        said = open(os.environ["KS_ERR"], errors="replace").read()
        ended, other = "0", ""
        if "KS_WHILE_OUT" in os.environ:
            ended, other = os.environ["KS_WHILE_RC"], open(os.environ["KS_WHILE_OUT"], errors="replace").read()
        if "locked" in said + other or "panicked" in said + other:
            raise Bad(f"it says: {said[-200:]} {other[-200:]}")
        # Done, and only the files that show it have to wait for the next command: that is told, and is no success.
        if "it was done and recorded" in other:
            ended = "75"
        # Before it is written down that a run or a restore began or a gate was opened, there is none.
        early = ("3",) if self.beside.startswith(("flow", "undo", "gate answer")) else ()
        # What was deleted or undone before it began is not gone on with.
        gone = ("cleanup", "was deleted"), ("undo", "no restore to undo")
        late = ("3",) if any(does in self.beside and why in said for does, why in gone) else ()
        if self.rc not in ("0", "4", "75", *late) or ended not in ("0", "4", "75", *early):
            raise Bad(f"ended with {self.rc} ({said[-200:].strip()}), the other with {ended} ({other[-200:].strip()})")
        if "0" not in (self.rc, ended):
            raise Bad(f"neither got through: {self.rc} ({said[-200:].strip()}), {ended} ({other[-200:].strip()})")
        listed = self.next_command()
        self.is_sound(listed)
        records = [record(one) for one in listed]
        without_places = [[one[0], one[2], one[3]] for one in records]
        if self.rc == "0":
            wanted = [[one[0], one[2], one[3]] for one in self.expect["after"]["records"]]
            lost = [one for one in wanted if one not in without_places and not self.expect["prunes"]]
            if lost:
                raise Bad(f"acknowledged but not there: {lost}")
        if ended == "0" and "beside" in self.beside and self.hit:
            if sum(one[2] == "beside" for one in without_places) != 1:
                raise Bad("the other was acknowledged and is not there once")
        self.refs = self.place.refs() if self.place.has_git else {}
        self.marked(listed)
        self.goes_on()

    def again(self):
        """The same command once more ends where it should have ended."""
        again = self.expect["again"]
        if not again:
            return
        ask("/bin/sh", "-c", again["command"], cwd=self.folder, codes=again["codes"], env={"KS_DIR": self.folder})
        if again["same"] and not self.steps_unsynced() and self.place.state() != self.expect["after"]["state"]:
            raise Bad(f"once more: {self.difference(self.place.state(), [self.expect['after']['state']])}")
        self.place.told("verify")

    def goes_on(self):
        """The user's git and the next save work."""
        with open(os.path.join(self.place.root, "next.txt"), "w") as file:
            file.write("next\n")
        saved = self.place.told("save", "-m", "next")["checkpoint"]
        if self.place.has_git:
            self.place.git("status", "--porcelain")
            self.place.git("add", "-A")
            self.place.git("commit", "-qm", "next")
        os.remove(os.path.join(self.place.root, "next.txt"))
        self.place.stagepost("restore", saved["id"], "next.txt", "--yes")
        with open(os.path.join(self.place.root, "next.txt")) as file:
            if file.read() != "next\n":
                raise Bad("the next save holds something else")
        for extra in self.expect["finally"]:
            ask("/bin/sh", "-c", extra, cwd=self.folder, env={"KS_DIR": self.folder})


def main():
    try:
        Check(os.environ["KS_DIR"]).run()
    except Bad as bad:
        print(bad)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
