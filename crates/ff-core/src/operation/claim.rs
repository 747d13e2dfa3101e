//! Claim: work for a worker, each task under a lease of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use uuid::Uuid;

use crate::capability::Capabilities;
use crate::check::check_range;
use crate::content::Content;
use crate::error::Refusal;
use crate::id::{
    AttemptId, ContentType, ExecutionId, FlowId, Handle, Kind, LaneId, LeaseFence, LeaseId,
    MemberName, Namespace, SignalId, SignalName, WorkerId, WorkerInstanceId,
};
use crate::limits;
use crate::state::{AttemptType, Outcome, Standing};
use crate::tags::Tags;
use crate::time::TimestampMs;

/// Up to `max` tasks for one worker instance. It looks over all partitions, so it is not a
/// [`super::Command`] but a method of its own on the backend.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    pub namespace: Namespace,
    pub worker_id: WorkerId,
    pub worker_instance_id: WorkerInstanceId,
    pub lanes: Vec<LaneShare>,
    pub order: LaneOrder,
    /// What this worker can do; decides what it gets.
    pub capabilities: Capabilities,
    pub max: u32,
    pub lease_ttl_ms: u64,
    /// The ids of the leases count up from here.
    pub seed: Uuid,
    /// All that it takes is set aside, also what stands under no limits.
    pub sets_aside: bool,
}

impl Claim {
    /// One task of these lanes, all of the same weight, in the default namespace and for the default
    /// time.
    pub fn new(
        worker_id: WorkerId,
        worker_instance_id: WorkerInstanceId,
        lanes: impl IntoIterator<Item = LaneId>,
    ) -> Self {
        Self {
            namespace: Namespace::default(),
            worker_id,
            worker_instance_id,
            lanes: lanes.into_iter().map(LaneShare::new).collect(),
            order: LaneOrder::default(),
            capabilities: Capabilities::default(),
            max: 1,
            lease_ttl_ms: limits::LEASE_TTL_MS,
            seed: LeaseId::mint().uuid(),
            sets_aside: false,
        }
    }
}

/// A lane of a claim, and what the rota owes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneShare {
    pub lane: LaneId,
    pub weight: u32,
    /// Left over from the claims before (see [`crate::rota::Rota`]); 0 to begin with.
    pub credit: i64,
}

/// How several lanes share a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LaneOrder {
    /// Smooth weighted round robin.
    #[default]
    Weighted,
    /// The first lane that has work.
    Ordered,
}

/// What a claim took: tasks, and executions that stand under limits.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Claimed {
    pub tasks: Vec<Task>,
    pub applicants: Vec<Applicant>,
}

/// An execution that is set aside for a claim until its limits have been asked: the claim may then
/// lease it with [`super::ClaimAdmitted`]. If nobody does, it goes back to its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applicant {
    pub execution_id: ExecutionId,
    /// Of the lease that it would get.
    pub lease_id: LeaseId,
    pub lease_epoch: u64,
    /// It would not go on with an open attempt.
    pub opens_attempt: bool,
    /// Its place in the queue: lowest first.
    pub score: i64,
    pub standing: Standing,
}

impl Claimed {
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.applicants.is_empty()
    }

    pub fn len(&self) -> usize {
        self.tasks.len() + self.applicants.len()
    }
}

/// One claimed execution with all that its handler needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub execution_id: ExecutionId,
    pub namespace: Namespace,
    pub lane: LaneId,
    pub kind: Kind,
    pub priority: u16,
    pub payload: Bytes,
    pub content_type: ContentType,
    pub tags: Tags,
    pub attempt_index: u32,
    pub attempt_id: AttemptId,
    pub attempt_type: AttemptType,
    pub lease_id: LeaseId,
    pub lease_epoch: u64,
    pub expires_at: TimestampMs,
    pub ttl_ms: u64,
    pub handle: Handle,
    pub retry_count: u32,
    pub reclaim_count: u32,
    pub previous_failure: Option<PreviousFailure>,
    pub deadline_at: Option<TimestampMs>,
    pub attempt_deadline_at: Option<TimestampMs>,
    pub created_at: TimestampMs,
    pub trace_context: Option<String>,
    pub flow_id: Option<FlowId>,
    pub member_name: Option<MemberName>,
    pub extras: Extras,
}

