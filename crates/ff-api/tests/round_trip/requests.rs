//! Operations on their way to a server.

use std::collections::BTreeMap;
use std::sync::Arc;

use ff_api::fence::{Fence, source};
use ff_api::{budget, frame, grant, graph, lane, lease, manage, outcome, quota, search, signal};
use ff_api::{bulk, flow, submit, suspend, usage, worker};
use ff_core::capability::Capabilities;
use ff_core::content::Content;
use ff_core::id::{
    Authority, BudgetId, BulkId, Dimension, EdgeId, FlowId, Kind, MemberName, QuotaPolicyId,
    SignalId, SignalName, SuspensionId, WaitpointId, WaitpointKey, WorkerId, WorkerInstanceId,
};
use ff_core::operation::*;
use ff_core::partition::PartitionConfig;
use ff_core::policy::{Policy, Retention};
use ff_core::read;
use ff_core::state::{
    self, Attached, BudgetScope, BulkAction, BulkTargets, CancelPolicy, CancelSource, CountKind,
    EdgeKind, EnforcementMode, FrameMode, HardAction, Join, LaneState, Limits, Matcher,
    OnSatisfied, QuotaSpec, SetMode, SoftAction, SuspensionReason, TimeoutBehavior,
};
use ff_core::time::TimestampMs;

use super::{fence, id, lane as emails, namespace, over, tags};

