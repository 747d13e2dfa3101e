//! Replies on their way to a client.

use ff_api::{budget, execution, flow, frame, grant, graph, lane, lease, manage, outcome, secret};
use ff_api::{signal, submit, suspend, task, usage, worker};
use ff_core::act;
use ff_core::content::Content;
use ff_core::error::{Code, Refusal};
use ff_core::event::EventId;
use ff_core::id::{
    BudgetId, Dimension, EdgeId, FlowId, Handle, HandleKind, Home, Kid, Kind, LeaseId, MemberName,
    PartitionKey, SignalId, SignalName, SuspensionId, WaitpointId, WaitpointKey, WorkerInstanceId,
};
use ff_core::operation::*;
use ff_core::read;
use ff_core::state::{self, AttemptType, Breach, CancelPolicy, FrameId, Outcome, PublicState};
use ff_core::time::TimestampMs;
use ff_core::token::{KidInfo, WaitpointToken};

use super::{comes_back, id, lane as emails, namespace, over, tags};

const AT: TimestampMs = TimestampMs(1_800_000_000_123);

fn handle() -> Handle {
    let lease_id = LeaseId::mint();
    Handle {
        store: "sqlite".to_owned(),
        kind: HandleKind::Resumed,
        execution_id: id(),
        attempt_index: 2,
        attempt_id: lease_id.into(),
        lease_id,
        lease_epoch: 5,
        ttl_ms: 30_000,
        lane: emails(),
        worker_instance_id: WorkerInstanceId::new("w-1").unwrap(),
    }
}

fn resume_signal(payload: Option<&'static [u8]>) -> ResumeSignal {
    ResumeSignal {
        signal_id: SignalId::mint(),
        name: SignalName::new("go").unwrap(),
        category: "c".to_owned(),
        source_type: "person".to_owned(),
        source_identity: "ann".to_owned(),
        correlation_id: Some("x".to_owned()),
        accepted_at: AT,
        content_type: "text/plain".parse().unwrap(),
        bytes: 70_000,
        payload: payload.map(Into::into),
    }
}

fn task(metadata: Option<&'static [u8]>) -> Task {
    let handle = handle();
    let input = Input {
        execution_id: id(),
        outcome: Outcome::Success,
        inline: true,
        result: Some(Content::json("1")),
    };
    Task {
        execution_id: handle.execution_id,
        namespace: namespace(),
        lane: emails(),
        kind: Kind::new("send").unwrap(),
        priority: 9,
        payload: vec![0, 1, 255].into(),
        content_type: "text/plain".parse().unwrap(),
        tags: tags(),
        attempt_index: 2,
        attempt_id: handle.attempt_id,
        attempt_type: AttemptType::Retry,
        lease_id: handle.lease_id,
        lease_epoch: 5,
        expires_at: AT,
        ttl_ms: 30_000,
        handle,
        retry_count: 1,
        reclaim_count: 2,
        previous_failure: Some(PreviousFailure {
            reason: "r".to_owned(),
            category: "c".to_owned(),
        }),
        deadline_at: Some(AT),
        attempt_deadline_at: None,
        created_at: AT,
        trace_context: Some("00-1-2-01".to_owned()),
        flow_id: Some(FlowId::mint()),
        member_name: Some(MemberName::new("first").unwrap()),
        extras: Extras {
            resume_signals: vec![resume_signal(Some(b"yes")), resume_signal(None)],
            metadata: metadata.map(Into::into),
            inputs: [("in".to_owned(), input)].into(),
        },
    }
}

#[test]
fn tasks() {
    for metadata in [None, Some(&b"step 2"[..]), Some(&[0xff, 0][..])] {
        let handed = task(metadata);
        assert_eq!(over(&task::Task::from(handed.clone())).read("sqlite").unwrap(), handed);
    }
    let form = task::Task::from(task(None));
    assert!(form.read("valkey").is_err(), "the handle is of another store");
    let completed = Completed { tasks: vec![task(None)], replayed: true };
    let form = over(&outcome::Completed::from(completed.clone()));
    assert_eq!(form.read("sqlite").unwrap(), completed);
    let tasks = vec![task(None).into()];
    assert_eq!(over(&lease::Tasks { tasks }).read("sqlite").unwrap().len(), 1);
}

