//! FlowFabric for programs: the one crate to depend on.
//!
//! Everything of the SDK stands here under its own name; [`core`] holds the operations, questions
//! and states beneath it, for what the SDK has no word for.
//!
//! ```
//! use std::time::Duration;
//! use flowfabric::runtime::Payload;
//! use flowfabric::testing::TestEngine;
//! use flowfabric::{Submission, WorkerConfig, WorkerRuntime};
//!
//! async fn greet(Payload(name): Payload<String>) -> String {
//!     format!("hello {name}")
//! }
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = TestEngine::start().await;
//! let worker = engine.worker(WorkerConfig::new("greeter")).await;
//! let runtime = WorkerRuntime::new(worker).on("greet", greet);
//! tokio::spawn(runtime.run(std::future::pending()));
//!
//! let submitted = engine.client().submit(Submission::new("greet").json(&"Ada")?).await?;
//! let greeting: String = submitted.wait_for_result(Duration::from_secs(10)).await?;
//! assert_eq!(greeting, "hello Ada");
//! # Ok(())
//! # }
//! ```
//!
//! Submitting, waiting and operating begin at [`client`], doing the work at [`runtime`], testing it
//! at [`testing`].

#![warn(missing_docs)]

/// The program of the README is compiled with the documentation's tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}

/// Operations, questions, ids, states and error codes: what the SDK is made of, and what
/// [`Client::call`] and [`Client::ask`] take.
///
/// ```
/// use flowfabric::core::read::Describe;
/// use flowfabric::{Client, Submission};
///
/// # #[tokio::main] async fn main() -> Result<(), flowfabric::SdkError> {
/// let client = Client::connect("sqlite::memory:").await?;
/// let greeting = client.submit(Submission::new("greet")).await?;
/// let record = client.ask(Describe { execution_id: greeting.id() }).await?;
/// assert_eq!(record.map(|it| it.state.public_state.as_str()), Some("waiting"));
/// # Ok(())
/// # }
/// ```
pub use ff_core as core;
pub use ff_sdk::*;
