//! Writing workers and clients of FlowFabric.
//!
//! A [`FlowFabricWorker`] claims tasks and keeps their leases alive; a [`ClaimedTask`] is one of
//! them, and ends in exactly one way. A [`Client`] submits, waits, signals and reads.

#![warn(missing_docs)]

mod client;
mod config;
mod connection;
mod error;
mod leases;
mod outage;
mod presence;
pub mod stream;
pub mod task;
mod worker;

pub use client::Client;
pub use config::{DEFAULT_URL, WorkerConfig};
pub use error::SdkError;
pub use ff_core::token::WaitpointToken;
pub use leases::StopReason;
pub use task::{
    AppendFrameOutcome, ClaimedTask, ConditionMatcher, EndError, FailOutcome, ResumeSignal, Signal,
    SignalOutcome, SuspendOutcome, SuspendedAt, Suspension, TimeoutBehavior, Usage,
    WaitpointTicket,
};
pub use worker::{FlowFabricWorker, ReclaimOutcome};
