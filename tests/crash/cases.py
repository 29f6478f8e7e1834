"""The table of cases: how each project is made, the command that meets faults, and what must hold after it.

A case makes a folder with `project/` and `expect.json`. What the command should have done is learned by running it once
without a fault on a copy.
"""
import hashlib
import json
import os
import shutil
import subprocess

from place import Bad, Place, ask, record

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../crates/stagepost/tests/golden/format-1")
SESSION = "--session-id s1"


class Making:
    """A project that is being made for a case."""

    def __init__(self, folder, git=True):
        self.folder = folder
        self.root = os.path.join(folder, "project")
        os.makedirs(folder)
        if git == "worktree":
            self.linked()
        else:
            os.mkdir(self.root)
        if git and git != "worktree":
            self.git("init", "-q", "-b", "main", *[git] * (git is not True))
        self.trees = {}

    def linked(self):
        """A work tree beside its repository, found by a path that holds in a copy of both."""
        main = os.path.join(self.folder, "main")
        ask("git", "init", "-q", "-b", "main", main, cwd=self.folder)
        ask("git", "commit", "-q", "--allow-empty", "-m", "before", cwd=main)
        ask("git", "worktree", "add", "-q", "--lock", "-b", "work", self.root, cwd=main)
        with open(os.path.join(self.root, ".git"), "w") as file:
            file.write("gitdir: ../main/.git/worktrees/project\n")

    @property
    def place(self):
        return Place(self.root)

    def git(self, *args):
        return ask("git", *args, cwd=self.root)

    def stagepost(self, *args, codes=(0,)):
        return self.place.stagepost(*args, codes=codes)

    def write(self, path, text, mode=0o644):
        whole = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        if os.path.lexists(whole):
            os.remove(whole)
        with open(whole, "w") as file:
            file.write(text)
        os.chmod(whole, mode)

    def link(self, path, to):
        whole = os.path.join(self.root, path)
        if os.path.lexists(whole):
            os.remove(whole)
        os.symlink(to, whole)

    def remove(self, path):
        os.remove(os.path.join(self.root, path))

    def first(self):
        """Files of every sort, committed where there is git."""
        self.write("read me.txt", "one\n")
        self.write("src/main.c", "int main(void) { return 1; }\n" * 40)
        self.write("src/deep/er/data.bin", "".join(chr(33 + (i * 7919) % 90) for i in range(9000)))
        self.write("tool.sh", "#!/bin/sh\necho one\n", 0o755)
        self.write("goes.txt", "this one goes\n")
        self.write("becomes", "a file\n")
        self.link("link", "src/main.c")
        self.write(".gitignore", "*.ignored\n")
        self.write("kept.ignored", "not ours\n")
        if self.place.has_git:
            self.git("add", "-A")
            self.git("commit", "-qm", "first")

    def change(self):
        """Every sort of change: written anew, deleted, added, another kind, staged or not."""
        self.write("read me.txt", "two\n")
        self.write("src/main.c", "int main(void) { return 2; }\n" * 50)
        self.remove("goes.txt")
        self.remove("becomes")
        self.write("becomes/a folder.txt", "now a folder\n")
        self.link("link", "tool.sh")
        self.write("tool.sh", "#!/bin/sh\necho two\n", 0o644)
        self.write("new/one.txt", "new\n")
        self.write("new/two.txt", "new too\n")
        if self.place.has_git:
            self.git("add", "read me.txt", "new/one.txt")

    def commit(self, text="second"):
        self.git("add", "-A")
        self.git("commit", "-qm", text)

    def remember(self):
        """Remembers the files that a checkpoint just made must hold."""
        one = self.place.log()[0]
        if one.get("snapshot"):
            files = {path: what for path, what in self.place.files().items() if not path.endswith(".ignored")}
            self.trees[one["snapshot"]["tree"]] = files

    def save(self, text, *args):
        saved = self.stagepost("save", "-q", "-m", text, *args).strip()
        self.remember()
        return saved


CASES = {}


