//! Standard output. A reader that goes away, as `head` does, is no failure: the command ends.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

/// One line on standard output.
pub(crate) fn say(line: impl Display) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{line}")
}

/// Whether an error only means that nobody reads any more.
pub(crate) fn is_reader_gone(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == ErrorKind::BrokenPipe)
}
