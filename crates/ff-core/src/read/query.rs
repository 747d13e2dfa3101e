//! The table of questions: one line each.

use bytes::Bytes;
use serde::Serialize;

use super::{
    Audited, BudgetStatus, CancelBacklog, DescribeEdge, DescribeFlow, DescribeLane,
    DescribeNamespace, DescribeQuotaPolicy, DescribeWorker, EdgeSnapshot, Eligibility,
    EvaluateEligibility, Explained, FlowEdges, FlowMembers, FlowSnapshot, GetBudgetStatus, GetBulk,
    GetKey, LaneSnapshot, LeasesOf, LedgerRead, Limited, ListBlocked, ListBudgets, ListBulks,
    ListCancelBacklog, ListExpiredLeases, ListFleets, ListFlowEdges, ListFlowEvents,
    ListFlowMembers, ListFlows, ListKeys, ListLanes, ListLimited, ListNamespaces, ListOffers,
    ListPendingWaitpoints, ListQueued, ListQuotaPolicies, ListRoutes, ListSuspended, ListUnrouted,
    ListWorkers, ListedBlock, ListedLease, ListedSuspension, NamespaceSnapshot, Offer, Page,
    QuotaPolicyDescribed, QuotaPolicySnapshot, ReadLaneStanding, ReadLedger, ReadQuotaLimits,
    ReadStanding, ReadStream, ReadSummary, Record, Search, StandingFound, StreamPage, SummaryRead,
    Unrouted, WorkerSnapshot,
};
use crate::check::{check_partition, check_range};
use crate::content::Content;
use crate::error::{EngineError, Refusal};
use crate::event::Envelope;
use crate::id::{
    ContentType, ExecutionId, Home, Kid, Kind, LeaseFence, Namespace, WaitpointId, WaitpointKey,
};
use crate::limits;
use crate::operation::ResumeSignal;
use crate::partition::PartitionConfig;
use crate::state::{
    ApiKey, Attempt, AttemptState, Bulk, Execution, QuotaSpec, Route, SignalEffect, Standing,
    StateVector, Waitpoint, WaitpointState,
};
use crate::tags::Tags;
use crate::time::TimestampMs;
use crate::token::{Keyring, KidInfo};

/// A question with a typed answer.
pub trait Question: Into<Query> + Send {
    type Answer: Send;

    const NAME: &'static str;

    /// Picks the answer to this question out of the common one.
    fn answer(answer: Answer) -> Result<Self::Answer, EngineError>;
}

/// The whole record of an execution; none if there is no such.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Describe {
    pub execution_id: ExecutionId,
}

/// Only the state vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadState {
    pub execution_id: ExecutionId,
}

/// The result of the last success, or of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadResult {
    pub execution_id: ExecutionId,
    pub attempt_index: Option<u32>,
}

impl ReadResult {
    /// The attempt whose result is asked for; none: the newest that has one. A success without a
    /// result hides those before it.
    pub fn attempt_of(&self, execution: &Execution) -> Option<u32> {
        let succeeded =
            execution.attempt.as_ref().filter(|a| a.state == AttemptState::EndedSuccess);
        self.attempt_index.or(succeeded.map(|attempt| attempt.index))
    }
}

/// Payload, kind and tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadContext {
    pub execution_id: ExecutionId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    pub payload: Bytes,
    pub content_type: ContentType,
    pub kind: Kind,
    pub tags: Tags,
}

/// Attempts in the order of their index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListAttempts {
    pub execution_id: ExecutionId,
    /// The page begins behind this index.
    pub after: Option<u32>,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attempts {
    pub items: Vec<Attempt>,
    /// Index to go on after; none at the end.
    pub next: Option<u32>,
}

/// Events of one execution that are still kept, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListEvents {
    pub execution_id: ExecutionId,
    /// The page begins behind this seq; 0 for the beginning.
    pub after_seq: u64,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Events {
    pub items: Vec<Envelope>,
    /// Seq to go on after; none at the end.
    pub next: Option<u64>,
    /// Retention has removed events between `after_seq` and the first item.
    pub gap: bool,
}

