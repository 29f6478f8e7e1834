"""The world that the program under test runs in: its own home, so that the user's settings change nothing."""
import os
import shutil
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SETTINGS = """[user]
\tname = Tester
\temail = tester@example.com
[gc]
\tauto = 0
[maintenance]
\tauto = false
[init]
\ttemplateDir = ~/template
"""


def program():
    named = os.environ.get("STAGEPOST_BIN")
    tries = [named] if named else [os.path.join(ROOT, "target", kind, "stagepost") for kind in ("release", "debug")]
    for path in tries:
        if os.access(path, os.X_OK):
            return os.path.abspath(path)
    sys.exit(f"crash: no program at {tries}: build it with `cargo build -p stagepost-cli`")


def settle(work):
    """Makes a home in `work` and points everything there."""
    home = os.path.join(work, "home")
    os.makedirs(home)
    with open(os.path.join(home, ".gitconfig"), "w") as file:
        file.write(SETTINGS)
    # What git puts into a new repository, without its examples of hooks: they would be a third of all files to copy.
    for name in ("hooks", "info"):
        os.makedirs(os.path.join(home, "template", name))
    with open(os.path.join(home, "template", "info", "exclude"), "w") as file:
        file.write("# What only you ignore.\n")
    # A copy: somebody may build while this runs.
    binary = shutil.copy(program(), os.path.join(work, "stagepost"))
    for name in list(os.environ):
        if name.startswith(("GIT_", "STAGEPOST_", "XDG_")):
            del os.environ[name]
    os.environ.update(HOME=home, LC_ALL="C", STAGEPOST_BIN=binary)