/// What a task is told of its suspension and of its flow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extras {
    /// The signals that resumed it, in the order in which they came.
    pub resume_signals: Vec<ResumeSignal>,
    /// What the suspend left.
    pub metadata: Option<Bytes>,
    /// Outcomes and results of the members of its flow that it waited for, by the names of edges.
    pub inputs: BTreeMap<String, Input>,
}

/// What a task is told of a member that it waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    pub execution_id: ExecutionId,
    pub outcome: Outcome,
    /// False: there is a result, too large for this reply; it is read with the execution.
    pub inline: bool,
    pub result: Option<Content>,
}

/// A signal as its receiver sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeSignal {
    pub signal_id: SignalId,
    pub name: SignalName,
    pub category: String,
    pub source_type: String,
    pub source_identity: String,
    pub correlation_id: Option<String>,
    pub accepted_at: TimestampMs,
    pub content_type: ContentType,
    pub bytes: u32,
    /// None: too large for this reply; it is read with the execution's signals.
    pub payload: Option<Bytes>,
}

impl Extras {
    pub fn bytes(&self) -> usize {
        let payloads = self.resume_signals.iter().filter_map(|signal| signal.payload.as_ref());
        let results = self.inputs.values().filter_map(|input| input.result.as_ref());
        let results = results.map(|result| &result.bytes);
        payloads.chain(&self.metadata).chain(results).map(Bytes::len).sum()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousFailure {
    pub reason: String,
    pub category: String,
}

impl Task {
    pub fn fence(&self) -> LeaseFence {
        LeaseFence {
            lease_id: self.lease_id,
            lease_epoch: self.lease_epoch,
            attempt_id: self.attempt_id,
        }
    }
}

impl LaneShare {
    pub fn new(lane: LaneId) -> Self {
        Self { lane, weight: 1, credit: 0 }
    }
}

impl Claim {
    pub const NAME: &'static str = "claim_executions";

    /// Checks a claim that waits so long.
    pub fn check_wait(&self, wait: Duration) -> Result<(), Refusal> {
        let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        check_range("wait_ms", ms, 0, limits::CLAIM_WAIT_MS)?;
        self.check()
    }

    pub fn check(&self) -> Result<(), Refusal> {
        check_range("max", self.max.into(), 1, limits::CLAIM_TASKS.into())?;
        check_lease_ttl("lease_ttl_ms", self.lease_ttl_ms)?;
        check_lanes(&self.lanes)
    }
}

pub(super) fn check_lease_ttl(field: &'static str, ttl_ms: u64) -> Result<(), Refusal> {
    check_range(field, ttl_ms, limits::LEASE_TTL_MIN_MS, limits::LEASE_TTL_MAX_MS)
}

pub(super) fn check_lanes(lanes: &[LaneShare]) -> Result<(), Refusal> {
    if lanes.is_empty() {
        return Err(Refusal::invalid("lanes", "at least one lane is required"));
    }
    if lanes.len() > limits::CLAIM_LANES {
        return Err(Refusal::invalid("lanes", format!("at most {} lanes", limits::CLAIM_LANES)));
    }
    let mut names: Vec<_> = lanes.iter().map(|share| &share.lane).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Refusal::invalid("lanes", "a lane is named twice"));
    }
    for (number, share) in lanes.iter().enumerate() {
        check_range("weight", share.weight.into(), 1, limits::LANE_WEIGHT.into())
            .and_then(|()| check_range("credit", share.credit.unsigned_abs(), 0, 1 << 40))
            .map_err(|refusal| refusal.under(number).under("lanes"))?;
    }
    Ok(())
}
