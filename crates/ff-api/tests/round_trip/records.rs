//! What is read of things, on its way to a client.

use std::collections::BTreeMap;
use std::sync::Arc;

use ff_api::{attempt, budget, event, execution, flow, lane, quota, worker};
use ff_core::capability::Capabilities;
use ff_core::event::{Detail, Envelope, Event, EventAbout, EventId, EventKind};
use ff_core::id::{
    AttemptId, BudgetId, Dimension, DocumentId, EdgeId, FlowId, Home, Kind, LeaseId, MemberName,
    QuotaPolicyId, Subject, SuspensionId, WaitpointId, WorkerId, WorkerInstanceId,
};
use ff_core::partition::PartitionConfig;
use ff_core::policy::Policy;
use ff_core::read::{
    Action, BudgetStatus, Cause, EdgeSnapshot, Explanation, FlowCancellation, FlowSnapshot,
    LaneSnapshot, MemberSnapshot, QuotaPolicySnapshot, Record, WorkerSnapshot,
};
use ff_core::state::{
    self, Attached, AttemptProgress, BlockingReason, BreachKind, BudgetScope, Counter,
    EligibilityState, EnforcementMode, FlowState, Group, GroupState, HardAction, Join, LaneState,
    LifecyclePhase, Limits, MemberCounts, OnSatisfied, Outcome, OwnershipState, PublicState,
    QuotaSpec, SoftAction, StateVector,
};
use ff_core::time::TimestampMs;
use serde_json::json;

use super::{comes_back, id, lane as emails, namespace, tags};

const AT: TimestampMs = TimestampMs(1_800_000_000_123);

pub(super) fn vector() -> StateVector {
    StateVector {
        lifecycle_phase: LifecyclePhase::Terminal,
        ownership_state: OwnershipState::Unowned,
        eligibility_state: EligibilityState::NotApplicable,
        blocking_reason: BlockingReason::None,
        blocking_detail: "d".to_owned(),
        terminal_outcome: Some(Outcome::Expired),
        attempt_state: AttemptProgress::ALL[0],
        public_state: PublicState::Expired,
    }
}

