//! The example does what it says.

use std::process::Command;

#[test]
fn the_deploy_stops_is_approved_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_approval"))
        .arg(folder.path().join("approval.db"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    for line in ["listens on approval", "approved by ada", "deployed in attempt 0, lease 2"] {
        assert!(told.contains(line), "{line} is missing: {told}");
    }
}