#[test]
fn submits_and_ends() {
    let event_id = EventId { home: Home::partition(7), number: 12 };
    let (execution_id, public_state) = (id(), PublicState::Waiting);
    comes_back::<submit::SubmitReply, _>(Submitted::Created {
        execution_id,
        public_state,
        priority: 4,
        event_id,
    });
    for public_state in [None, Some(PublicState::Completed)] {
        comes_back::<submit::SubmitReply, _>(Submitted::Duplicate { execution_id, public_state });
    }
    let retry = Failed::RetryScheduled { delay_until: AT, retry_count: 2, replayed: false };
    for failed in [retry, Failed::TerminalFailed { replayed: true }] {
        comes_back::<outcome::Failed, _>(failed);
    }
    let aside = |delay_until: Option<TimestampMs>, unresolved| execution::PutAside {
        public_state,
        state_vector: super::records::vector().into(),
        delay_until: delay_until.map(Into::into),
        unresolved,
        replayed: true,
    };
    let delayed = Delayed::try_from(over(&aside(Some(AT), None))).unwrap();
    assert_eq!(delayed, Delayed { delay_until: AT, public_state, replayed: true });
    let waiting = WaitingChildren::try_from(over(&aside(None, Some(3)))).unwrap();
    assert_eq!(waiting, WaitingChildren { unresolved: 3, public_state, replayed: true });
}

#[test]
fn suspends_and_signals() {
    let token = WaitpointToken::parse(&format!("k1:0:{}", "0".repeat(64))).unwrap();
    let (waitpoint_id, key) = (WaitpointId::mint(), WaitpointKey::new("k").unwrap());
    let issued = IssuedWaitpoint { waitpoint_id, key: key.clone(), token, replayed: false };
    comes_back::<suspend::Waitpoint, _>(issued.clone());
    for already_satisfied in [true, false] {
        let suspended = Suspended {
            already_satisfied,
            suspension_id: SuspensionId::mint(),
            waitpoints: vec![issued.clone()],
            handle: handle(),
            replayed: false,
        };
        let form = over(&suspend::Suspended::from(suspended.clone()));
        assert_eq!(form.read("sqlite").unwrap(), suspended);
    }
    let signal_id = SignalId::mint();
    for effect in state::SignalEffect::ALL {
        comes_back::<signal::Signalled, _>(Signalled::Accepted { signal_id, effect });
        comes_back::<signal::Signalled, _>(Signalled::Duplicate { signal_id, effect });
    }
    comes_back::<signal::OpenWaitpoint, _>(read::ListedWaitpoint {
        execution_id: id(),
        waitpoint_id,
        key: key.clone(),
        state: state::WaitpointState::Open,
        kid: Kid::new("k1").unwrap(),
        fingerprint: "f".to_owned(),
        reason: Some("r".to_owned()),
        created_at: AT,
        expires_at: None,
    });
    comes_back::<signal::AcceptedSignal, _>(read::ListedSignal {
        number: 3,
        waitpoint_id,
        waitpoint_key: key,
        effect: state::SignalEffect::AppendedToWaitpoint,
        signal: resume_signal(Some(b"x")),
    });
}

#[test]
fn grants_and_usage() {
    let grant = ClaimGrant {
        execution_id: id(),
        partition_key: "{fp:7}".parse::<PartitionKey>().unwrap(),
        grant_key: "g".to_owned(),
        expires_at: AT,
    };
    comes_back::<grant::Grant, _>(grant.clone());
    for issued in [
        IssuedReclaimGrant::Granted(grant),
        IssuedReclaimGrant::NotReclaimable { detail: "d".to_owned() },
        IssuedReclaimGrant::ReclaimCapExceeded { reclaim_count: 3 },
    ] {
        comes_back::<grant::Reclaimed, _>(issued);
    }
    let dimension = Dimension::new("tokens").unwrap();
    let breach = Breach { dimension, current: 3, limit: 2 };
    let budget_id = BudgetId::mint();
    for reported in [
        UsageReported::Ok,
        UsageReported::AlreadyApplied,
        UsageReported::SoftBreach(breach.clone()),
        UsageReported::HardBreach(breach),
    ] {
        comes_back::<budget::UsageStatus, _>(reported.clone());
        let form = over(&usage::UsageResult::new(budget_id, reported.clone()));
        assert_eq!(form.read().unwrap(), (budget_id, reported));
    }
    comes_back::<budget::Reset, _>(BudgetReset { reset_count: 2, next_reset_at: Some(AT) });
}

#[test]
fn output() {
    let id = FrameId { ms: 5, seq: 6 };
    let frame = AppendedFrame { id, count: 7, summary_version: Some(8) };
    comes_back::<frame::Appended, _>(Appended { frames: vec![frame] });
    for (closed, more) in [(None, true), (Some(state::StreamEnd::LeaseExpired), false)] {
        comes_back::<frame::Stream, _>(read::StreamPage {
            frames: vec![state::Frame {
                id,
                mode: state::FrameMode::DurableSummary,
                frame_type: "t".to_owned(),
                content: Content::json("{}"),
                correlation_id: None,
            }],
            count: 9,
            trimmed_before: Some(id),
            closed: closed.map(|reason| read::StreamClosed { at: AT, reason }),
            more,
        });
    }
    comes_back::<frame::Summary, _>(read::SummaryRead {
        document: r#"{"a":1}"#.to_owned(),
        version: 2,
    });
}

