//! Errors and panics of a process, reported to Sentry or what speaks its protocol.
//!
//! What is logged as an error, and every panic, becomes an event. It goes into a bounded queue that a
//! thread of its own sends, so nothing waits for a report, and a report that cannot be sent is lost.
//! An event holds the message, the fields of the log line and where it came from: neither the
//! environment nor anything of a request. [`scrub`] takes out what looks like a secret.

mod dsn;
mod event;
mod layer;
mod scrub;
mod sender;

pub use dsn::{BadDsn, Dsn};
pub use sender::Reporter;
