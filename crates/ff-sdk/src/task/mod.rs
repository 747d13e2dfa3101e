//! A task: one claimed execution, and all that its worker can do with it.

mod claimed;
mod during;
mod end;
mod signal;
mod suspend;
mod usage;

pub use claimed::ClaimedTask;
pub use end::{EndError, FailOutcome};
pub use ff_core::operation::{AppendedFrame as AppendFrameOutcome, ResumeSignal};
pub use ff_core::state::TimeoutBehavior;
pub use signal::{Signal, SignalOutcome};
pub use suspend::{ConditionMatcher, SuspendOutcome, SuspendedAt, Suspension, WaitpointTicket};
pub use usage::Usage;
