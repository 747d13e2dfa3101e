//! What the SQL stores share.
//!
//! A store's writer takes what is waiting as one [`Batch`]: it loads what the batch needs, runs the
//! machine over it, and writes the [`Writes`] that come out, all in one transaction. This crate
//! does no I/O: it says what to load and what to write, so a synchronous store and an asynchronous
//! one drive it alike.

mod batch;
mod codec;
mod waiting;
mod writes;

pub use batch::{Answer, Batch, Job, Outcome};
pub use codec::{
    decode_attempt, decode_document, decode_event, decode_execution, decode_keyring,
    encode_attempt, encode_document, encode_event, encode_execution, encode_keyring,
};
pub use waiting::{Waiter, Waiting};
pub use writes::{DocumentWrite, ExecutionWrite, IndexChange, Writes};
