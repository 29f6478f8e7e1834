#!/usr/bin/env python3
"""A stand-in for the published design of runs: a lock file, records that are replaced by a rename, checkpoints written in place.

    runs.py create STEP...      a checkpoint after each of these steps
    runs.py verify              what killsweep asks after a fault: everything can be read, what was acknowledged is there, the next step works

Built from the description of its files and of how its program writes them, not from its code. Checksums are left out: its validator hashes
another text than its writer, and so refuses every checkpoint, fault or not. What was pruned is known by the registry.
"""
import contextlib
import json
import os
import random
import subprocess
import sys
import time

RUN = ".claude/context/runtime/runs/run-001/"
LOCK, RECORD, REGISTRY, CHECKPOINTS = RUN + "run.json.lock", RUN + "run.json", RUN + "artifact-registry.json", RUN + "checkpoints/"


@contextlib.contextmanager
def locked(stale=30, patience=5):
    until, lock = time.time() + patience, None
    while lock is None:
        try:
            lock = os.open(LOCK, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            with contextlib.suppress(OSError):
                time.time() - os.stat(LOCK).st_mtime > stale and os.unlink(LOCK)
            if time.time() > until:
                sys.exit("the run is locked")
            time.sleep(0.05)
    try:
        os.write(lock, json.dumps({"pid": os.getpid(), "timestamp": time.time()}).encode())
        yield os.close(lock)
    finally:
        os.unlink(LOCK)


def load(path, empty):
    return json.load(open(path)) if os.path.exists(path) else empty


def write(path, body):
    with open(path, "w") as file:
        file.write(json.dumps(body, indent=2))


def replace(path, body):
    beside = f"{path}.tmp.{time.time_ns() // 1_000_000}.{random.randrange(1 << 30)}"
    write(beside, body)
    os.rename(beside, path)


def create(step):
    os.makedirs(CHECKPOINTS, exist_ok=True)
    with locked():
        replace(RECORD, record := load(RECORD, {"run_id": "run-001", "text": "word " * 200}) | {"current_step": step})
    name = f"checkpoint-step-{step}-{time.time_ns() // 1_000_000}"
    write(CHECKPOINTS + name + ".json", {"checkpoint_id": name, "run_record": record, "artifact_registry": load(REGISTRY, {})})
    with locked():
        registry = load(REGISTRY, {"artifacts": {}})
        replace(REGISTRY, {"artifacts": registry["artifacts"] | {name: {"name": name, "step": step}}})
    for old in sorted(os.listdir(CHECKPOINTS), key=lambda file: int(file.split("-")[3][:-5]))[:-5]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(CHECKPOINTS + old)
    print(f"created {name}", flush=True)


def verify():
    load(RECORD, {})
    registry = load(REGISTRY, {"artifacts": {}})["artifacts"]
    found = {name[:-5]: load(CHECKPOINTS + name, {}) for name in os.listdir(CHECKPOINTS)}
    lost = [name for name in (line.split()[1] for line in open(os.environ["KS_ACK"])) if name not in registry or name not in found]
    if lost:
        sys.exit(f"acknowledged but not there: {lost}")
    subprocess.run([sys.executable, __file__, "create", "99"], check=True)


if __name__ == "__main__":
    verify() if sys.argv[1] == "verify" else [create(int(step)) for step in sys.argv[2:]]
