#!/usr/bin/env python3
"""A stand-in for the published design of plans: JSON files that are written in place, and errors of saving that nobody hears of.

    plans.py save RUN ITERATION...      what an orchestrator does after each iteration, and the final plan
    plans.py verify                     what killsweep asks after a fault: every file can be read, what was acknowledged is there

Built from the description of its files and of how its program writes them, not from its code.
"""
import json
import os
import sys

PLANS = "artifacts/song/checkpoints/plans"


def write(name, body):
    path = os.path.join(PLANS, f"song_{name}.json")
    try:
        os.makedirs(PLANS, exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(body, indent=2, ensure_ascii=False))
    except OSError:
        pass  # as published: saving never disturbs the run


def payload(kind, run, iteration):
    plan = {"made_by": f"{run} {iteration}", "sections": [f"section {n} " * 40 for n in range(5)]}
    return {"evaluation": {"score": 6}, "plan_sections": 5, "of": f"{run} {iteration}"} if kind == "evaluation" else {"plan": plan}


def save(run, iterations):
    for iteration in iterations:
        for kind in ("raw", "evaluation"):
            body = payload(kind, run, iteration)
            write(kind, body)
            write(f"{run}_iter{iteration:02d}_{kind}", {"run_id": run, "iteration": iteration, "checkpoint_type": kind, **body})
            print(f"saved {run} {iteration} {kind}", flush=True)
    write("final", {"status": "SUCCESS", **payload("raw", run, iterations[-1])})
    print(f"saved {run} {iterations[-1]} final", flush=True)


def read(name):
    with open(os.path.join(PLANS, f"song_{name}.json"), encoding="utf-8") as file:
        return json.load(file)


def is_there(run, iteration, kind):
    """Whether what was acknowledged can be read as it was saved."""
    try:
        if kind == "final":
            return read("final") == {"status": "SUCCESS", **payload("raw", run, iteration)}
        found = read(f"{run}_iter{iteration:02d}_{kind}")
    except (OSError, ValueError):
        return False
    return found == {"run_id": run, "iteration": iteration, "checkpoint_type": kind, **payload(kind, run, iteration)}


def verify():
    for name in sorted(os.listdir(PLANS)):
        read(name.removeprefix("song_").removesuffix(".json"))
    newest = {}
    for line in open(os.environ["KS_ACK"]):
        _, run, iteration, kind = line.split()
        if not is_there(run, int(iteration), kind):
            sys.exit(f"acknowledged but not there: {line.strip()}")
        # One that is written and not yet acknowledged may stand there.
        newest[kind] = [payload(kind, run, int(iteration) + later) for later in (0, 1)]
    if any(kind != "final" and read(kind) not in bodies for kind, bodies in newest.items()):
        sys.exit("acknowledged, but the newest is an older one")


if __name__ == "__main__":
    verify() if sys.argv[1] == "verify" else save(sys.argv[2], [int(number) for number in sys.argv[3:]])