/// Why an execution is where it is, as far as its own records tell.
/// [`crate::backend::BackendExt::explain`] asks this and, where it matters, the workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explain {
    pub execution_id: ExecutionId,
}

/// Signals that an execution has accepted, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListSignals {
    pub execution_id: ExecutionId,
    /// The page begins with this number.
    pub from: u32,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signals {
    pub items: Vec<ListedSignal>,
    /// Number to go on with; none at the end.
    pub next: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSignal {
    pub number: u32,
    pub waitpoint_id: WaitpointId,
    pub waitpoint_key: WaitpointKey,
    pub effect: SignalEffect,
    pub signal: ResumeSignal,
}

/// The signals that resumed the attempt of this fence; none if it was not resumed by signals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObserveSignals {
    pub execution_id: ExecutionId,
    pub fence: LeaseFence,
}

/// Waitpoints of one execution that are not closed, oldest first. Shows no tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListWaitpoints {
    pub execution_id: ExecutionId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedWaitpoint {
    pub execution_id: ExecutionId,
    pub waitpoint_id: WaitpointId,
    pub key: WaitpointKey,
    pub state: WaitpointState,
    pub kid: Kid,
    /// Tells tokens apart without showing one.
    pub fingerprint: String,
    /// Why the execution waits; none while it does not.
    pub reason: Option<String>,
    pub created_at: TimestampMs,
    pub expires_at: Option<TimestampMs>,
}

impl ListedWaitpoint {
    /// All of an execution.
    pub fn all_of(execution: &Execution, now: TimestampMs) -> Vec<Self> {
        execution.waits.open_at(now).map(|waitpoint| Self::of(execution, waitpoint)).collect()
    }

    /// A waitpoint of an execution.
    pub fn of(execution: &Execution, waitpoint: &Waitpoint) -> Self {
        let suspension = execution.phase.suspension();
        let suspension = suspension.filter(|_| waitpoint.state == WaitpointState::Open);
        Self {
            execution_id: execution.id,
            waitpoint_id: waitpoint.id,
            key: waitpoint.key.clone(),
            state: waitpoint.state,
            kid: waitpoint.token.kid.clone(),
            fingerprint: waitpoint.token.hash.fingerprint(),
            reason: suspension.map(|suspension| suspension.reason.0.clone()),
            created_at: waitpoint.created_at,
            expires_at: waitpoint.expires_at,
        }
    }
}

/// The keys that sign and open waitpoint tokens, without their secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListKids;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kids {
    pub current_kid: Kid,
    pub kids: Vec<KidInfo>,
}

impl From<&Keyring> for Kids {
    fn from(keyring: &Keyring) -> Self {
        Self { current_kid: keyring.current_kid().clone(), kids: keyring.kids() }
    }
}

/// When time has something to do next: one cheap look over all homes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dues {
    /// Home (none: the whole store) and its earliest due time. Homes without are absent.
    pub items: Vec<(Option<Home>, TimestampMs)>,
    pub now: TimestampMs,
}

/// Compares every record with the indexes that must list it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit;

