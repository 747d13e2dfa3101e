//! The wire forms: what HTTP requests and replies look like, and what they mean in terms of
//! [`ff_core`]. No I/O; the server and every client of it share these forms.
//!
//! - [`object`]: a JSON object or a query string, taken apart field by field.
//! - [`bytes`], [`time`], [`json`], [`tokens`]: values that JSON has no form of its own for.
//! - [`problem`]: how every failure is told; [`again`]: how a repetition is.
//! - [`reading`]: why an answer could not be read. Whoever asks makes the forms of requests from operations,
//!   and replies from the forms of answers; both stand beside the way there.
//! - [`submit`], [`execution`], [`search`], [`attempt`], [`manage`]: executions.
//! - [`worker`], [`lease`], [`grant`], [`outcome`], [`suspend`], [`usage`]: the worker protocol.
//! - [`signal`], [`frame`], [`event`]: waitpoints and signals, streams, the log.
//! - [`key`]: who may call.
//! - [`graph`], [`flow`]: flows, made and seen.
//! - [`budget`], [`quota`], [`lane`], [`bulk`]: limits, lanes and namespaces, many at once.
//! - [`system`], [`secret`]: the server itself.

pub mod again;
pub mod attempt;
pub mod budget;
pub mod bulk;
pub mod bytes;
pub mod event;
pub mod execution;
pub mod fence;
pub mod flow;
pub mod frame;
pub mod grant;
pub mod graph;
pub mod json;
pub mod key;
pub mod lane;
pub mod lease;
pub mod list;
pub mod manage;
mod nullable;
pub mod object;
pub mod outcome;
pub mod problem;
pub mod quota;
pub mod reading;
pub mod search;
pub mod secret;
pub mod signal;
pub mod submit;
pub mod suspend;
pub mod system;
pub mod task;
mod text;
pub mod time;
pub mod tokens;
pub mod usage;
pub mod worker;
