#!/usr/bin/env python3
"""A stand-in for the published design of answers: what a person said is in memory, and nowhere else.

    answers.py      reads `NAME ANSWER`, says that it is kept; `?` tells the names that it knows

Built from the description of how its program keeps answers, not from its code.
"""
import sys

KNOWN = {}
for line in sys.stdin:
    name, _, answer = line.strip().partition(" ")
    if name == "?":
        print(" ".join(KNOWN), flush=True)
    else:
        KNOWN[name] = answer
        print(f"kept {name}", flush=True)
