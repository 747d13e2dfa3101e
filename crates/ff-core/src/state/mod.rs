//! What an execution is at one moment, and the flat vector that users see of it.
//!
//! [`Phase`] is written so that illegal combinations cannot be: only an active execution has a
//! lease, only a terminal one an outcome. [`StateVector`] is always derived from it as a whole.

mod admission;
mod attached;
mod attempt;
mod budget;
mod bulk;
mod condition;
mod document;
mod execution;
mod failure;
mod flow;
mod grant;
mod index;
mod key;
mod lane;
mod listing;
mod member;
mod namespace;
mod phase;
mod quota;
mod route;
mod stream;
mod suspension;
mod vector;
mod waitpoint;
mod worker;

pub use admission::{AdmissionBlock, AdmissionReason, LimitId};
pub use attached::{Attached, Standing};
pub use attempt::{Attempt, AttemptState, AttemptType};
pub(crate) use budget::used_up;
pub use budget::{
    Breach, BreachKind, Budget, BudgetScope, BudgetWork, Counter, EnforcementMode, HardAction,
    LastBreach, LedgerPages, Limits, Recount, SoftAction, UsageKeyPages,
};
pub use bulk::{Bulk, BulkAction, BulkState, BulkTargets};
pub use condition::{Condition, Count, CountKind, Heard, Matcher, SetMode, Tally, Weight};
pub use document::{Body, Document, Part};
pub use execution::{
    About, Counts, Execution, LastEnd, LeaseEnd, LeaseEndReply, LeaseLoss, Owed, OwedSlot, Progress,
};
pub use failure::{CancelSource, Failure, FailureClass};
pub use flow::{
    CancelPolicy, Flow, FlowCancel, FlowEnd, FlowState, Gone, MemberCounts, Work, WorkKind,
};
pub use grant::{Grant, GrantKind};
pub use index::{Due, DueKind, QueuePlace};
pub use key::{Access, ApiKey, Scope, SecretHash};
pub use lane::{Lane, LaneState};
pub use listing::{List, Listing, ListingPosition, Relisted};
pub use member::{
    Counted, EdgeKind, EdgeState, Group, GroupState, Join, Member, OnSatisfied, Parent, Reach,
    Recounted, TakingBack,
};
pub use namespace::NamespaceRecord;
pub use phase::{
    Cancellation, Causes, Children, Delay, DelayReason, Lease, LostBy, Next, Outcome, Phase,
    Runnable, Terminal,
};
pub use quota::{Holder, PendingSlots, QuotaPolicy, QuotaSpec, RateWindow, SlotId, Verdict};
pub use route::Route;
pub use stream::{
    Displaced, Frame, FrameId, FrameIdParseError, FrameMode, Shelf, Stream, StreamEnd,
    UnknownFrameMode,
};
pub use suspension::{
    Matched, MetadataNote, ResumePolicy, Resumed, SuspendMemory, SuspendNote, Suspension,
    SuspensionReason, SuspensionTimeout, TimedOut, TimeoutBehavior, UnknownTimeoutBehavior, Waits,
};
pub use vector::{
    AttemptProgress, BlockingReason, EligibilityState, LifecyclePhase, OwnershipState, PublicState,
    StateVector, Surroundings,
};
pub use waitpoint::{
    CloseReason, ClosedRef, ClosedWaitpoint, KeyDigest, Signal, SignalEffect, Waitpoint,
    WaitpointState,
};
pub use worker::{CancelNotice, Registration, Worker, WorkerLoss};
