//! The example does what it says.

use std::process::Command;

#[test]
fn members_run_in_order_and_hand_on_results() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_pipeline"))
        .arg(folder.path().join("pipeline.db"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    for line in [
        "loaded 120 users and 4500 orders",
        "report: loaded 120 users and 4500 orders",
        "cleaned up",
        "the flow is completed",
    ] {
        assert!(told.contains(line), "{line} is missing: {told}");
    }
}