def case(name, *, short=True, codes=(), atomic=False, prunes=False, acknowledges=True, again=None, power=True,
         steps=False, unsound=False, asks=None):
    """Enters a case into the table. The function returns the command. `asks` is a line for the shell that says in words what was
    done, as before or as after; `steps` how a run of steps stands after it; `unsound` is what is out of order until it was done."""
    def enter(make):
        CASES[name] = {"make": make, "short": short, "power": power, "expect": {
            "codes": [str(code) for code in codes], "atomic": atomic, "prunes": prunes,
            "acknowledges": acknowledges, "steps": "completed" if steps is True else steps, "again": again,
            "unsound": unsound, "asks": asks, "finally": []}}
        return make
    return enter


SAME = {"same": True, "codes": [0]}
MORE = {"same": False, "codes": [0]}


@case("init", again=SAME, atomic=True)
def init(making):
    making.first()
    return "init"


@case("save-first", atomic=True, again=MORE)
def save_first(making):
    making.first()
    making.change()
    return "save -q -m saved"


@case("save-first-plain", atomic=True, again=MORE)
def save_first_plain(making):
    making.first()
    making.stagepost("init")
    return "save -q -m saved"


save_first_plain.git = False


@case("save", atomic=True, again=MORE)
def save(making):
    making.first()
    making.save("one")
    making.change()
    making.write("state.json", json.dumps({"messages": [{"n": n, "text": "word " * 30} for n in range(60)]}))
    return "save -q -m saved --state state.json --label good"


@case("save-sha256", atomic=True, again=MORE, short=False)
def save_sha256(making):
    return save(making)


save_sha256.git = "--object-format=sha256"


@case("save-plain", atomic=True, again=MORE)
def save_plain(making):
    making.first()
    making.stagepost("init")
    making.save("one")
    making.change()
    return "save -q -m saved"


save_plain.git = False


@case("save-16th", atomic=True, again=MORE, short=False)
def save_16th(making):
    """The save that merges packs and brings the lookup tables up to date."""
    making.first()
    for number in range(16):
        making.write("counted.txt", f"{number}\n")
        making.save(f"number {number}")
    making.change()
    return "save -q -m saved"


@case("save-long", atomic=True, again=MORE, short=False)
def save_long(making):
    """The save that finds the log of the database long, and closes it in full."""
    making.first()
    log = os.path.join(making.root, ".git/stagepost/store.db-wal")
    making.save("one")
    for number in range(200):
        if os.path.getsize(log) > 120 << 10:
            break
        making.stagepost("save", "-q", "-m", f"number {number}")
    else:
        raise Bad("the log does not become long")
    making.change()
    making.write("state.json", json.dumps([{"n": n, "text": "word " * 30} for n in range(200)]))
    return "save -q -m saved --state state.json"


def before_restore(making):
    making.first()
    target = making.save("one")
    making.change()
    making.commit()
    making.save("two")
    making.write("read me.txt", "three, not saved\n")
    making.write("unsaved.txt", "nobody else has this\n")
    making.git("add", "unsaved.txt")
    return target


@case("restore-files", again=SAME)
def restore_files(making):
    return f"restore -q --yes {before_restore(making)}"


@case("restore-mixed", again=SAME)
def restore_mixed(making):
    return f"restore -q --yes --mode mixed {before_restore(making)}"


@case("restore-hard", again=SAME)
def restore_hard(making):
    return f"restore -q --yes --mode hard {before_restore(making)}"


@case("restore-many", again=SAME, short=False)
def restore_many(making):
    """So many files and folders that they are synced together."""
    making.first()
    paths = [f"many/{number}/file.txt" for number in range(70)]
    for path in paths:
        making.write(path, f"one: {path}\n")
    target = making.save("one")
    # ext4 writes what is renamed over another file by itself, so half of them are not there.
    for number, path in enumerate(paths):
        if number % 2:
            making.write(path, f"two: {path}\n")
        else:
            making.remove(path)
    making.save("two")
    return f"restore -q --yes {target}"


