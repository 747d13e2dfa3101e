//! Requests to the API: over HTTP to a server, or in process over a store that this command opens.
//! Verbs know neither: they make a [`Request`] and get an [`Answer`], or [`Follow`] a stream.

mod connection;
mod follow;
mod refused;
mod secrets;

pub(crate) use connection::{Answer, Client};
pub(crate) use ff_remote::http::Request;
pub(crate) use ff_remote::http::sse::SseEvent;
pub(crate) use follow::{Follow, REST, TRIES};
pub(crate) use refused::{Refused, at};
pub(crate) use secrets::{one_line_of, secret_of};
