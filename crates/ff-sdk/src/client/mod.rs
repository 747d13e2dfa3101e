//! Clients: whoever submits work, waits for it, and says what it waits for.
//!
//! [`Client`] does the same over a store and over a server; the few methods that no server serves
//! say so, and are refused there with `route_not_found`. [`Execution`] and [`FlowHandle`] are what a submit gives back.

mod budgets;
mod bulk;
mod config;
mod connect;
mod events;
mod execution;
mod finished;
mod flow;
mod flows;
mod graph;
mod lanes;
mod manage;
mod quotas;
mod reads;
mod signals;
mod streams;
mod submission;
mod submit;
mod wait;
mod workers;

pub use budgets::NewBudget;
pub use bulk::NewBulk;
pub use config::ClientConfig;
pub use connect::Client;
pub use events::{EventSubscription, Happened};
pub use execution::Execution;
pub use finished::{Finished, ResultError};
pub use flow::Flow;
pub use flows::{FinishedFlow, FlowHandle};
pub use streams::OutputTail;
pub use submission::Submission;
