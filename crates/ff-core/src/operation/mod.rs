//! Operations are values: the struct that names the act is its argument, and each has one reply
//! type. An operation is one atomic step in one partition.

mod admission;
mod budget;
mod bulk;
mod cancel;
mod claim;
mod command;
mod complete;
mod delay;
mod delete;
mod edge;
mod errand;
mod fail;
mod filter;
mod flow;
mod frame;
mod grant;
mod graph;
mod hold;
mod key;
mod lane;
mod namespace;
mod priority;
mod progress;
mod quota;
mod reconcile;
mod renew;
mod replay;
mod revoke;
mod secret;
mod signal;
mod submit;
mod suspend;
mod tags;
mod tick;
mod trim;
mod usage;
mod waitpoint;
mod worker;

pub(crate) use admission::admission_reason;
pub use admission::{
    AdmissionVoided, BlockForAdmission, ClaimAdmitted, EndForBudget, SettleSlots, Unblock,
    Unblocked, VoidAdmission,
};
pub use budget::{
    AttachBudget, BudgetCreated, BudgetErrand, BudgetReset, CreateBudget, DeleteBudget,
    ResetBudget, SettleBudget, UpdateBudget,
};
pub use bulk::{AdvanceBulk, BulkCreated, BulkWish, CreateBulk, SetBulk};
pub use cancel::{Cancel, Cancelled};
pub use claim::{
    Applicant, Claim, Claimed, Extras, Input, LaneOrder, LaneShare, PreviousFailure, ResumeSignal,
    Task,
};
pub use command::{Command, Operation, Reply};
pub use complete::{ClaimNext, Complete, Completed};
pub use delay::{Delay, DelayUntil, Delayed};
pub use delete::{Delete, Deleted};
pub use edge::{
    ApplyEdge, EdgeApplied, EdgeResolution, EdgeStaged, GroupSet, NewEdge, ResolveEdge,
    SetGroupPolicy, StageEdge, WaitChildren, WaitingChildren,
};
pub use errand::Errand;
pub use fail::{Fail, Failed};
pub use filter::ScannerFilter;
pub use flow::{
    AddToFlow, AddedToFlow, CancelFlow, CascadeCompletion, Cascaded, CreateFlow, DeleteFlow,
    FlowCancelled, FlowCreated, FlowReplayed, InFlow, ReplayFlow, SetFlowTags,
};
pub use frame::{AppendFrames, Appended, AppendedFrame, NewFrame};
pub use grant::{
    ClaimExecution, ClaimForWorker, ClaimGrant, ClaimResumedExecution, GrantAdmitted,
    IssueClaimGrant, IssueGrantAndClaim, IssueReclaimGrant, IssuedReclaimGrant, ReclaimExecution,
    Reclaimed, TakenSlots,
};
pub(crate) use graph::Graph;
pub use graph::{GraphEdge, GraphGroup, GraphMember, SubmitFlow, SubmittedFlow};
pub use hold::{Hold, Release, Settled};
pub use key::{CreateKey, DeleteKey, KeyCreated};
pub use lane::{LaneSet, SetLane};
pub use namespace::{Attach, NamespaceSet, SetNamespace};
pub use priority::{ChangePriority, PriorityChanged};
pub use progress::{Progressed, UpdateProgress};
pub use quota::{
    Admission, AdmissionReleased, CheckAdmission, ConfirmAdmission, Confirmed, CreateQuotaPolicy,
    DeleteQuotaPolicy, HeldBy, QuotaChange, QuotaPolicyCreated, QuotaPolicyUpdated,
    ReleaseAdmission, SettleWaking, SlotEnd, UpdateQuotaPolicy,
};
pub use reconcile::{Part, Reconcile, Reconciled};
pub use renew::{Renew, Renewed};
pub use replay::{Replay, Replayed};
pub use revoke::{Revoke, Revoked};
pub use secret::{RotateSecret, Rotated, SeedSecret};
pub use signal::{Decision, DeliverApproval, DeliverSignal, Message, Signalled, Suffix};
pub(crate) use submit::fingerprint;
pub use submit::{Submit, Submitted};
pub use suspend::{Binding, Resume, ResumedNow, Suspend, SuspendTimeout, Suspended};
pub use tags::{SetTags, TagsSet};
pub use tick::{ExpireExecution, Fired, MarkLeaseExpired, NotDue, PromoteDelayed, Tick, Ticked};
pub use trim::{Trim, Trimmed};
pub(crate) use usage::Report;
pub use usage::{
    BudgetRecounted, DisownUsage, Miscounted, RecordSpend, RecountBudget, ReleaseBudget,
    ReportToAll, ReportUsage, ReportUsageAdmin, Spender, UsageDisowned, UsageReported, Verdict,
};
pub use waitpoint::{
    CloseWaitpoint, CreatePendingWaitpoint, IssueToken, IssuedWaitpoint, Remint, WaitpointRef,
};
pub use worker::{
    DeregisterWorker, DrainWorker, HeartbeatWorker, LoseLease, LostWorker, MarkWorkerDead,
    NoteCancellations, RegisterWorker, SettleWorkerLoss, WorkerBeat, WorkerGone, WorkerRegistered,
};
