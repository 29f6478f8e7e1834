#!/usr/bin/env python3
"""Many processes at once: writers, readers, gc and restores, and one of the writers killed every 100 ms.

    tests/crash/many.py [--writers 4] [--saves 25]

What must hold: nobody ever hears of a lock or gives up, what was acknowledged is there once, what was killed is there once or not
at all, the places in the run have no gap, and everything is sound and comes back.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from environment import settle  # noqa: E402
from place import Bad, Place  # noqa: E402

PATIENT = ["--busy-timeout", "120s"]


class Crowd:
    def __init__(self, root, writers, saves):
        self.root, self.writers, self.saves = root, writers, saves
        self.binary = os.environ["STAGEPOST_BIN"]
        self.guard = threading.Lock()
        self.running, self.acknowledged, self.killed, self.faults = {}, {}, set(), []
        self.beside = {"reads": 0, "gcs": 0, "restores": 0}
        self.over = threading.Event()

    def call(self, *args, name=None, stdin=None):
        """Runs the program; says how it ended and what it printed."""
        child = subprocess.Popen([self.binary, *PATIENT, *args], cwd=self.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        if name:
            with self.guard:
                self.running[name] = child
        out, err = child.communicate(stdin)
        with self.guard:
            self.running.pop(name, None)
        if "locked" in err or "panicked" in err or child.returncode == 75:
            self.faults.append(f"{args}: {child.returncode}: {err.strip()}")
        return child.returncode, out, err

    def write(self, number):
        for count in range(self.saves):
            name = f"writer {number} save {count}"
            files = [] if count % 10 == 0 else ["--no-files"]
            state = json.dumps({"writer": number, "count": count, "text": "word " * (count % 50)})
            code, out, err = self.call("save", "-q", "-m", name, "--run", "many", "--state", "-", *files, name=name, stdin=state)
            if code == 0:
                self.acknowledged[name] = (out.strip(), state)
            elif code == -9:
                self.killed.add(name)
            else:
                self.faults.append(f"{name}: {code}: {err.strip()}")

    def kill(self):
        chance = random.Random(1)
        while not self.over.wait(0.1):
            with self.guard:
                if self.running:
                    self.running[chance.choice(sorted(self.running))].kill()

    def repeat(self, what, codes, *args):
        while not self.over.is_set():
            code, _, err = self.call(*args)
            self.beside[what] += 1
            if code not in codes:
                self.faults.append(f"{args}: {code}: {err.strip()}")

    def gather(self):
        beside = [threading.Thread(target=self.kill), threading.Thread(target=self.repeat, args=("reads", (0,), "log", "--all", "--json")),
                  threading.Thread(target=self.repeat, args=("gcs", (0,), "gc")),
                  threading.Thread(target=self.repeat, args=("restores", (0, 4), "restore", "first", "--yes", "-q"))]
        writers = [threading.Thread(target=self.write, args=(number,)) for number in range(self.writers)]
        for thread in beside + writers:
            thread.start()
        for thread in writers:
            thread.join()
        self.over.set()
        for thread in beside:
            thread.join()

    def check(self):
        if self.faults:
            raise Bad(f"{len(self.faults)} faults, the first: {self.faults[0]}")
        place = Place(self.root)
        if not place.told("verify")["sound"]:
            raise Bad("verify finds damage")
        many = [one for one in place.log() if one["run"] == "many"]
        if sorted(one["seq"] for one in many) != list(range(1, len(many) + 1)):
            raise Bad("there is a gap in the run, or a place is there twice")
        found = {}
        for one in many:
            found.setdefault(one["description"], []).append(one["id"])
        twice = [name for name, ids in found.items() if len(ids) > 1]
        lost = [name for name, (id_, _) in self.acknowledged.items() if found.get(name) != [id_]]
        strange = [name for name in found if name not in self.acknowledged and name not in self.killed]
        if twice or lost or strange:
            raise Bad(f"twice: {twice}; lost: {lost}; strange: {strange}")
        for name, (id_, state) in random.Random(2).sample(sorted(self.acknowledged.items()), min(20, len(self.acknowledged))):
            if place.stagepost("show", id_, "--artifact", "state") != state:
                raise Bad(f"{name} comes back as something else")
        return len(many)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--saves", type=int, default=25)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stagepost-many.") as work:
        settle(work)
        root = os.path.join(work, "project")
        os.mkdir(root)
        place = Place(root)
        subprocess.run(["git", "init", "-q", root], check=True)
        for number in range(40):
            with open(os.path.join(root, f"file {number}.txt"), "w") as file:
                file.write(f"{number}\n" * 20)
        place.stagepost("save", "-q", "-m", "first", "--label", "first")
        os.remove(os.path.join(root, "file 7.txt"))
        crowd = Crowd(root, arguments.writers, arguments.saves)
        start = time.monotonic()
        crowd.gather()
        try:
            there = crowd.check()
        except Bad as bad:
            print(f"many at once: {bad}")
            return 1
        print(f"many at once: {arguments.writers} x {arguments.saves} saves: {len(crowd.acknowledged)} acknowledged and there, "
              f"{len(crowd.killed)} killed of which {there - len(crowd.acknowledged)} are there; beside them {crowd.beside}; "
              f"{time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
