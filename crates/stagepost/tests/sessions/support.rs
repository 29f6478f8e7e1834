use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use stagepost::model::{Phase, Reason, RollbackMode};
use stagepost::project::{Project, Settings};
use stagepost::session::{Changes, Checkpoint, NewCheckpoint, Session};
use stagepost_testutil::TempProject;

/// A repository with one commit.
pub(crate) fn repository() -> TempProject {
    let home = TempProject::git();
    home.write("a.txt", "one\n");
    home.run_git(&["add", "-A"]);
    home.run_git(&["commit", "-qm", "first"]);
    home
}

/// The project as another process has it that does not wait long for a lock.
pub(crate) fn impatient(home: &TempProject) -> Project {
    let mut settings = Settings::default();
    settings.busy_timeout = Duration::from_millis(50);
    home.open_with(home.root(), settings)
}

pub(crate) fn create(session: &Session<'_>, description: &str) -> Checkpoint {
    session.create(NewCheckpoint::new(Phase::Implement, description)).unwrap()
}

pub(crate) fn create_as(session: &Session<'_>, description: &str, reason: Reason) -> Checkpoint {
    session.create(NewCheckpoint { reason, ..NewCheckpoint::new(Phase::Implement, description) }).unwrap()
}

pub(crate) fn create_off(session: &Session<'_>, description: &str) -> Checkpoint {
    let new = NewCheckpoint { on_branch: false, ..NewCheckpoint::new(Phase::Plan, description) };
    session.create(new).unwrap()
}

pub(crate) fn hard(session: &Session<'_>, checkpoint: &Checkpoint) {
    session.rollback(&checkpoint.id().to_string(), RollbackMode::Hard, Changes::Refuse).unwrap();
}

pub(crate) fn start(project: &Project) -> Session<'_> {
    Session::start(project, "make it so").unwrap()
}

pub(crate) fn view(home: &TempProject, session: &Session<'_>, file: &str) -> Value {
    let path = format!(".flow/maestro/sessions/{}/{file}", session.id());
    serde_json::from_str(&home.read(&path).unwrap()).unwrap()
}

pub(crate) fn head(home: &TempProject) -> String {
    home.run_git(&["rev-parse", "HEAD"])
}

pub(crate) fn tags(home: &TempProject) -> Vec<String> {
    home.run_git(&["tag", "--list"]).lines().map(str::to_owned).collect()
}

pub(crate) fn hook(home: &TempProject, name: &str, script: &str) {
    program(&home.root().join(".git/hooks").join(name), script);
}

pub(crate) fn program(path: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Takes the identity away that the repository was given.
pub(crate) fn forget_identity(home: &TempProject) {
    home.run_git(&["config", "--unset", "user.name"]);
    home.run_git(&["config", "--unset", "user.email"]);
    home.run_git(&["config", "user.useConfigOnly", "true"]);
}

/// Has git sign, with a program that refuses to.
pub(crate) fn refuse_to_sign(home: &TempProject, setting: &str) {
    hook(home, "signer", "echo no key today >&2; exit 1");
    let program = home.root().join(".git/hooks/signer");
    home.run_git(&["config", "gpg.program", &program.to_string_lossy()]);
    home.run_git(&["config", setting, "true"]);
}

/// Has git sign commits, with a program that does something else before.
pub(crate) fn sign_after(home: &TempProject, script: &str) {
    let signature = "echo '-----BEGIN PGP SIGNATURE-----'; echo; echo '-----END PGP SIGNATURE-----'";
    let said = "printf '\\n[GNUPG:] SIG_CREATED D 1 8 00 1 X\\n' >&2";
    let signer = home.root().join(".git/signer");
    program(&signer, &format!("cat > /dev/null\n{script}\n{said}\n{signature}"));
    home.run_git(&["config", "gpg.program", &signer.to_string_lossy()]);
    home.run_git(&["config", "commit.gpgSign", "true"]);
}
