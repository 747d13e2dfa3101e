//! The example does what its README says.

use std::process::Command;

#[test]
fn it_retries_and_completes() {
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_embedded"))
        .arg(directory.path().join("example.db"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("attempt 0 of thumbnail: delayed"), "{text}");
    assert!(text.contains("attempt 1 of thumbnail: completed"), "{text}");
    assert!(text.ends_with("result: a thumbnail of cat.png\n"), "{text}");
}