impl Query {
    /// Refuses a question about a partition that does not exist, or a page out of bounds.
    pub fn check(&self, partitions: &PartitionConfig) -> Result<(), Refusal> {
        let (id, limit) = match self {
            Self::Describe(q) => (Some(q.execution_id), None),
            Self::ReadState(q) => (Some(q.execution_id), None),
            Self::ReadResult(q) => (Some(q.execution_id), None),
            Self::ReadContext(q) => (Some(q.execution_id), None),
            Self::ListAttempts(q) => (Some(q.execution_id), Some(q.limit)),
            Self::ListEvents(q) => (Some(q.execution_id), Some(q.limit)),
            Self::Search(q) => (None, Some(q.limit)),
            Self::Explain(q) => (Some(q.execution_id), None),
            Self::ListSignals(q) => (Some(q.execution_id), Some(q.limit)),
            Self::ObserveSignals(q) => (Some(q.execution_id), None),
            Self::ListWaitpoints(q) => (Some(q.execution_id), None),
            Self::ReadStream(q) => {
                q.check()?;
                (Some(q.execution_id), None)
            }
            Self::ReadSummary(q) => (Some(q.execution_id), None),
            Self::ListPendingWaitpoints(q) => (None, Some(q.limit)),
            Self::ListSuspended(q) => (None, Some(q.limit)),
            Self::ListFlows(q) => (None, Some(q.limit)),
            Self::ListFlowEvents(q) => (None, Some(q.limit)),
            Self::ListFlowMembers(q) => (None, Some(q.limit)),
            Self::ListFlowEdges(q) => (None, Some(q.limit)),
            Self::EvaluateEligibility(q) => (Some(q.execution_id), None),
            Self::DescribeFlow(_) | Self::DescribeEdge(_) => (None, None),
            Self::ListBudgets(q) => (None, Some(q.limit)),
            Self::DescribeQuotaPolicy(q) => (None, Some(q.limit)),
            Self::ListQuotaPolicies(q) => (None, Some(q.limit)),
            Self::GetBudgetStatus(_) | Self::ReadQuotaLimits(_) => (None, None),
            Self::ListWorkers(q) => (None, Some(q.limit)),
            Self::LeasesOf(q) => (None, Some(q.limit)),
            Self::ListExpiredLeases(q) => (None, Some(q.limit)),
            Self::ListLanes(q) => (None, Some(q.limit)),
            Self::ListBlocked(q) => (None, Some(q.limit)),
            Self::ListLimited(q) => (None, Some(q.limit)),
            Self::ListKeys(q) => (None, Some(q.limit)),
            Self::ListBulks(q) => (None, Some(q.limit)),
            Self::GetKey(_) | Self::GetBulk(_) | Self::DescribeNamespace(_) => (None, None),
            Self::ReadLedger(q) => (Some(q.execution_id), None),
            Self::ReadStanding(q) => (Some(q.execution_id), None),
            Self::ListRoutes(q) => (None, Some(q.limit)),
            Self::ListQueued(q) => (None, Some(q.limit)),
            Self::ListUnrouted(q) => (None, Some(q.limit)),
            Self::ListOffers(q) => (None, Some(q.limit)),
            Self::ListFleets(q) => (None, Some(q.limit)),
            Self::ListNamespaces(q) => (None, Some(q.limit)),
            Self::ListCancelBacklog(q) => (None, Some(q.limit)),
            Self::DescribeWorker(_) | Self::DescribeLane(_) => (None, None),
            Self::ReadLaneStanding(_) => (None, None),
            Self::Due(_) | Self::Audit(_) | Self::ListKids(_) => (None, None),
        };
        id.map_or(Ok(()), |id| check_partition(id, partitions))?;
        limit.map_or(Ok(()), check_limit)
    }
}

/// A page has 1 to 500 items.
pub(super) fn check_limit(limit: u32) -> Result<(), Refusal> {
    check_range("limit", limit.into(), 1, limits::PAGE_MAX.into())
}

macro_rules! questions {
    ($($question:ident => $answer:ty, $name:literal;)*) => {
        /// Any question.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Query { $($question($question),)* }

        /// Any answer.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Answer { $($question($answer),)* }

        impl Query {
            /// The questions, by the names of their types.
            pub const TYPES: &[&str] = &[$(stringify!($question),)*];

            pub const fn name(&self) -> &'static str {
                match self { $(Self::$question(_) => $name,)* }
            }
        }

        $(
            impl From<$question> for Query {
                fn from(question: $question) -> Self {
                    Self::$question(question)
                }
            }

            impl Question for $question {
                type Answer = $answer;
                const NAME: &'static str = $name;

                fn answer(answer: Answer) -> Result<$answer, EngineError> {
                    match answer {
                        Answer::$question(answer) => Ok(answer),
                        other => Err(EngineError::bug(format!("{}: got {other:?}", $name))),
                    }
                }
            }
        )*
    };
}

