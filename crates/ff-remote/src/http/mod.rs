//! HTTP to a server: what the remote backend and the command line share.
//!
//! A [`Request`] says what is asked for before it is known who answers; a [`Transport`] sends it to a
//! server over pooled connections, and tells by a [`Fault`] what went wrong on the way. [`sse`] takes
//! streams apart.

mod answer;
mod fault;
mod request;
pub mod sse;
mod transport;

pub use answer::Answer;
pub use fault::Fault;
pub use request::{Accept, NoPart, Request, at};
pub use transport::{BadEnd, Ends, Transport};
