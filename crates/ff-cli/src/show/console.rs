//! What a command says, and where: the answer on standard output, all else on standard error.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};

use super::colour;
use crate::output::say;

/// How somebody wants to be told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Console {
    /// The reply itself, for programs.
    pub(crate) json: bool,
    /// Nothing but what was asked for.
    pub(crate) quiet: bool,
    pub(crate) colour: bool,
}

impl Console {
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        Self { json, quiet, colour: !json && colour::wanted() }
    }

    /// A line of the answer.
    pub(crate) fn say(&self, line: impl Display) -> io::Result<()> {
        say(line)
    }

    /// A reply as it came, on lines of its own.
    pub(crate) fn pass(&self, body: &[u8]) -> io::Result<()> {
        if body.is_empty() {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(body)?;
        if !body.ends_with(b"\n") {
            out.write_all(b"\n")?;
        }
        out.flush()
    }

    /// Bytes of somebody else, exactly.
    pub(crate) fn raw(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    /// Something beside the answer. That nobody reads it is no failure.
    pub(crate) fn note(&self, line: impl Display) {
        if !self.quiet {
            self.warn(line);
        }
    }

    /// Something that went wrong beside the answer: quiet commands tell it too.
    pub(crate) fn warn(&self, line: impl Display) {
        let _ = writeln!(io::stderr().lock(), "{line}");
    }

    /// Whether a person looks on, who is shown progress.
    pub(crate) fn is_live(&self) -> bool {
        !self.json && !self.quiet && io::stderr().is_terminal() && io::stdout().is_terminal()
    }
}
