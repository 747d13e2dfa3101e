//! Writing workers and clients of FlowFabric.
//!
//! An *execution* is a piece of durable work: it is submitted once, tried as often as its policy
//! says, and ends once. Whoever submits has a [`Client`]; whoever does the work has a
//! [`WorkerRuntime`] with a handler, a plain async function, for each kind of work. Both reach a
//! store in the process (`sqlite:work.db`), a shared one (`valkey://…`) or a server (`http://…`)
//! by its URL, and do the same over each.
//!
//! ```
//! use std::time::Duration;
//! use ff_sdk::runtime::{Payload, WorkerRuntime};
//! use ff_sdk::{FlowFabricWorker, Submission, WorkerConfig};
//!
//! async fn greet(name: Payload<String>) -> String {
//!     format!("hello {}", *name)
//! }
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = WorkerConfig::new("greeter").url("sqlite::memory:");
//! let worker = FlowFabricWorker::connect(config).await?;
//! let client = worker.client();
//! tokio::spawn(WorkerRuntime::new(worker).on("greet", greet).run(std::future::pending()));
//!
//! let greeting = client.submit(Submission::new("greet").json("Ada")?).await?;
//! let said: String = greeting.wait_for_result(Duration::from_secs(10)).await?;
//! assert_eq!(said, "hello Ada");
//! # Ok(())
//! # }
//! ```
//!
//! # The way through
//!
//! | you want to | begin at |
//! | --- | --- |
//! | submit, wait, signal, look, cancel | [`client`]: [`Client`], [`Submission`], [`Execution`] |
//! | describe a graph of work | [`Flow`] |
//! | do the work | [`runtime`]: [`WorkerRuntime`] |
//! | limit, trace or measure handlers | [`layers`] |
//! | claim by a loop of your own | [`FlowFabricWorker`], [`task`]: [`ClaimedTask`] |
//! | wait for people and other systems | [`Suspension`], [`Signal`], [`bridge`] |
//! | read or follow output | [`Execution::tail`], [`stream`] |
//! | schedule, rotate secrets | [`FlowFabricAdminClient`] |
//! | test what you have written | [`testing`]: [`testing::TestEngine`] |
//!
//! # When a call does not end well
//!
//! Every call ends in [`SdkError`], or in one that holds it. The engine's refusals have stable
//! [codes](ff_core::error::Code); the sections *Errors* name those that a caller may want to
//! handle. What every call has in common is not repeated there: an argument that is wrong is
//! [`SdkError::Config`], and nothing was sent; a store or a server that does not answer is
//! [`SdkError::Backend`]. Clients send what may be repeated safely again by themselves, for up to
//! 30 seconds, and tasks do so for as long as their lease lasts.

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
/// Shown by whoever speaks to a waitpoint.
///
/// ```
/// use ff_sdk::WaitpointToken;
///
/// # let text = format!("k1:0:{}", "0".repeat(64));
/// let token = WaitpointToken::parse(&text)?;
/// assert_eq!(token.expose(), text);
/// assert!(!format!("{token:?}").contains(&"0".repeat(64)));
/// # Ok::<(), ff_core::error::Refusal>(())
/// ```
pub use ff_core::token::WaitpointToken;
pub use leases::StopReason;
pub use runtime::WorkerRuntime;
pub use task::{
    AppendFrameOutcome, ClaimedTask, ConditionMatcher, EndError, FailOutcome, ResumeSignal, Signal,
    SignalOutcome, SuspendOutcome, SuspendedAt, Suspension, TimeoutBehavior, Usage,
    WaitpointTicket,
};
pub use worker::{FlowFabricWorker, ReclaimOutcome};