questions! {
    Describe => Option<Box<Record>>, "describe_execution";
    ReadState => Option<StateVector>, "read_execution_state";
    ReadResult => Content, "get_execution_result";
    ReadContext => Option<Context>, "read_execution_context";
    ListAttempts => Attempts, "list_attempts";
    ListEvents => Events, "list_events";
    Search => Page<Record>, "search_executions";
    Explain => Option<Box<Explained>>, "explain";
    ListSignals => Signals, "list_signals";
    ObserveSignals => Vec<ResumeSignal>, "observe_signals";
    ListKids => Kids, "list_kids";
    ListWaitpoints => Vec<ListedWaitpoint>, "list_waitpoints";
    ListPendingWaitpoints => Page<ListedWaitpoint>, "list_pending_waitpoints";
    ListSuspended => Page<ListedSuspension>, "list_suspended";
    DescribeFlow => Option<Box<FlowSnapshot>>, "describe_flow";
    ListFlows => Page<FlowSnapshot>, "list_flows";
    ListFlowEvents => Events, "list_flow_events";
    ListFlowMembers => FlowMembers, "list_flow_members";
    ListFlowEdges => FlowEdges, "list_edges";
    DescribeEdge => EdgeSnapshot, "describe_edge";
    EvaluateEligibility => Eligibility, "evaluate_flow_eligibility";
    GetBudgetStatus => Option<Box<BudgetStatus>>, "get_budget_status";
    ListBudgets => Page<BudgetStatus>, "list_budgets";
    ReadLedger => Option<Box<LedgerRead>>, "read_ledger";
    ReadQuotaLimits => Option<QuotaSpec>, "read_quota_policy_limits";
    DescribeQuotaPolicy => Option<Box<QuotaPolicyDescribed>>, "describe_quota_policy";
    ListQuotaPolicies => Page<QuotaPolicySnapshot>, "list_quota_policies";
    DescribeNamespace => Box<NamespaceSnapshot>, "describe_namespace";
    DescribeWorker => Option<Box<WorkerSnapshot>>, "describe_worker";
    ListWorkers => Page<WorkerSnapshot>, "list_workers";
    LeasesOf => Page<ListedLease>, "leases_of";
    ListExpiredLeases => Page<ListedLease>, "list_expired_leases";
    DescribeLane => Box<LaneSnapshot>, "describe_lane";
    ListLanes => Page<LaneSnapshot>, "list_lanes";
    ListBlocked => Page<ListedBlock>, "list_blocked";
    ListLimited => Page<Limited>, "list_limited";
    GetKey => Option<Box<ApiKey>>, "get_key";
    ListKeys => Page<ApiKey>, "list_keys";
    GetBulk => Option<Box<Bulk>>, "get_bulk";
    ListBulks => Page<Bulk>, "list_bulks";
    ReadStanding => Option<Box<StandingFound>>, "read_standing";
    ReadLaneStanding => Standing, "read_lane_standing";
    ListRoutes => Page<Route>, "list_routes";
    ListQueued => Vec<ExecutionId>, "list_queued";
    ListUnrouted => Page<Unrouted>, "list_unrouted";
    ListOffers => Page<Offer>, "list_offers";
    ListFleets => Page<Namespace>, "list_fleets";
    ListNamespaces => Page<Namespace>, "list_namespaces";
    ListCancelBacklog => Page<CancelBacklog>, "list_cancel_backlog";
    ReadStream => StreamPage, "read_stream";
    ReadSummary => SummaryRead, "read_summary";
    Due => Dues, "due";
    Audit => Audited, "audit";
}
