//! Handlers as plain async functions, and the runtime that claims for them.
//!
//! A [`WorkerRuntime`] is given a [`Handler`] for each kind of work. A handler takes what it needs
//! by the types of its arguments:
//!
//! | argument | what it is |
//! | --- | --- |
//! | [`Payload<T>`](Payload) | the payload, read as JSON |
//! | [`PayloadBytes`] | the payload as it came |
//! | [`Data<T>`](Data) | what [`WorkerRuntime::data`] shares |
//! | [`TaskInfo`] | what the task is: ids, tags, attempt, inputs, signals |
//! | [`Task`] | to report progress, output and usage, and to hear when to stop |
//! | yours | whatever implements [`FromTask`] |
//!
//! It returns what becomes of the task: `()` or a value completes it, an [`Outcome`] says something
//! else (wait, come again later, cancel), an error fails the attempt. Every error becomes a
//! [`Failure`], which is tried again as the policy says unless it is
//! [permanent](Failure::permanent).
//!
//! ```
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! use ff_sdk::WorkerConfig;
//! use ff_sdk::runtime::{Data, Failure, Payload, WorkerRuntime};
//!
//! struct Greeting(&'static str);
//!
//! async fn greet(name: Payload<String>, with: Data<Greeting>) -> Result<String, Failure> {
//!     if name.is_empty() {
//!         return Err(Failure::permanent("nobody to greet"));
//!     }
//!     Ok(format!("{} {}", with.0, *name))
//! }
//!
//! let config = WorkerConfig::new("greeter").url("sqlite::memory:");
//! # let stop = async {};
//! WorkerRuntime::connect(config).data(Greeting("hello")).on("greet", greet).run(stop).await?;
//! # Ok::<(), ff_sdk::SdkError>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A handler may run again after a crash, at any line: what it does outside the engine should bear
//! that. One that has to wait returns [`Outcome::suspend`] or [`Outcome::Delay`] and holds no slot
//! meanwhile. A kind of its own limits has [`HandlerOptions`]; what stands around all handlers is a
//! [layer](crate::layers). [`TestEngine::run_handler`](crate::testing::TestEngine::run_handler)
//! tests a handler in a line.

mod builder;
mod call;
mod extract;
mod failure;
mod handler;
mod info;
mod inputs;
mod kinds;
mod options;
mod outcome;
mod run;
mod running;
mod signals;
mod task;
mod work;

pub use builder::WorkerRuntime;
pub use call::TaskCall;
pub use extract::{Data, FromTask, Payload, PayloadBytes};
pub use failure::{
    EXTRACTOR_MISSING_STATE, EXTRACTOR_PAYLOAD_DECODE, Failure, HANDLER_ERROR, HANDLER_PANIC,
    HANDLER_TIMEOUT, RUNTIME_NO_HANDLER,
};
pub use handler::{Handler, check_handler};
pub use info::TaskInfo;
pub use options::{HandlerOptions, TaskLayer, TaskService};
pub use outcome::{IntoAnswer, IntoOutcome, Json, Outcome};
pub use running::RunningWorker;
pub use task::Task;