@case("restore-hard-branch-gone", again=SAME, short=False)
def restore_hard_branch_gone(making):
    """The branch that the checkpoint was made on was deleted meanwhile."""
    making.first()
    making.git("switch", "-q", "-c", "topic")
    making.write("src/main.c", "int main(void) { return 3; }\n")
    making.commit("on the branch")
    target = making.save("one")
    making.git("switch", "-q", "main")
    making.git("branch", "-q", "-D", "topic")
    making.change()
    return f"restore -q --yes --mode hard {target}"


@case("restore-hard-unborn", again=SAME, short=False)
def restore_hard_unborn(making):
    """The checkpoint was made before the first commit."""
    making.write("read me.txt", "one\n")
    making.git("add", "-A")
    target = making.save("one")
    making.first()
    making.change()
    return f"restore -q --yes --mode hard {target}"


@case("restore-plain", again=SAME)
def restore_plain(making):
    making.first()
    making.stagepost("init")
    target = making.save("one")
    making.change()
    making.save("two")
    making.write("read me.txt", "three, not saved\n")
    return f"restore -q --yes {target}"


restore_plain.git = False


@case("undo")
def undo(making):
    making.stagepost("restore", "-q", "--yes", "--mode", "hard", before_restore(making))
    return "undo -q"


@case("redo", short=False)
def redo(making):
    making.stagepost("restore", "-q", "--yes", "--mode", "hard", before_restore(making))
    making.stagepost("undo", "-q")
    return "redo -q"


def session(making, text, *args):
    made = making.stagepost("session", "create", *SESSION.split(), "--phase", "implement", "--description", text, *args)
    making.remember()
    return json.loads(made)["checkpoint_id"]


def with_sessions(making):
    making.first()
    target = session(making, "one")
    making.change()
    session(making, "two")
    return target


@case("session-create", atomic=True, again=MORE)
def session_create(making):
    with_sessions(making)
    making.write("read me.txt", "three\n")
    return f"session create {SESSION} --phase validate --description three"


def hooked(making, **hooks):
    with_sessions(making)
    for name, script in hooks.items():
        making.write(".git/hooks/" + name.replace("_", "-"), "#!/bin/sh\n" + script + "\n", mode=0o755)
    making.write("read me.txt", "three\n")
    return f"session create {SESSION} --phase validate --description three"


@case("session-create-hooks", atomic=True, again=MORE, short=False)
def session_create_hooks(making):
    return hooked(making, pre_commit="exit 0", commit_msg='echo "TICKET-1 $(cat "$1")" > "$1"', post_commit="exit 0")


@case("session-create-named-hooks", atomic=True, again=MORE, short=False)
def session_create_named_hooks(making):
    """Hooks that the configuration names; a git that does not know them leaves them alone."""
    making.git("config", "hook.one.event", "pre-commit")
    making.git("config", "hook.one.command", "true")
    return session_create(making)


OLD_GIT = """#!/bin/sh
# As git was before 2.36: there is no `git hook`.
skip=
for word; do
  if test -n "$skip"; then skip=; continue; fi
  case $word in
    -c | -C | --git-dir | --work-tree | --namespace) skip=1 ;;
    --list-cmds=builtins) {git} "$@" | grep -vx hook; exit ;;
    -*) ;;
    hook) echo "git: 'hook' is not a git command. See 'git --help'." >&2; exit 1 ;;
    *) break ;;
  esac
done
exec {git} "$@"
"""


@case("session-create-old-git", atomic=True, again=MORE, short=False)
def session_create_old_git(making):
    making.write("../bin/git", OLD_GIT.format(git=shutil.which("git")), mode=0o755)
    return hooked(making, pre_commit="exit 0", commit_msg='echo "TICKET-1 $(cat "$1")" > "$1"')


@case("session-create-worktree", atomic=True, again=MORE, short=False)
def session_create_worktree(making):
    return session_create(making)


session_create_worktree.git = "worktree"


@case("session-create-detached", atomic=True, again=MORE, short=False)
def session_create_detached(making):
    with_sessions(making)
    making.git("checkout", "-q", "--detach")
    making.write("read me.txt", "three\n")
    return f"session create {SESSION} --phase validate --description three"


@case("session-create-refs-hook", atomic=True, again=MORE, short=False)
def session_create_refs_hook(making):
    return hooked(making, reference_transaction="exit 0")


