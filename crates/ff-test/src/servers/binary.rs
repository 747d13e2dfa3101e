//! Which server binary tests run. `scripts/install-test-tools` looks in the same order.

use std::env;
use std::path::{Path, PathBuf};

const VARIABLE: &str = "FF_VALKEY_SERVER";

/// # Panics
/// When there is none: a store that cannot be started fails the run.
pub(super) fn server_binary() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if let Some(named) = env::var_os(VARIABLE) {
        // What was asked for by name must not be replaced by another one in silence.
        let named = root.join(named);
        assert!(named.is_file(), "{VARIABLE} names {}, which is no file", named.display());
        return named;
    }
    let installed = root.join(".tools/valkey/valkey-server");
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|folder| folder.join("valkey-server"));
    let found = std::iter::once(installed).chain(on_path).find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!("no valkey-server: run scripts/install-test-tools, or name one in {VARIABLE}")
    })
}
