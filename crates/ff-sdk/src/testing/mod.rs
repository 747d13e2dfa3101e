//! An engine in the test's own process, with a clock that the test moves: a week of retries,
//! delays, suspensions and timeouts runs in milliseconds.
//!
//! ```
//! use std::time::Duration;
//! use ff_sdk::testing::TestEngine;
//! use ff_sdk::{Submission, WorkerConfig};
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = TestEngine::start().await;
//! let worker = engine.worker(WorkerConfig::new("mailer")).await;
//! let looping = tokio::spawn(async move {
//!     while let Ok(tasks) = worker.claim(1, worker.claim_wait()).await {
//!         for task in tasks {
//!             match task.attempt_index() {
//!                 0..3 => drop(task.fail("no answer", "transient").await),
//!                 _ => drop(task.complete(None).await),
//!             }
//!         }
//!     }
//! });
//! let week = Duration::from_secs(7 * 86_400);
//! let mail = engine.client().submit(Submission::new("mail").delay(week)).await?;
//! engine.run_until_idle().await;
//! engine.assert_completed(mail.id()).await;
//! assert!(engine.elapsed() > week);
//! # looping.abort();
//! # Ok(())
//! # }
//! ```
//!
//! A single handler is tested by [`TestEngine::run_handler`], code that is given a task by
//! [`TestEngine::claimed`], and whole programs by [`TestEngine::worker`], [`TestEngine::client`] or
//! [`TestEngine::backend`]. What goes wrong elsewhere goes wrong on demand:
//! [`TestEngine::fail_next`], [`TestEngine::lose_reply_of`], [`TestEngine::lose_lease`]. Assertions
//! such as [`TestEngine::assert_completed`] tell the whole history when they fail.
//!
//! The store is the real embedded one, in memory; only its clock is another one. Nothing happens by
//! the clock of the machine, so nothing is late on a busy one. What the kit cannot do is move the
//! time of a handler that sleeps by itself: one that waits does so by suspending or delaying its
//! task.
//!
//! Times pass one after another: [`TestEngine::advance`] and [`TestEngine::run_until_idle`] go to
//! the next instant at which something is due, carry that out, wait until the workers have done
//! what it leads to, and go on. Leases of tasks that run are renewed meanwhile, as a worker does
//! whose time really passes; [`TestEngine::lose_lease`] is for those that are not. Ended executions
//! are kept for as long as a test may look at them, flows for the day that they are kept elsewhere.

mod assertions;
mod bench;
mod clock;
mod engine;
mod faults;
mod quiet;
mod single;

pub use engine::TestEngine;