@case("session-create-first", atomic=True, again=MORE, short=False)
def session_create_first(making):
    making.first()
    making.change()
    return f"session create {SESSION} --phase plan --description one"


@case("session-create-beside", atomic=True, again=MORE, short=False)
def session_create_beside(making):
    with_sessions(making)
    making.write("read me.txt", "three\n")
    return f"session create {SESSION} --phase validate --description three --no-commit"


@case("session-rollback", again=SAME)
def session_rollback(making):
    target = with_sessions(making)
    making.write("unsaved.txt", "nobody else has this\n")
    return f"session rollback {SESSION} --checkpoint-id {target} --hard-reset"


@case("session-rollback-mixed", again=SAME, short=False)
def session_rollback_mixed(making):
    return f"session rollback {SESSION} --checkpoint-id {with_sessions(making)} --keep-changes"


@case("session-delete", prunes=True, atomic=True)
def session_delete(making):
    return f"session delete {SESSION} --checkpoint-id {with_sessions(making)}"


@case("session-delete-packed", prunes=True, atomic=True, short=False)
def session_delete_packed(making):
    """The tag is a line in the file of all refs, as `git gc` leaves it."""
    command = session_delete(making)
    making.git("pack-refs", "--all")
    return command


def with_tasks(making):
    making.first()
    making.stagepost("task", "save", "--task", "7", "--stage", "start", "-m", "begun")
    making.remember()
    making.change()
    making.stagepost("task", "save", "--task", "7", "--stage", "implementation", "-m", "written")
    making.remember()
    making.write("read me.txt", "three\n")


@case("task-save", atomic=True, again=MORE)
def task_save(making):
    with_tasks(making)
    return "task save --task 7 --stage implementation -m 'written again'"


@case("task-rollback", again=SAME)
def task_rollback(making):
    with_tasks(making)
    return "task rollback --task 7 --stage start --hard"


@case("task-recover", again=SAME, short=False)
def task_recover(making):
    with_tasks(making)
    return "task recover --task 7 --error implementation -m 'it does not compile'"


@case("task-cleanup", prunes=True, atomic=True, again=SAME)
def task_cleanup(making):
    with_tasks(making)
    making.stagepost("task", "save", "--task", "7", "--stage", "validated", "-m", "good")
    making.remember()
    return "task cleanup --max-per-task 1"


@case("task-cleanup-packed", prunes=True, atomic=True, again=SAME, short=False)
def task_cleanup_packed(making):
    command = task_cleanup(making)
    making.git("pack-refs", "--all")
    return command


@case("task-note", again=MORE, short=False, asks='"$S" task progress | sed "s/^[^]]*] //"')
def task_note(making):
    with_tasks(making)
    making.stagepost("task", "note", "--task", "7", "so far so good")
    return "task note --task 7 'and further'"


def with_gate(making):
    making.first()
    making.save("one")
    making.stagepost("gate", "ask", "Deploy it?", "--id", "g1", "--run", "deploy", "--files", codes=(6,))


@case("gate-ask", atomic=True, acknowledges=False, again=SAME)
def gate_ask(making):
    making.first()
    making.save("one")
    making.change()
    # It waits for an answer, or someone has refused meanwhile.
    return "gate ask 'Deploy it?' --id g1 --run deploy --files || case $? in 6 | 7) ;; *) false ;; esac"


@case("gate-answer", atomic=True, again={"same": True, "codes": [0, 4]})
def gate_answer(making):
    with_gate(making)
    return "gate answer g1 --by tester 'yes'"


@case("gate-reopen", again={"same": True, "codes": [0, 4]})
def gate_reopen(making):
    with_gate(making)
    making.stagepost("gate", "answer", "g1", "yes")
    making.change()
    return "gate reopen g1 --files"


@case("gate-cancel", atomic=True, short=False, again={"same": True, "codes": [0, 4]}, asks='"$S" gate list --all -q')
def gate_cancel(making):
    with_gate(making)
    return "gate cancel g1 --why 'not today'"