fn record() -> Record {
    let instance = WorkerInstanceId::new("w-1").unwrap();
    Record {
        execution_id: id(),
        revision: 4,
        namespace: namespace(),
        lane: emails(),
        kind: Kind::new("send").unwrap(),
        content_type: "text/plain".parse().unwrap(),
        creator_identity: "ann".to_owned(),
        priority: 5,
        tags: tags(),
        policy: Arc::new(Policy::from_json(r#"{"max_replay_count":3}"#).unwrap()),
        state: vector(),
        created_at: AT,
        started_at: Some(AT),
        completed_at: Some(AT),
        last_transition_at: AT,
        delay_until: Some(AT),
        deadline_at: Some(AT),
        current_attempt_index: Some(1),
        current_attempt_id: Some(AttemptId::mint()),
        total_attempt_count: 2,
        lease_id: Some(LeaseId::mint()),
        lease_epoch: 3,
        worker_id: Some(WorkerId::new("w").unwrap()),
        worker_instance_id: Some(instance.clone()),
        lease_expires_at: Some(AT),
        lease_last_renewed_at: Some(AT),
        lease_renewal_deadline: Some(AT),
        lease_reclaim_count: 1,
        retry_count: 2,
        replay_count: 3,
        failure_reason: Some("r".to_owned()),
        failure_category: Some("c".to_owned()),
        failure_class: Some(state::FailureClass::Transient),
        cancellation_reason: Some("x".to_owned()),
        cancelled_by: Some("y".to_owned()),
        progress_pct: Some(50),
        progress_message: Some("half".to_owned()),
        required_capabilities: Capabilities::new(["gpu"]).unwrap(),
        last_capability_mismatch_at: Some(AT),
        grant: Some(state::Grant {
            kind: state::GrantKind::Reclaim,
            worker_id: WorkerId::new("w").unwrap(),
            worker_instance_id: Some(instance),
            expires_at: AT,
            slots: Vec::new(),
            places: Vec::new(),
            claimant: None,
            lapsed: false,
            recalled: false,
        }),
        last_event_id: EventId { home: Home::partition(7), number: 9 },
        trace_context: Some("t".to_owned()),
        suspension_id: Some(SuspensionId::mint()),
        suspension_reason: Some("r".to_owned()),
        suspension_timeout_at: Some(AT),
        waitpoint_ids: vec![WaitpointId::mint()],
        signal_count: 6,
        flow_id: Some(FlowId::mint()),
        member_name: Some(MemberName::new("first").unwrap()),
    }
}

#[test]
fn executions() {
    comes_back::<execution::Record, _>(record());
    let waiting = StateVector { terminal_outcome: None, ..vector() };
    let absent = Record { state: waiting.clone(), grant: None, lease_id: None, ..record() };
    comes_back::<execution::Record, _>(absent);
    comes_back::<execution::StateVector, _>(waiting);
    for cause in Cause::ALL {
        comes_back::<execution::Explanation, _>(Explanation {
            cause,
            summary: "s".to_owned(),
            evidence: json!({ "a": [1] }),
            unblock: vec![Action {
                summary: "s".to_owned(),
                cli: "ff get".to_owned(),
                route: "GET /x".to_owned(),
            }],
            earliest_start_at: Some(AT),
        });
    }
    comes_back::<attempt::Attempt, _>(state::Attempt {
        index: 1,
        id: AttemptId::mint(),
        kind: state::AttemptType::Reclaim,
        state: state::AttemptState::EndedFailure,
        worker_id: WorkerId::new("w").unwrap(),
        worker_instance_id: WorkerInstanceId::new("w-1").unwrap(),
        started_at: AT,
        ended_at: Some(AT),
        active_ms: 9,
        failure_reason: Some("r".to_owned()),
        failure_category: None,
        stream: None,
        stream_end: None,
        result_bytes: None,
    });
}

#[test]
fn events_of_every_kind() {
    let config = PartitionConfig::default();
    let instance = WorkerInstanceId::new("w-1").unwrap();
    let worker = DocumentId::worker(&namespace(), &instance);
    let flow = DocumentId::flow(FlowId::mint(), &config);
    let subjects = [
        (EventKind::Completed, Subject::Execution(id())),
        (EventKind::SignalAccepted, Subject::Execution(id())),
        (EventKind::EdgeResolved, Subject::Document(flow)),
        (EventKind::WorkerLost, Subject::Document(worker)),
    ];
    for (kind, subject) in subjects {
        for about in [None, Some(Some(Kind::new("send").unwrap())), Some(None)] {
            let about =
                about.map(|kind| EventAbout { kind, flow_id: Some(FlowId::mint()), tags: tags() });
            let event = Event {
                number: 8,
                previous: 0,
                subject: subject.clone(),
                namespace: namespace(),
                lane: Some(emails()),
                seq: 3,
                kind,
                time: AT,
                attempt_index: Some(1),
                lease_epoch: Some(2),
                worker_instance_id: Some(instance.clone()),
                outcome: Some(Outcome::Success),
                data: BTreeMap::from([
                    ("text".to_owned(), Detail::Text("x".to_owned())),
                    ("number".to_owned(), Detail::Number(-5)),
                    ("map".to_owned(), Detail::Map([("a".to_owned(), "b".to_owned())].into())),
                ]),
            };
            comes_back::<event::Event, _>(Envelope { event, about });
        }
    }
}

fn counts() -> MemberCounts {
    let mut counts = MemberCounts::default();
    counts.add(PublicState::Active as u8, 2);
    counts
}

#[test]
fn flows() {
    let mut started = counts();
    started.add(MemberCounts::STARTED, 1);
    for policy in [None, Some("cancel_all")] {
        comes_back::<flow::Flow, _>(FlowSnapshot {
            flow_id: FlowId::mint(),
            revision: 1,
            namespace: namespace(),
            kind: Kind::new("graph").unwrap(),
            state: FlowState::Running,
            graph_revision: 2,
            node_count: 3,
            edge_count: 4,
            counts: started.clone(),
            tags: tags(),
            created_at: AT,
            completed_at: None,
            cancellation: policy.map(|policy| FlowCancellation {
                policy,
                reason: "r".to_owned(),
                at: AT,
            }),
            retention_ms: 5,
            attached: Attached::new([BudgetId::mint()], Some(QuotaPolicyId::mint())),
        });
    }
    let joins =
        [Join::AllOf, Join::AnyOf(OnSatisfied::LetRun), Join::Quorum(2, OnSatisfied::default())];
    for join in joins {
        let state = GroupState::Impossible;
        comes_back::<flow::Member, _>(MemberSnapshot {
            name: Some(MemberName::new("a").unwrap()),
            execution_id: id(),
            lane: emails(),
            public_state: PublicState::Waiting,
            group: Group { join, edges: 3, satisfied: 1, impossible: 2, state },
        });
    }
    comes_back::<flow::Edge, _>(EdgeSnapshot {
        edge_id: EdgeId::mint(),
        upstream: id(),
        downstream: id(),
        kind: state::EdgeKind::FailureOnly,
        name: Some("in".to_owned()),
        data_passing_ref: None,
        state: state::EdgeState::Pending,
        applied: true,
    });
}

#[test]
fn budgets() {
    let dimension = Dimension::new("tokens").unwrap();
    let limits = Limits { hard: 2, soft: 1 };
    let counter = Counter { limits, used: 3, attributed: 0, unattributed: 0 };
    comes_back::<budget::Budget, _>(BudgetStatus {
        budget_id: BudgetId::mint(),
        namespace: namespace(),
        revision: 1,
        scope: BudgetScope::Custom("x".to_owned()),
        enforcement_mode: EnforcementMode::Refuse,
        on_hard_limit: HardAction::Fail,
        on_soft_limit: SoftAction::Warn,
        reset_interval_ms: 2,
        created_at: AT,
        dimensions: [(dimension.clone(), counter)].into(),
        breach_count: 3,
        soft_breach_count: 4,
        last_breach: Some(state::LastBreach {
            at: AT,
            kind: BreachKind::Soft,
            dimension: dimension.clone(),
        }),
        blocked_by: Some(state::Breach { dimension, current: 3, limit: 2 }),
        reset_count: 5,
        next_reset_at: Some(AT),
    });
}

#[test]
fn quota_policies() {
    let spec = QuotaSpec {
        window_seconds: 1,
        max_requests_per_window: 2,
        max_concurrent: 3,
        jitter_ms: 4,
    };
    comes_back::<quota::Quota, _>(QuotaPolicySnapshot {
        quota_policy_id: QuotaPolicyId::mint(),
        namespace: namespace(),
        revision: 1,
        spec,
        created_at: AT,
        slots: 2,
        waiting: 3,
        window_opens_at: Some(AT),
        overdue: Vec::new(),
    });
    comes_back::<quota::Holder, _>(state::Holder {
        slot: state::SlotId { execution_id: id(), lease_epoch: 2 },
        since: AT,
        pending_until: None,
    });
}

#[test]
fn lanes_and_workers() {
    comes_back::<lane::Lane, _>(LaneSnapshot {
        lane: emails(),
        state: LaneState::Draining,
        reason: "moved".to_owned(),
        priority_ageing_ms: 7,
        attached: Attached::default(),
        revision: 2,
        depth: counts(),
        oldest_age_ms: Some(4),
        running: 5,
        live_workers: 6,
    });
    comes_back::<worker::Worker, _>(WorkerSnapshot {
        namespace: namespace(),
        worker_id: WorkerId::new("w").unwrap(),
        worker_instance_id: WorkerInstanceId::new("w-1").unwrap(),
        boot_id: "b".to_owned(),
        lanes: vec![emails()],
        capabilities: Capabilities::new(["gpu"]).unwrap(),
        ttl_ms: 1,
        max_concurrent: 2,
        registered_at: AT,
        last_heartbeat_at: AT,
        expires_at: AT,
        running: 3,
        draining: true,
    });
}
