//! `ff bench`: measures a store and prints one JSON object.
//!
//! Each scenario is a file: its parameters as a struct of flags, and how it is measured. What they
//! share is beside them: [`Target`] is the store under test, [`Measured`] what a scenario found,
//! [`Report`] the object that is printed.

mod backlog;
mod capability;
mod chain;
mod command;
mod connections;
mod crew;
mod fanout;
mod faults;
mod floor;
mod host;
mod http;
mod idle;
mod latency;
mod lifecycle;
mod memory;
mod place;
mod quorum_cancel;
mod report;
mod runtime;
mod scratch;
mod start_latency;
mod steady;
mod store;
mod stream;
mod suspend_resume;
mod target;
mod unblock;

pub(crate) use command::Bench;
use faults::Faults;
use latency::Latencies;
use place::Place;
use report::{Measured, Report};
use scratch::Scratch;
use target::Target;

use crate::progress;
