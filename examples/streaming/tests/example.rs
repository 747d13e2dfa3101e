//! The example does what it says.

use std::process::Command;

#[test]
fn the_reader_sees_every_word_and_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_streaming"))
        .arg(folder.path().join("streaming.db"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    for line in [
        "the store keeps what the worker said",
        "closed: attempt_success after 9 frames",
        r#"summary version 2: {"model":"demo","words":7}"#,
    ] {
        assert!(told.contains(line), "{line} is missing: {told}");
    }
}
