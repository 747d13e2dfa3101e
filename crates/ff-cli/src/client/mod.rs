//! Requests to the API: over HTTP to a server, or in process over a store that this command opens.
//! Verbs know neither: they make a [`Request`] and get an [`Answer`], or [`Follow`] a stream.

mod connection;
mod follow;
mod refused;
mod request;
mod secrets;
mod sse;

pub(crate) use connection::{Answer, Client};
pub(crate) use follow::Follow;
pub(crate) use refused::Refused;
pub(crate) use request::{Request, at};
pub(crate) use secrets::{one_line_of, secret_of};
pub(crate) use sse::SseEvent;