@case("gc", prunes=True, atomic=True, again=SAME)
def gc(making):
    making.first()
    making.stagepost("init")
    for number in range(6):
        making.write("counted.json", json.dumps([[number, n, "word " * 40] for n in range(40)]))
        making.save(f"number {number}", "--state", "counted.json")
    return "gc --keep 2"


@case("gc-plain", prunes=True, atomic=True, again=SAME, short=False)
def gc_plain(making):
    return gc(making)


gc_plain.git = False


@case("gc-packed", prunes=True, atomic=True, again=SAME, short=False)
def gc_packed(making):
    """The user's own `git gc` came first: refs are lines of one file, objects are in packs."""
    command = gc(making)
    making.git("gc", "-q")
    return command


@case("doctor-fix", again=SAME, acknowledges=False, unsound=True, short=False)
def doctor_fix(making):
    """Somebody deleted the refs that keep snapshots."""
    making.first()
    for number in range(3):
        making.write("counted.txt", f"{number}\n")
        making.save(f"number {number}")
    for ref in making.git("for-each-ref", "--format=%(refname)", "refs/stagepost").split()[:2]:
        making.git("update-ref", "-d", ref)
    return "doctor --fix"


def foreign(making):
    """What the original program of sessions leaves."""
    making.first()
    names = [f"3f2b8a52-6c1e-4a7e-9a62-0d4a5a3c8f0{n}" for n in (1, 2, 3)]
    entries = []
    for name in names:
        making.write("read me.txt", name)
        making.commit(f"checkpoint: {name}")
        making.git("tag", "-a", f"checkpoint-{name}", "-m", f"Checkpoint: {name}")
        entries.append({"checkpoint_id": name, "commit_sha": making.git("rev-parse", "HEAD").strip(), "description": name,
                        "timestamp": "2024-01-07T13:00:00Z", "phase": "plan", "checkpoint_type": "phase_complete",
                        "tags": [f"checkpoint-{name}"], "rollback_used": False, "rollback_count": 0})
    log = {"session_id": "theirs", "generated_at": "2024-01-07T12:59:59Z", "checkpoints": entries}
    folder = os.path.join(making.folder, "theirs")
    os.makedirs(folder)
    with open(os.path.join(folder, "checkpoints.json"), "w") as file:
        json.dump(log, file)


@case("import", again=SAME)
def import_(making):
    foreign(making)
    return "import ../theirs --format maestro"


@case("import-runs", again=SAME, short=False)
def import_runs(making):
    """What the original program of runs leaves: a record, a registry, and a checkpoint with its checksum for each step."""
    making.first()
    folder = os.path.join(making.folder, "theirs/.claude/context/runs/run-001")
    os.makedirs(os.path.join(folder, "checkpoints"))
    run = {"run_id": "run-001", "workflow_id": "three", "selected_workflow": "three", "current_step": 3, "status": "failed",
           "created_at": "2025-01-08T10:00:00.000Z", "updated_at": "2025-01-08T10:01:00.000Z", "task_queue": [], "owners": {},
           "timestamps": {"started_at": "2025-01-08T10:00:00.000Z"}, "metadata": {"user_request": "theirs"}}
    registry = {"run_id": "run-001", "workflow_id": "three", "artifacts": {}}
    files = {"run.json": run, "artifact-registry.json": registry}
    for step in (1, 2, 3):
        name = f"checkpoint-step-{step}-173633000000{step}"
        body = {"checkpoint_id": name, "run_id": "run-001", "workflow_id": "three", "step": step,
                "timestamp": f"2025-01-08T10:00:0{step}.000Z", "run_record": run, "artifact_registry": registry,
                "step_state": {"step_name": f"step {step}", "agent": "a", "artifacts": [], "validation_status": "pass"}}
        checksum = hashlib.sha256(json.dumps(body, separators=(",", ":")).encode()).hexdigest()
        files[f"checkpoints/{name}.json"] = dict(body, metadata={"checksum": checksum, "version": "1.0"})
    for name, body in files.items():
        with open(os.path.join(folder, name), "w") as file:
            json.dump(body, file, indent=2)
    return "import ../theirs --format runs"


