//! The table of operations: one line each.

use super::{
    AddToFlow, AddedToFlow, Admission, AdmissionReleased, AdmissionVoided, AdvanceBulk,
    AppendFrames, Appended, ApplyEdge, AttachBudget, BlockForAdmission, BudgetCreated,
    BudgetRecounted, BudgetReset, BulkCreated, Cancel, CancelFlow, Cancelled, CascadeCompletion,
    Cascaded, ChangePriority, CheckAdmission, ClaimAdmitted, ClaimExecution, ClaimGrant,
    ClaimResumedExecution, CloseWaitpoint, Complete, Completed, ConfirmAdmission, Confirmed,
    CreateBudget, CreateBulk, CreateFlow, CreateKey, CreatePendingWaitpoint, CreateQuotaPolicy,
    Delay, Delayed, Delete, DeleteBudget, DeleteFlow, DeleteKey, DeleteQuotaPolicy, Deleted,
    DeliverApproval, DeliverSignal, DeregisterWorker, DisownUsage, DrainWorker, EdgeApplied,
    EdgeResolution, EdgeStaged, EndForBudget, ExpireExecution, Fail, Failed, Fired, FlowCancelled,
    FlowCreated, FlowReplayed, GrantAdmitted, GroupSet, HeartbeatWorker, Hold, IssueClaimGrant,
    IssueGrantAndClaim, IssueReclaimGrant, IssueToken, IssuedReclaimGrant, IssuedWaitpoint,
    KeyCreated, LaneSet, LoseLease, MarkLeaseExpired, MarkWorkerDead, NamespaceSet,
    NoteCancellations, PriorityChanged, Progressed, PromoteDelayed, QuotaPolicyCreated,
    QuotaPolicyUpdated, ReclaimExecution, Reclaimed, RecordSpend, RecountBudget, RegisterWorker,
    Release, ReleaseAdmission, ReleaseBudget, Renew, Renewed, Replay, ReplayFlow, Replayed,
    ReportUsage, ReportUsageAdmin, ResetBudget, ResolveEdge, Resume, ResumedNow, Revoke, Revoked,
    RotateSecret, Rotated, SeedSecret, SetBulk, SetFlowTags, SetGroupPolicy, SetLane, SetNamespace,
    SetTags, SettleBudget, SettleSlots, SettleWaking, SettleWorkerLoss, Settled, Signalled,
    StageEdge, Submit, SubmitFlow, Submitted, SubmittedFlow, Suspend, Suspended, TagsSet, Task,
    Tick, Ticked, Unblock, Unblocked, UpdateBudget, UpdateProgress, UpdateQuotaPolicy,
    UsageDisowned, UsageReported, VoidAdmission, WaitChildren, WaitingChildren, WorkerBeat,
    WorkerGone, WorkerRegistered,
};
use crate::error::{EngineError, Refusal};
use crate::id::{DocumentId, ExecutionId};
use crate::partition::PartitionConfig;

/// An act on one partition, with its name and its reply.
pub trait Operation: Into<Command> + Send {
    type Reply: Send;

    /// The name in metrics, traces and, on Valkey, of the function.
    const NAME: &'static str;

    /// Refuses malformed input before anything is read.
    fn check(&self) -> Result<(), Refusal>;

    /// The execution it acts on, where it is one.
    fn execution_id(&self) -> Option<ExecutionId>;

    /// Picks the reply of this operation out of the common one.
    fn reply(reply: Reply) -> Result<Self::Reply, EngineError>;
}

/// Checks and target of one operation; the rest of [`Operation`] comes from the table.
pub(super) trait Shape {
    fn check_shape(&self) -> Result<(), Refusal> {
        Ok(())
    }

    fn target(&self) -> Option<ExecutionId>;

    /// The document it acts on, where it is one.
    fn document(&self, _: &PartitionConfig) -> Option<DocumentId> {
        None
    }
}

macro_rules! operations {
    ($($operation:ident => $reply:ty, $name:literal;)*) => {
        /// Any operation.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Command { $($operation($operation),)* }

        /// Any reply.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Reply { $($operation($reply),)* }

        impl Command {
            /// Name of every operation.
            pub const NAMES: &[&str] = &[$($name,)*];

            pub const fn name(&self) -> &'static str {
                match self { $(Self::$operation(_) => $name,)* }
            }

            pub fn check(&self) -> Result<(), Refusal> {
                match self { $(Self::$operation(operation) => operation.check_shape(),)* }
            }

            pub fn execution_id(&self) -> Option<ExecutionId> {
                match self { $(Self::$operation(operation) => operation.target(),)* }
            }

            /// The document it acts on, where it is one.
            pub fn document_id(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
                match self { $(Self::$operation(operation) => operation.document(partitions),)* }
            }
        }

        $(
            impl From<$operation> for Command {
                fn from(operation: $operation) -> Self {
                    Self::$operation(operation)
                }
            }

            impl Operation for $operation {
                type Reply = $reply;
                const NAME: &'static str = $name;

                fn check(&self) -> Result<(), Refusal> {
                    self.check_shape()
                }

                fn execution_id(&self) -> Option<ExecutionId> {
                    self.target()
                }

                fn reply(reply: Reply) -> Result<$reply, EngineError> {
                    match reply {
                        Reply::$operation(reply) => Ok(reply),
                        other => Err(EngineError::bug(format!("{}: got {other:?}", $name))),
                    }
                }
            }
        )*
    };
}