#[test]
fn workers() {
    let lost = Refusal::new(Code::StaleLease, "another lease is live");
    let leases = vec![Ok(Renewed { expires_at: AT }), Err(lost.into())];
    let told = act::News {
        next_expiry: AT,
        cancellations: vec![act::Cancellation {
            execution_id: id(),
            lease_id: LeaseId::mint(),
            reason: "r".to_owned(),
        }],
        paused_lanes: vec![emails()],
        drain: true,
        leases,
        stopped: [act::StoppedBy::Loss, act::StoppedBy::Cancel { reason: "r".to_owned() }]
            .map(|by| act::Stopped { execution_id: id(), lease_epoch: 3, by })
            .to_vec(),
        cursor: Some("c".to_owned()),
    };
    let lease_news = |lease: &Result<Renewed, _>| worker::LeaseNews {
        execution_id: id(),
        expires_at: lease.as_ref().ok().map(|renewed: &Renewed| renewed.expires_at.into()),
        problem: lease.as_ref().err().map(Into::into),
    };
    let form = worker::News {
        next_expiry_at: told.next_expiry.into(),
        cancellations: told
            .cancellations
            .iter()
            .map(|it| worker::Cancellation {
                execution_id: it.execution_id,
                lease_id: it.lease_id,
                reason: it.reason.clone(),
            })
            .collect(),
        paused_lanes: told.paused_lanes.clone(),
        drain: told.drain,
        leases: told.leases.iter().map(lease_news).collect(),
        stopped: told.stopped.iter().cloned().map(Into::into).collect(),
        cursor: told.cursor.clone(),
    };
    assert_eq!(act::News::from(over(&form)), told);
}

#[test]
fn what_operators_are_told() {
    comes_back::<manage::Cancelled, _>(Cancelled { from: PublicState::Active, replayed: true });
    comes_back::<manage::PriorityChanged, _>(PriorityChanged { old: 1, new: 2 });
    comes_back::<manage::Replayed, _>(Replayed {
        replay_count: 1,
        public_state: PublicState::Waiting,
        unresolved: 2,
    });
    let (lease_id, lease_epoch) = (LeaseId::mint(), 3);
    comes_back::<manage::Revoked, _>(Revoked::Revoked { lease_id, lease_epoch });
    comes_back::<manage::Revoked, _>(Revoked::AlreadySatisfied { lease_id, lease_epoch });
    comes_back::<secret::Kids, _>(read::Kids {
        current_kid: Kid::new("k2").unwrap(),
        kids: vec![KidInfo { kid: Kid::new("k1").unwrap(), accepted_until: Some(AT) }],
    });
    comes_back::<lane::NamespaceRow, _>(read::NamespaceSnapshot {
        record: state::NamespaceRecord::new(&namespace()),
        revision: 4,
    });
}

#[test]
fn flows() {
    let reason = "r".to_owned();
    for scheduled in [0, 3] {
        let (policy, reason) = (CancelPolicy::FlowOnly, reason.clone());
        let cancelled = FlowCancelled { policy, reason, scheduled, replayed: true };
        comes_back::<flow::Cancelled, _>(cancelled);
    }
    for replayed in
        [FlowReplayed::Replayed { members: vec![id()], more: true }, FlowReplayed::AlreadySatisfied]
    {
        comes_back::<flow::Replayed, _>(replayed);
    }
    for applied in [EdgeApplied::Applied { unresolved: 2 }, EdgeApplied::AlreadyApplied] {
        comes_back::<graph::EdgeApplied, _>(applied);
    }
    for set in [GroupSet::Set, GroupSet::AlreadySet] {
        comes_back::<graph::GroupSet, _>(set);
    }
    let name = |text: &str| MemberName::new(text).unwrap();
    let members = vec![(name("b"), id()), (name("a"), id())];
    let submitted = SubmittedFlow {
        flow_id: FlowId::mint(),
        members: members.clone(),
        edges: vec![EdgeId::mint()],
        graph_revision: 2,
        duplicate: true,
    };
    let edge = GraphEdge {
        from: name("a"),
        to: name("b"),
        kind: state::EdgeKind::Always,
        name: None,
        data_passing_ref: None,
    };
    let form = over(&graph::FlowReply::of_graph(submitted.clone(), &[edge]));
    let names: Vec<_> = members.into_iter().map(|(name, _)| name).collect();
    assert_eq!(form.read(&names).unwrap(), submitted, "members stand in the order of the request");
}