@case("import-plans", again=SAME, short=False)
def import_plans(making):
    making.first()
    folder = os.path.join(making.folder, "theirs/checkpoints/plans")
    os.makedirs(folder)
    for iteration in (1, 2):
        envelope = {"run_id": "0a1b2c3d", "iteration": iteration}
        for kind, payload in (("raw", {"plan": {"sections": [iteration]}}), ("evaluation", {"score": 4 + iteration, "decision": "SOFT_FAIL"})):
            with open(os.path.join(folder, f"song_0a1b2c3d_iter0{iteration}_{kind}.json"), "w") as file:
                json.dump(dict(envelope, checkpoint_type=kind, **payload), file, indent=2)
    with open(os.path.join(folder, "song_final.json"), "w") as file:
        json.dump({"status": "INCOMPLETE", "plan": {"sections": [2]}, "iterations": 2, "best_score": 6}, file, indent=2)
    return "import ../theirs --format plans"


@case("export", again=SAME, atomic=True)
def export(making):
    with_sessions(making)
    return "export --format maestro --to ../out"


FLOW = """name: three
steps:
  - {id: one, run: printf one > one.txt, outputs: [one.txt]}
  - {id: two, run: printf two > two.txt}
  - {id: three, run: cat one.txt two.txt > three.txt}
"""


def with_flow(making):
    making.first()
    making.stagepost("init")
    making.write("flow.yaml", FLOW)


@case("flow-run", steps=True, acknowledges=False, again=dict(
    SAME, command="flow resume -q r1 || $S flow run -q flow.yaml --run-id r1 || $S flow show r1 --json | grep -q complete"))
def flow_run(making):
    with_flow(making)
    return "flow run -q flow.yaml --run-id r1"


@case("flow-resume", steps=True, acknowledges=False, again=dict(
    SAME, command="flow resume -q r1 || $S flow show r1 --json | grep -q complete"))
def flow_resume(making):
    with_flow(making)
    making.write("flow.yaml", FLOW.replace("cat one.txt two.txt", "cat one.txt two.txt missing.txt"))
    making.stagepost("flow", "run", "-q", "flow.yaml", "--run-id", "r1", codes=(1,))
    making.write("missing.txt", "now it is there\n")
    return "flow resume -q r1"


WAITS = "|| test $? = 6"


def with_question(making):
    with_flow(making)
    making.write("flow.yaml", FLOW.replace("  - {id: two,", "  - {id: sure, ask: {message: Go on?}}\n  - {id: two,"))


@case("flow-run-gate", steps="awaiting_approval", acknowledges=False, short=False, again=dict(
    SAME, command=f'flow resume -q r1 {WAITS} || "$S" flow run -q flow.yaml --run-id r1 {WAITS}'))
def flow_run_gate(making):
    """A run that comes to a question, and waits."""
    with_question(making)
    return f"flow run -q flow.yaml --run-id r1 {WAITS}"


@case("flow-resume-gate", steps=True, acknowledges=False, short=False, again=dict(
    SAME, command="flow resume -q r1 || $S flow show r1 --json | grep -q complete"))
def flow_resume_gate(making):
    """The question was answered, and the run goes on."""
    with_question(making)
    making.stagepost("flow", "run", "-q", "flow.yaml", "--run-id", "r1", codes=(6,))
    making.stagepost("gate", "answer", "@", "yes")
    return "flow resume -q r1"


@case("flow-fork", atomic=True, short=False, again={"same": True, "codes": [0, 4]}, asks='"$S" flow list --all -q | sort')
def flow_fork(making):
    flow_resume(making)
    return "flow fork r1 --from-step one --run-id r2"


@case("flow-cancel", atomic=True, short=False, again={"same": True, "codes": [0, 4]}, asks='"$S" flow show r1 --json | grep -o "\"status\": *\"[a-z]*\"" | head -1')
def flow_cancel(making):
    flow_resume(making)
    return "flow cancel r1 -m 'not needed'"


@case("flow-cleanup", atomic=True, prunes=True, acknowledges=False, again=SAME)
def flow_cleanup(making):
    flow_resume(making)
    return "flow cleanup -q --max-age-days 0 --report ../report.md"