operations! {
    Submit => Submitted, "submit_execution";
    Renew => Renewed, "renew_lease";
    UpdateProgress => Progressed, "update_progress";
    AppendFrames => Appended, "append_frames";
    Complete => Completed, "complete_execution";
    Fail => Failed, "fail_execution";
    Cancel => Cancelled, "cancel_execution";
    Delay => Delayed, "delay_execution";
    IssueClaimGrant => ClaimGrant, "issue_claim_grant";
    ClaimExecution => Box<Task>, "claim_execution";
    ClaimResumedExecution => Box<Task>, "claim_resumed_execution";
    IssueGrantAndClaim => Box<Task>, "issue_grant_and_claim";
    IssueReclaimGrant => IssuedReclaimGrant, "issue_reclaim_grant";
    ReclaimExecution => Reclaimed, "reclaim_execution";
    Revoke => Revoked, "revoke_lease";
    Hold => Settled, "hold_execution";
    Release => Settled, "release_execution";
    ChangePriority => PriorityChanged, "change_priority";
    SetTags => TagsSet, "set_execution_tags";
    Replay => Replayed, "replay_execution";
    Delete => Deleted, "delete_execution";
    ExpireExecution => Fired, "expire_execution";
    PromoteDelayed => Fired, "promote_delayed";
    MarkLeaseExpired => Fired, "mark_lease_expired_if_due";
    Tick => Ticked, "tick";
    CreatePendingWaitpoint => IssuedWaitpoint, "create_pending_waitpoint";
    CloseWaitpoint => Settled, "close_waitpoint";
    IssueToken => IssuedWaitpoint, "issue_waitpoint_token";
    Suspend => Suspended, "suspend_execution";
    Resume => ResumedNow, "resume_execution";
    DeliverSignal => Signalled, "deliver_signal";
    DeliverApproval => Signalled, "deliver_approval_signal";
    WaitChildren => WaitingChildren, "move_to_waiting_children";
    SubmitFlow => SubmittedFlow, "submit_flow";
    CreateFlow => FlowCreated, "create_flow";
    AddToFlow => AddedToFlow, "add_execution_to_flow";
    StageEdge => EdgeStaged, "stage_dependency_edge";
    ApplyEdge => EdgeApplied, "apply_dependency_to_child";
    SetGroupPolicy => GroupSet, "set_edge_group_policy";
    ResolveEdge => EdgeResolution, "resolve_dependency";
    CancelFlow => FlowCancelled, "cancel_flow";
    ReplayFlow => FlowReplayed, "replay_flow";
    DeleteFlow => Deleted, "delete_flow";
    CascadeCompletion => Cascaded, "cascade_completion";
    SetFlowTags => TagsSet, "set_flow_tags";
    CreateBudget => BudgetCreated, "create_budget";
    UpdateBudget => Settled, "update_budget";
    ReportUsage => UsageReported, "report_usage";
    ReportUsageAdmin => UsageReported, "report_usage_admin";
    RecordSpend => UsageReported, "record_spend";
    ReleaseBudget => Settled, "release_budget";
    RecountBudget => BudgetRecounted, "recount_budget";
    DisownUsage => UsageDisowned, "disown_usage";
    ResetBudget => BudgetReset, "reset_budget";
    DeleteBudget => Settled, "delete_budget";
    AttachBudget => Settled, "attach_budget";
    SettleBudget => Settled, "settle_budget";
    EndForBudget => Settled, "end_for_budget";
    CreateQuotaPolicy => QuotaPolicyCreated, "create_quota_policy";
    UpdateQuotaPolicy => QuotaPolicyUpdated, "update_quota_policy";
    DeleteQuotaPolicy => Settled, "delete_quota_policy";
    CheckAdmission => Admission, "check_admission";
    ConfirmAdmission => Confirmed, "confirm_admission";
    ReleaseAdmission => AdmissionReleased, "release_admission";
    SettleWaking => Settled, "settle_waking";
    RegisterWorker => WorkerRegistered, "register_worker";
    HeartbeatWorker => WorkerBeat, "heartbeat_worker";
    NoteCancellations => Settled, "note_cancellations";
    DrainWorker => Settled, "drain_worker";
    DeregisterWorker => WorkerGone, "deregister_worker";
    MarkWorkerDead => WorkerGone, "mark_worker_dead";
    SettleWorkerLoss => Settled, "settle_worker_loss";
    LoseLease => Settled, "lose_lease";
    SetLane => LaneSet, "set_lane";
    SetNamespace => NamespaceSet, "set_namespace";
    CreateKey => KeyCreated, "create_key";
    DeleteKey => Settled, "delete_key";
    CreateBulk => BulkCreated, "bulk_create";
    SetBulk => Settled, "set_bulk";
    AdvanceBulk => Settled, "advance_bulk";
    BlockForAdmission => Settled, "block_execution_for_admission";
    Unblock => Unblocked, "unblock_execution";
    ClaimAdmitted => Box<Task>, "claim_admitted";
    GrantAdmitted => ClaimGrant, "grant_admitted";
    VoidAdmission => AdmissionVoided, "void_admission";
    SettleSlots => Settled, "settle_slots";
    SeedSecret => Settled, "seed_waitpoint_hmac_secret";
    RotateSecret => Rotated, "rotate_waitpoint_hmac_secret";
}
