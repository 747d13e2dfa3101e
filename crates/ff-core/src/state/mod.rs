//! What an execution is at one moment, and the flat vector that users see of it.
//!
//! [`Phase`] is written so that illegal combinations cannot be: only an active execution has a
//! lease, only a terminal one an outcome. [`StateVector`] is always derived from it as a whole.

mod attempt;
mod execution;
mod failure;
mod index;
mod phase;
mod vector;

pub use attempt::{Attempt, AttemptState, AttemptType};
pub use execution::{
    About, Counts, Execution, LastEnd, LeaseEnd, LeaseEndReply, LeaseLoss, Progress,
};
pub use failure::{CancelSource, Failure, FailureClass};
pub use index::{Due, DueKind, QueuePlace};
pub use phase::{
    Cancellation, Causes, Delay, DelayReason, Lease, LostBy, Next, Outcome, Phase, Runnable,
    Terminal,
};
pub use vector::{
    AttemptProgress, BlockingReason, EligibilityState, LifecyclePhase, OwnershipState, PublicState,
    StateVector,
};