def with_plan(making):
    making.first()
    making.stagepost("init")
    making.write("plan.json", '{"plan": {"sections": [1, 2]}}')
    making.write("final.json", '{"plan": {"sections": [1, 2]}, "status": "SUCCESS"}')
    run = making.stagepost("plan", "start", "--project", "song", "--output-dir", "artifacts/song", "-q").strip()
    making.stagepost("plan", "record", "--run", run, "--iteration", "1", "--type", "raw", "plan.json")
    return run


@case("plan-record", atomic=True, acknowledges=False, again=SAME)
def plan_record(making):
    return f"plan record -q --run {with_plan(making)} --iteration 2 --type raw plan.json"


@case("plan-finish", atomic=True, acknowledges=False, again=dict(SAME, codes=[0, 4]))
def plan_finish(making):
    return f"plan finish -q --run {with_plan(making)} --status SUCCESS final.json"


@case("plan-run", steps=True, acknowledges=False, again=dict(
    SAME, command='plan run -q job.json $(r=$("$S" plan list -q); test -n "$r" && echo --resume $r)'))
def plan_run(making):
    making.first()
    making.stagepost("init")
    job = {"project_name": "song", "output_dir": "artifacts/song", "max_iterations": 4,
           "planner": """sed 's/.*"iteration": *\\([0-9]*\\).*/{"sections": [\\1]}/'""",
           "judge": """if grep -q '"iteration": *2'; then echo '{"score": 9}'; else echo '{"score": 4, "feedback": "more"}'; fi"""}
    making.write("job.json", json.dumps(job))
    return "plan run -q job.json"


def lay_golden(making):
    store = os.path.join(making.root, ".git/stagepost")
    shutil.rmtree(store, ignore_errors=True)
    os.makedirs(store, mode=0o700)
    for name in ("store.db", "head"):
        shutil.copy(os.path.join(GOLDEN, name), store)


@case("golden", atomic=True, again=MORE, prunes=True)
def golden(making):
    """A store as the first published format wrote it: opening it migrates it where there is a newer format."""
    making.first()
    lay_golden(making)
    return "save -q -m saved"


# Looking at it has migrated it.
golden.untouched = lay_golden


def in_tables(name, make, **what):
    """The same in a repository whose refs are in tables: there is one lock for all of them then, and it would stop everybody."""
    def made(making):
        return make(making)
    made.git = "--ref-format=reftable"
    case(name, short=False, **what)(made)


in_tables("save-reftable", save, atomic=True, again=MORE)
in_tables("session-create-reftable", session_create, atomic=True, again=MORE)
in_tables("session-rollback-reftable", session_rollback, again=SAME)
in_tables("session-delete-reftable", session_delete, prunes=True, atomic=True)
# Both the branch and HEAD are changed.
in_tables("restore-hard-reftable", restore_hard_branch_gone, again=SAME)


