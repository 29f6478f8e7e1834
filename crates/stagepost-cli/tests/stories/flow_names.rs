//! What a new run may be called.

use crate::support::TempProject;

#[test]
fn a_run_takes_no_name_that_save_and_restore_need() {
    let project = TempProject::new();
    project.write("flow.yaml", "name: safety\nsteps:\n  - {id: a, run: 'true'}\n");
    for name in ["safety", "adhoc", "safety-side", "adhoc-side", "@", "@x"] {
        let why = format!("`{name}` cannot be the name of a new run");
        project.run(&["flow", "run", "flow.yaml", "--run-id", name]).fails(2, &[&why]);
        project.run(&["save", "-m", "x", "--run", name]).fails(2, &[&why]);
        let create = ["session", "create", "--session-id", name, "--description", "d", "--phase", "plan"];
        project.run(&create).fails(2, &[&why]);
    }
    let id = project.ok(&["--quiet", "flow", "run", "flow.yaml"]);
    assert!(id.starts_with("flow-safety-"), "{id}");
    project.run(&["flow", "fork", "@", "--from-step", "a", "--run-id", "safety"]).fails(2, &["new run"]);

    project.write("a.txt", "one");
    project.save("one", &[]);
    project.write("a.txt", "two");
    project.ok(&["restore", "@"]);
    assert_eq!(std::fs::read_to_string(project.folder.join("a.txt")).unwrap(), "one");
}
