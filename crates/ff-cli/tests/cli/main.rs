//! `ff` through the built binary, as a person and a program use it: against a server process, and
//! against stores directly.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where it stopped")]

mod config;
mod directly;
mod failures;
mod lists;
mod observed;
mod operators;
mod pasted;
mod renewal;
mod support;
mod terminal;
mod trusted;
mod verbs;
mod watching;
