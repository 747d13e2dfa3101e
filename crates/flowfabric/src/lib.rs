//! FlowFabric for programs: the one crate to depend on.
//!
//! Everything of the SDK stands here under its own name; [`core`] holds the operations, questions
//! and states beneath it, for what the SDK has no word for.
//!
//! ```
//! use flowfabric::runtime::Payload;
//! use flowfabric::testing::TestEngine;
//! use flowfabric::{Submission, WorkerConfig, WorkerRuntime};
//!
//! async fn greet(Payload(name): Payload<String>) -> String {
//!     format!("hello {name}")
//! }
//!
//! # #[tokio::main] async fn main() -> Result<(), flowfabric::SdkError> {
//! let engine = TestEngine::start().await;
//! let worker = engine.worker(WorkerConfig::new("greeter")).await;
//! let runtime = WorkerRuntime::new(worker).on("greet", greet);
//! tokio::spawn(runtime.run(std::future::pending()));
//!
//! let submitted = engine.client().submit(Submission::new("greet").json(&"Ada")?).await?;
//! engine.run_until_idle().await;
//! let greeting: String = submitted.result().await?;
//! assert_eq!(greeting, "hello Ada");
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

/// The program of the README is compiled with the documentation's tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}

pub use ff_core as core;
pub use ff_sdk::*;
