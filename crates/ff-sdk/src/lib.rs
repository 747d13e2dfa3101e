//! Writing workers and clients of FlowFabric.
//!
//! A [`FlowFabricWorker`] claims tasks and keeps their leases alive; a [`ClaimedTask`] is one of
//! them, and ends in exactly one way. A [`Client`] submits, waits, signals and reads; a [`Flow`] is
//! a graph of work. [`bridge`] is for webhooks that bring what an execution waits for, [`testing`]
//! an engine for tests whose clock the test moves.
//!
//! Most workers are a [`WorkerRuntime`]: it takes handlers, plain async functions, and does the
//! rest.

#![warn(missing_docs)]

mod admin;
pub mod bridge;
pub mod client;
mod config;
mod connection;
mod error;
#[cfg(doctest)]
mod guides;
pub mod layers;
mod leases;
mod outage;
mod patience;
mod presence;
mod reach;
pub mod runtime;
pub mod stream;
pub mod task;
pub mod testing;
mod worker;

pub use admin::FlowFabricAdminClient;
pub use client::{
    Client, ClientConfig, EventSubscription, Execution, Finished, FinishedFlow, Flow, FlowHandle,
    Happened, NewBudget, NewBulk, OutputTail, ResultError, Submission,
};
pub use config::{DEFAULT_URL, WorkerConfig};
pub use error::SdkError;
pub use ff_core::token::WaitpointToken;
pub use leases::StopReason;
pub use runtime::WorkerRuntime;
pub use task::{
    AppendFrameOutcome, ClaimedTask, ConditionMatcher, EndError, FailOutcome, ResumeSignal, Signal,
    SignalOutcome, SuspendOutcome, SuspendedAt, Suspension, TimeoutBehavior, Usage,
    WaitpointTicket,
};
pub use worker::{FlowFabricWorker, ReclaimOutcome};