# What runs in every gap of a case, with little patience: whoever is held up says so and goes.
HASTY = '"$STAGEPOST_BIN" --busy-timeout 300ms'
SAVE = "save -q -m beside"
CREATE = f"session create {SESSION} --phase plan --description beside"
CREATE_ELSEWHERE = "session create --session-id s9 --phase plan --description beside"
BESIDE = {
    "init": ["init -q", SAVE],
    "save-first": [SAVE, CREATE_ELSEWHERE],
    "save": [SAVE, "gc -q", "restore -q --yes @", CREATE_ELSEWHERE],
    "save-plain": [SAVE],
    "save-16th": [SAVE],
    "restore-files": [SAVE, "undo -q"],
    "restore-mixed": [SAVE],
    "restore-hard": [SAVE, "gc -q", "restore -q --yes @"],
    "restore-plain": [SAVE],
    "undo": [SAVE, "undo -q"],
    "redo": [SAVE],
    "session-create": [SAVE, CREATE],
    "session-rollback": [SAVE, CREATE],
    "session-delete": [SAVE, CREATE],
    "task-save": ["task save --task 7 --stage start -m beside"],
    "task-rollback": [SAVE, "task save --task 8 --stage start -m beside"],
    "task-recover": [SAVE],
    "task-cleanup": ["task save --task 7 --stage start -m beside"],
    "gate-ask": [SAVE, "gate answer g1 no"],
    "gate-answer": ["gate answer g1 no", SAVE],
    "gate-reopen": [SAVE, "gate answer g1 no"],
    "gc": [SAVE, "gc -q --keep 1"],
    "gc-plain": [SAVE],
    "import": [SAVE, "import -q ../theirs --format maestro"],
    "export": [SAVE, CREATE],
    "flow-run": [SAVE, "flow resume -q r1", "gc -q"],
    "flow-resume": ["flow resume -q r1", "flow cleanup -q --max-age-days 0"],
    "flow-cleanup": [SAVE, "flow resume -q r1"],
    "plan-record": [SAVE, "plan list -q"],
    "plan-finish": [SAVE],
    "plan-run": [SAVE, "plan list -q"],
    "golden": [SAVE],
    "restore-hard-branch-gone": [SAVE],
    "session-create-worktree": [SAVE, CREATE],
    "session-create-detached": [SAVE],
    "session-delete-packed": [CREATE],
    "task-cleanup-packed": ["task save --task 7 --stage start -m beside"],
    "task-note": ["task note --task 7 meanwhile"],
    "gate-cancel": ["gate answer g1 no"],
    "gc-packed": [SAVE],
    "doctor-fix": [SAVE],
    "import-runs": ["import -q ../theirs --format runs"],
    "import-plans": ["import -q ../theirs --format plans"],
    "flow-run-gate": [SAVE, "gc -q"],
    "flow-resume-gate": ["flow resume -q r1"],
    "flow-fork": [SAVE],
    "flow-cancel": ["flow resume -q r1"],
}


def make(name, folder):
    """Makes the folder of a case and learns what its command does. Returns the command for killsweep."""
    entry = CASES[name]
    state = os.path.join(folder, "state")
    making = Making(state, git=getattr(entry["make"], "git", True))
    command = f'cd project && "$STAGEPOST_BIN" {entry["make"](making)}'
    before = 'PATH="$PWD/bin:$PATH"; ' if os.path.isdir(os.path.join(state, "bin")) else ""
    command = before + command
    expect = dict(entry["expect"], case=name, before=seen(making.place, entry), trees=making.trees)
    getattr(entry["make"], "untouched", lambda _: None)(making)
    if expect["again"]:
        other = expect["again"].get("command")
        other = other and f'{before}cd project && S="$STAGEPOST_BIN"; "$S" {other}'
        expect["again"] = dict(expect["again"], command=other or command)
    copy = os.path.join(folder, "learned")
    subprocess.run(["cp", "-a", state, copy], check=True)
    done = subprocess.run(["/bin/sh", "-c", command], cwd=copy, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if str(done.returncode) not in ("0", *expect["codes"]):
        raise Bad(f"case {name}: `{command}` fails without a fault: {done.stderr}")
    after = Place(os.path.join(copy, "project"))
    expect["after"] = seen(after, entry)
    files = {path: what for path, what in after.files().items() if not path.endswith(".ignored")}
    known = {one["id"] for one in (making.place.log() if has_store(making.place) else [])}
    fresh = [one for one in after.log() if (one.get("snapshot") or {}).get("tree") and one["id"] not in known][:1]
    expect["after_trees"] = {one["snapshot"]["tree"]: files for one in fresh if not one["kind"]["type"] == "safety"}
    with open(os.path.join(state, "expect.json"), "w") as file:
        json.dump(expect, file)
    shutil.rmtree(copy)
    return state, command


def seen(place, entry):
    listed, asks = place.log() if has_store(place) else [], entry["expect"]["asks"]
    return {"state": place.state(), "records": [record(one) for one in listed], "told": place.shell(asks) if asks else None}


def has_store(place):
    folders = [os.path.join(place.root, ".stagepost")] + ([os.path.join(place.common, "stagepost")] if place.has_git else [])
    return any(os.path.exists(os.path.join(folder, "store.db")) for folder in folders)
