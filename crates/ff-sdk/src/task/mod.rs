//! A task: one claimed execution, and all that its worker can do with it.
//!
//! For those whose loop of claims is their own; handlers of a [runtime](crate::runtime) get the
//! same as [`runtime::Task`](crate::runtime::Task) and end their task by what they return.
//!
//! ```
//! # use ff_sdk::testing::TestEngine;
//! # use ff_sdk::{Submission, WorkerConfig};
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let engine = TestEngine::start().await;
//! # let worker = engine.worker(WorkerConfig::new("w")).await;
//! # engine.client().submit(Submission::new("fetch").payload("3")).await?;
//! let task = worker.claim_next().await?.expect("there is work");
//! let pages: u8 = std::str::from_utf8(task.input_payload())?.parse()?;
//! for page in 0..pages {
//!     if task.is_cancelled() {
//!         return Ok(());
//!     }
//!     task.append_frame("page", format!("page {page}"), None).await?;
//!     task.update_progress(100 / pages * (page + 1), "fetching").await?;
//! }
//! task.complete(Some("done".into())).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The lease is renewed at a third of its time for as long as the [`ClaimedTask`] lives. A task
//! ends in exactly one way: [`ClaimedTask::complete`], [`fail`](ClaimedTask::fail),
//! [`cancel`](ClaimedTask::cancel), or it is put aside by [`suspend_on`](ClaimedTask::suspend_on) a
//! [`Suspension`], [`delay_for`](ClaimedTask::delay_for) or
//! [`move_to_waiting_children`](ClaimedTask::move_to_waiting_children). When it should stop
//! before that, [`ClaimedTask::cancelled`] is ready and a [`StopReason`](crate::StopReason) says
//! why. A [`Signal`] is what others say to a suspended task, by a [`WaitpointTicket`].

mod claimed;
mod during;
mod end;
mod signal;
mod suspend;
mod usage;

pub use claimed::ClaimedTask;
pub use end::{EndError, FailOutcome};
/// Where a piece of output stands, how many there are, and the version of the summary that it
/// made, if it was a patch.
///
/// ```
/// # use ff_sdk::{Submission, testing::TestEngine};
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = TestEngine::start().await;
/// # let task = engine.claimed(Submission::new("work")).await;
/// let appended = task.append_frame("token", "Once", None).await?;
/// assert_eq!((appended.count, appended.summary_version), (1, None));
/// # task.complete(None).await?;
/// # Ok(())
/// # }
/// ```
pub use ff_core::operation::AppendedFrame as AppendFrameOutcome;
/// Who said what: see [`ClaimedTask::resume_signals`].
///
/// ```
/// use ff_sdk::ResumeSignal;
///
/// fn line(said: &ResumeSignal) -> String {
///     format!("{} by {} {}", said.name, said.source_type, said.source_identity)
/// }
/// ```
pub use ff_core::operation::ResumeSignal;
/// `Fail`, `Cancel` and `Expire` end the execution; `AutoResume` lets the task go on without a
/// signal; `Escalate` only tells operators, and the task waits on.
///
/// ```
/// use ff_sdk::TimeoutBehavior;
///
/// assert_eq!(TimeoutBehavior::default(), TimeoutBehavior::Fail);
/// ```
pub use ff_core::state::TimeoutBehavior;
pub use signal::{Signal, SignalOutcome};
pub use suspend::{ConditionMatcher, SuspendOutcome, SuspendedAt, Suspension, WaitpointTicket};
pub use usage::Usage;