fn submit_operation() -> Submit {
    Submit {
        namespace: namespace(),
        payload: Content::json(r#"{"a":1}"#),
        priority: 7,
        creator_identity: "ann".to_owned(),
        idempotency_key: Some("k".parse().unwrap()),
        tags: tags(),
        policy: Arc::new(Policy::from_json(r#"{"max_replay_count":3}"#).unwrap()),
        delay_until: Some(TimestampMs(1_900_000_000_000)),
        execution_deadline_at: Some(TimestampMs(1_900_000_000_001)),
        held: true,
        within: Some(InFlow { flow_id: FlowId::mint(), name: Some(name("first")) }),
        trace_context: Some("00-1-2-01".to_owned()),
        ..Submit::new(id(), emails(), Kind::new("send").unwrap())
    }
}

fn name(text: &str) -> MemberName {
    MemberName::new(text).unwrap()
}

fn key(text: &str) -> WaitpointKey {
    WaitpointKey::new(text).unwrap()
}

#[test]
fn a_submit() {
    let partitions = PartitionConfig::default();
    let plain = Submit::new(id(), emails(), Kind::new("send").unwrap());
    for operation in [submit_operation(), Submit { namespace: namespace(), ..plain }] {
        let form = over(&submit::Submit::from(operation.clone()));
        assert_eq!(form.operation(namespace(), None, &partitions).unwrap(), operation);
    }
}

#[test]
fn claims_and_renewals() {
    let capabilities = Capabilities::new(["gpu", "eu"]).unwrap();
    let lanes = vec![LaneShare { weight: 3, ..LaneShare::new(emails()) }];
    let (worker, instance) = (WorkerId::new("w").unwrap(), WorkerInstanceId::new("w-1").unwrap());
    let claim = Claim {
        namespace: namespace(),
        lanes: lanes.clone(),
        order: LaneOrder::Ordered,
        capabilities: capabilities.clone(),
        max: 4,
        lease_ttl_ms: 5_000,
        ..Claim::new(worker, instance, [])
    };
    let back = over(&lease::Claim::from(claim.clone())).operation(namespace(), None).unwrap();
    assert_eq!(Claim { seed: claim.seed, ..back }, claim, "all but the ids of new leases");
    let next = ClaimNext {
        max: 2,
        lanes,
        order: LaneOrder::Weighted,
        capabilities,
        lease_ttl_ms: 9_000,
        seed: claim.seed,
    };
    let back = over(&lease::Next::from(next.clone())).operation(None).unwrap();
    assert_eq!(ClaimNext { seed: next.seed, ..back }, next);
    let renew = Renew { execution_id: id(), fence: fence(), ttl_ms: Some(10) };
    assert_eq!(over(&lease::RenewItem::from(renew.clone())).operation("sqlite").unwrap(), renew);
}

#[test]
fn how_attempts_end() {
    let execution_id = id();
    for authority in [Authority::Fence(fence()), Authority::Override] {
        let shown = over(&Fence::from(authority));
        let told = source(authority);
        let back = shown.authority(execution_id, "sqlite", told.as_deref()).unwrap();
        assert_eq!(back, authority);
        let result = Some(Content::json("[1]"));
        let complete = Complete { execution_id, authority, result, next: None };
        let form = over(&outcome::Complete::from(complete.clone()));
        assert_eq!(form.source, told);
        assert_eq!(form.operation(execution_id, authority, None, None).unwrap(), complete);
        let fail = Fail {
            execution_id,
            authority,
            reason: "it broke".to_owned(),
            category: "transient".to_owned(),
            class: Some(state::FailureClass::Transient),
            retry_after_ms: Some(3),
        };
        let form = over(&outcome::Fail::from(fail.clone()));
        assert_eq!(form.operation(execution_id, authority), fail);
        for until in [DelayUntil::For(10), DelayUntil::At(TimestampMs(1_900_000_000_000))] {
            let delay = Delay { execution_id, authority, until };
            let form = over(&outcome::Delay::from(delay.clone()));
            assert_eq!(form.operation(execution_id, authority).unwrap(), delay);
        }
        let wait = WaitChildren { execution_id, authority, children: Some(vec![id()]) };
        assert_eq!(over(&outcome::WaitChildren::from(wait.clone())).children, wait.children);
    }
}

#[test]
fn suspends_and_waitpoints() {
    let (execution_id, fence) = (id(), fence());
    let create = CreatePendingWaitpoint {
        execution_id,
        fence,
        waitpoint_id: WaitpointId::mint(),
        key: key("k"),
        expires_at: Some(TimestampMs(5)),
        token_ttl_ms: Some(6),
    };
    let form = over(&suspend::CreateWaitpoint::from(create.clone()));
    assert_eq!(form.operation(execution_id, fence), create);
    let one = |name| state::Condition::Single { waitpoint: key("k"), name };
    let signal = SignalName::new("go").unwrap();
    let condition = state::Condition::AllOf(vec![
        one(Matcher::Wildcard),
        one(Matcher::ByName(signal.clone())),
        state::Condition::SignalSet {
            waitpoint: key("k"),
            names: vec![signal],
            mode: SetMode::Count(1),
        },
        state::Condition::OperatorOnly,
        state::Condition::TimeoutOnly,
        state::Condition::Count(state::Count {
            n: 1,
            kind: CountKind::DistinctSources,
            name: Matcher::Wildcard,
            waitpoints: vec![key("k")],
        }),
    ]);
    let bindings = vec![
        Binding::Fresh { waitpoint_id: WaitpointId::mint(), key: key("k"), token_ttl_ms: Some(1) },
        Binding::UsePending { waitpoint_id: WaitpointId::mint() },
    ];
    for timeout in [None, Some(SuspendTimeout::For(9)), Some(SuspendTimeout::At(TimestampMs(9)))] {
        let suspend = Suspend {
            suspension_id: SuspensionId::mint(),
            reason: SuspensionReason("waiting_for_approval".to_owned()),
            requester: Some("ann".to_owned()),
            timeout,
            timeout_behavior: Some(TimeoutBehavior::Escalate),
            metadata: Some(vec![0, 255].into()),
            idempotency_key: Some("s".parse().unwrap()),
            ..Suspend::new(execution_id, fence, bindings.clone(), condition.clone())
        };
        let form = over(&suspend::Suspend::from(suspend.clone()));
        assert_eq!(form.operation(execution_id, fence).unwrap(), suspend);
    }
}

#[test]
fn signals_and_decisions() {
    let execution_id = id();
    for waitpoint in [WaitpointRef::Id(WaitpointId::mint()), WaitpointRef::Key(key("k"))] {
        let deliver = DeliverSignal {
            execution_id,
            waitpoint: waitpoint.clone(),
            token: None,
            signal: Message {
                signal_id: SignalId::mint(),
                name: SignalName::new("go").unwrap(),
                category: "c".to_owned(),
                source_type: "person".to_owned(),
                source_identity: "ann".to_owned(),
                content: Content::json("true"),
                correlation_id: Some("x".to_owned()),
                idempotency_key: Some("i".parse().unwrap()),
            },
        };
        let form = over(&signal::Signal::from(deliver.clone()));
        assert_eq!(form.operation(execution_id, None, None).unwrap(), deliver);
        let approve = DeliverApproval {
            execution_id,
            waitpoint: waitpoint.clone(),
            lane: Some(emails()),
            signal_id: SignalId::mint(),
            decision: Decision::Deny,
            name: Some(SignalName::new("no").unwrap()),
            suffix: Suffix::Text("2".to_owned()),
            comment: Some("why".to_owned()),
            operator: "ann".to_owned(),
        };
        let form = over(&signal::Approval::from(approve.clone()));
        let back = form.operation(execution_id, waitpoint, Decision::Deny, "ann".to_owned());
        assert_eq!(back, approve);
    }
}

#[test]
fn grants_and_output() {
    let (worker, instance) = (WorkerId::new("w").unwrap(), WorkerInstanceId::new("w-1").unwrap());
    let capabilities = Capabilities::new(["gpu"]).unwrap();
    let for_worker = ClaimForWorker {
        namespace: namespace(),
        worker_id: worker.clone(),
        worker_instance_id: instance.clone(),
        lane: emails(),
        capabilities: capabilities.clone(),
        grant_ttl_ms: 77,
    };
    let form = over(&grant::ClaimForWorker::from(for_worker.clone()));
    assert_eq!(form.operation(namespace(), worker.clone()).unwrap(), for_worker);
    let execution_id = id();
    let claim = ClaimExecution {
        execution_id,
        worker_id: worker.clone(),
        worker_instance_id: instance.clone(),
        lease_id: fence().lease_id,
        lease_ttl_ms: 8_000,
        slots: TakenSlots::default(),
    };
    assert_eq!(over(&grant::ClaimByName::from(claim.clone())).claim(execution_id), claim);
    let reclaim = IssueReclaimGrant {
        execution_id,
        worker_id: worker.clone(),
        worker_instance_id: Some(instance.clone()),
        lane: emails(),
        capabilities: capabilities.clone(),
        grant_ttl_ms: 78,
    };
    let form = over(&grant::Reclaim::from(reclaim.clone()));
    assert_eq!(form.operation(execution_id).unwrap(), reclaim);
    let register = RegisterWorker {
        namespace: namespace(),
        worker_id: worker,
        worker_instance_id: instance,
        boot_id: "b".to_owned(),
        lanes: vec![emails()],
        capabilities,
        ttl_ms: 60_000,
        max_concurrent: 3,
    };
    let form = over(&worker::Register::from(register.clone()));
    assert_eq!(form.operation(namespace()).unwrap(), register);
    let frames = vec![NewFrame {
        correlation_id: Some("c".to_owned()),
        ..NewFrame::new("token", Content::json("1")).with_mode(FrameMode::BestEffort)
    }];
    let append = AppendFrames { execution_id, fence: fence(), frames };
    let form = over(&frame::Append::from(append.clone()));
    assert_eq!(form.operation(execution_id, append.fence).unwrap(), append);
}

#[test]
fn what_operators_do() {
    let execution_id = id();
    for (cause, fence) in
        [(CancelSource::OperatorOverride, None), (CancelSource::LeaseHolder, Some(fence()))]
    {
        let reason = "r".to_owned();
        let cancel = Cancel { execution_id, reason, source: cause, fence };
        let form = over(&manage::Cancel::from(cancel.clone()));
        assert_eq!(form.operation(execution_id, fence).unwrap(), cancel);
    }
    let filter = read::Filter {
        namespace: Some(namespace()),
        lanes: vec![emails()],
        states: vec![state::PublicState::Waiting],
        kinds: vec![Kind::new("send").unwrap()],
        tags: vec![("team.name".to_owned(), "a:b".to_owned())],
        flow: Some(FlowId::mint()),
        created_after: Some(TimestampMs(1)),
        created_before: Some(TimestampMs(2)),
        completed_after: Some(TimestampMs(3)),
        completed_before: Some(TimestampMs(4)),
    };
    let cursor = Some("c".to_owned());
    let asked = read::Search { filter: filter.clone(), cursor, limit: 9 };
    assert_eq!(over(&search::Search::from(asked.clone())).question(namespace()).unwrap().0, asked);
    for targets in [BulkTargets::Filter(Box::new(filter)), BulkTargets::Ids(vec![id()])] {
        let create = CreateBulk {
            bulk_id: BulkId::mint(),
            namespace: namespace(),
            action: BulkAction::Hold,
            targets,
            reason: "r".to_owned(),
            matched: 0,
        };
        let form = over(&bulk::NewBulk::from(create.clone()));
        assert_eq!(form.operation(namespace(), None).unwrap(), create);
    }
    let set = SetLane {
        state: Some(LaneState::Paused),
        priority_ageing_ms: Some(1),
        attach: Attach { budget_ids: Some(vec![]), quota_policy_id: Some(None) },
        reason: "r".to_owned(),
        expected_revision: Some(2),
        ..SetLane::new(namespace(), emails())
    };
    let form = over(&lane::ChangeLane::from(set.clone()));
    assert_eq!(form.operation(namespace(), emails(), Some(2)), set);
    let set = SetNamespace {
        namespace: namespace(),
        attach: Attach::default(),
        retention: Some(Retention { failed_ms: Some(9), ..Retention::default() }),
        expected_revision: None,
    };
    let form = over(&lane::ChangeNamespace::from(set.clone()));
    assert_eq!(form.operation(namespace(), None), set);
}

#[test]
fn flows() {
    let flow_id = FlowId::mint();
    let create = CreateFlow {
        namespace: namespace(),
        tags: tags(),
        retention_ms: Some(5),
        attached: Attached::new([BudgetId::mint()], Some(QuotaPolicyId::mint())),
        ..CreateFlow::new(flow_id, Kind::new("graph").unwrap())
    };
    let partitions = PartitionConfig::default();
    let form = over(&graph::NewFlow::from(create.clone()));
    match form.operation(&namespace(), None, &partitions).unwrap() {
        graph::FlowOperation::Empty(back) => assert_eq!(back, create),
        other => panic!("{other:?}"),
    }
    let member = |text: &str| GraphMember {
        name: name(text),
        submit: Submit { within: None, ..submit_operation() },
    };
    let submit = SubmitFlow {
        flow: create,
        members: vec![member("a"), member("b")],
        edges: vec![GraphEdge {
            from: name("a"),
            to: name("b"),
            kind: EdgeKind::Always,
            name: Some("in".to_owned()),
            data_passing_ref: Some("x".to_owned()),
        }],
        groups: vec![GraphGroup { member: name("b"), join: Join::Quorum(1, OnSatisfied::LetRun) }],
        edge_seed: uuid::Uuid::now_v7(),
    };
    let form = over(&graph::NewFlow::try_from(submit.clone()).unwrap());
    match form.operation(&namespace(), None, &partitions).unwrap() {
        graph::FlowOperation::Graph(back) => {
            assert_eq!(SubmitFlow { edge_seed: submit.edge_seed, ..*back }, submit);
        }
        other => panic!("{other:?}"),
    }
    let stage = StageEdge {
        flow_id,
        edge_id: EdgeId::mint(),
        edge: NewEdge {
            upstream: id(),
            downstream: id(),
            kind: EdgeKind::FailureOnly,
            name: None,
            data_passing_ref: None,
        },
        expected_graph_revision: Some(4),
        apply: false,
    };
    for apply in [false, true] {
        let stage = StageEdge { apply, ..stage.clone() };
        assert_eq!(over(&graph::AddEdge::from(stage.clone())).operation(flow_id), stage);
    }
    let add = AddToFlow { flow_id, execution_id: id(), name: Some(name("c")) };
    assert_eq!(over(&graph::AddMember::from(add.clone())).operation(flow_id), add);
    for join in [Join::AllOf, Join::AnyOf(OnSatisfied::LetRun)] {
        let set = SetGroupPolicy { flow_id, downstream: id(), join };
        let form = over(&graph::SetGroup::from(set.clone()));
        assert_eq!(form.operation(flow_id, set.downstream).unwrap(), set);
    }
    let reason = "r".to_owned();
    let cancel = CancelFlow { flow_id, policy: CancelPolicy::CancelPending, reason };
    assert_eq!(over(&flow::Cancel::from(cancel.clone())).operation(flow_id), cancel);
    let replay = ReplayFlow { flow_id, members: Some(vec![id()]) };
    assert_eq!(over(&flow::Replay::from(replay.clone())).operation(flow_id), replay);
}

#[test]
fn budgets_and_quotas() {
    let budget_id = BudgetId::mint();
    let tokens = Dimension::new("tokens").unwrap();
    let limits = BTreeMap::from([(tokens.clone(), Limits { hard: 9, soft: 5 })]);
    let create = CreateBudget {
        enforcement_mode: EnforcementMode::Refuse,
        on_hard_limit: HardAction::Cancel,
        on_soft_limit: SoftAction::Ignore,
        reset_interval_ms: 1_000,
        dimensions: limits.clone(),
        ..CreateBudget::new(budget_id, namespace(), BudgetScope::Lane(emails()))
    };
    let form = over(&budget::NewBudget::from(create.clone()));
    assert_eq!(form.operation(namespace(), None).unwrap(), create);
    let update = UpdateBudget {
        budget_id,
        dimensions: limits,
        on_hard_limit: Some(HardAction::Block),
        on_soft_limit: None,
        reset_interval_ms: Some(3),
        expected_revision: Some(8),
    };
    let form = over(&budget::ChangeBudget::from(update.clone()));
    assert_eq!(form.operation(budget_id, Some(8)), update);
    let spender = Spender { execution_id: id(), attempt_index: 2 };
    let dimensions = BTreeMap::from([(tokens, 4)]);
    let (dedup_key, mode) = (Some("d".parse().unwrap()), Some(EnforcementMode::Record));
    let report = ReportUsage {
        budget_id,
        spender,
        dimensions: dimensions.clone(),
        dedup_key: Some("d".parse().unwrap()),
        mode,
    };
    let form = over(&usage::Usage::from(report.clone()));
    assert_eq!(form.attempt_index, Some(2));
    assert_eq!(form.to_one(budget_id, spender), report);
    let all = ReportToAll { spender, dimensions: dimensions.clone(), dedup_key, mode };
    assert_eq!(over(&usage::Usage::from(all.clone())).to_all(spender), all);
    let admin = ReportUsageAdmin {
        budget_id,
        execution_id: Some(id()),
        dimensions,
        dedup_key: None,
        mode: None,
    };
    assert_eq!(over(&budget::ReportUsage::from(admin.clone())).operation(budget_id), admin);
    let spec = QuotaSpec {
        window_seconds: 1,
        max_requests_per_window: 2,
        max_concurrent: 3,
        jitter_ms: 4,
    };
    let quota_policy_id = QuotaPolicyId::mint();
    let create = CreateQuotaPolicy { quota_policy_id, namespace: namespace(), spec };
    let form = over(&quota::NewQuota::from(create.clone()));
    assert_eq!(form.operation(namespace(), None).unwrap(), create);
    let change = QuotaChange { max_concurrent: Some(7), ..QuotaChange::default() };
    let update = UpdateQuotaPolicy { quota_policy_id, change, expected_revision: Some(1) };
    let form = over(&quota::ChangeQuota::from(update.clone()));
    assert_eq!(form.operation(quota_policy_id, Some(1)), update);
}
