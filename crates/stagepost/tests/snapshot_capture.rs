//! What a snapshot holds: the tree is git's own, whatever is in the work tree.

mod snapshot_support;

use snapshot_support::{Fixture, bytes};

#[test]
fn a_clean_work_tree() {
    let fixture = Fixture::new();
    let snapshot = fixture.assert_exact();
    assert_eq!(snapshot.tree.as_str(), fixture.git(&["rev-parse", "HEAD^{tree}"]));
    assert_eq!(snapshot.branch.as_deref(), Some("main"));
    assert_eq!(snapshot.files.total, 5);
}

#[test]
fn changed_deleted_new_and_odd_files() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "other\n").remove("dir/b.txt").write("new/file", "").write("with space", "x");
    fixture.write("new\nline", "x").write(bytes(b"bad\xff\xfeutf8"), "x").executable("a.txt");
    fixture.link("dangling", "nowhere").remove("run.sh").write("run.sh/inside", "was a file");
    fixture.remove("dir/deep").write("dir/deep", "was a folder");
    let snapshot = fixture.assert_exact();
    assert_eq!((snapshot.files.modified, snapshot.files.deleted), (1, 3));
}
