//! The log: one event for each transition, in the same step.

use std::collections::BTreeSet;

use ff_core::backend::BackendExt;
use ff_core::content::Content;
use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::id::{ExecutionId, Home, Namespace, Subject};
use ff_core::limits;
use ff_core::operation::{
    Attach, ChangePriority, Complete, Delete, IssueToken, Release, Replay, ResetBudget,
    SetNamespace, Submit, Submitted, Suspend, SuspendTimeout, WaitpointRef,
};
use ff_core::policy::Retention;
use ff_core::read::ListEvents;
use ff_core::state::{LaneState, TimeoutBehavior};

use crate::fleet::{deregister, drain, register, set_lane};
use crate::graphs::FLOW_EVENTS;
use crate::limits::{budget, usage};
use crate::waits::{signal, suspend, wildcard};
use crate::world::{
    World, cancel, complete, delay, fail, hold, progress, renew, revoke, set_tags, tags,
};

/// Puts a worker and a lane through what happens to them.
async fn fleet_life(world: &World) {
    world.act(register("w-1")).await;
    world.act(drain("w-1")).await;
    world.act(deregister("w-1")).await;
    world.act(set_lane("else", LaneState::Paused)).await;
    let retention = Some(Retention { skipped_ms: Some(5), ..Retention::default() });
    let (namespace, attach) = (Namespace::default(), Attach::default());
    world.act(SetNamespace { namespace, attach, retention, expected_revision: None }).await;
}

/// Puts one execution through every transition there is and deletes it.
async fn whole_life(world: &World) -> ExecutionId {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    world.act(progress(&task, 10)).await;
    world.act(delay(&task, 10)).await;
    world.pass(10).await;
    world.act(fail(&world.claim_one().await, "transient")).await;
    world.pass(1_000).await;
    world.act(revoke(world.claim_one().await.execution_id)).await;
    world.claim_one().await;
    world.pass(limits::LEASE_TTL_MS.cast_signed()).await;
    world.act(hold(id)).await;
    world.act(Release { execution_id: id }).await;
    world.act(ChangePriority { execution_id: id, priority: 3 }).await;
    world.act(set_tags(id, &[("a.b", "c")])).await;
    let task = world.claim_one().await;
    let stop = Suspend {
        timeout: Some(SuspendTimeout::For(5)),
        timeout_behavior: Some(TimeoutBehavior::Escalate),
        ..suspend(&task, wildcard("go"))
    };
    let issued = world.act(stop).await.waitpoints.remove(0);
    world.pass(5).await;
    let waitpoint = WaitpointRef::Id(issued.waitpoint_id);
    world.act(IssueToken { execution_id: id, waitpoint, remint: None }).await;
    world.act(signal(id, &issued, "go")).await;
    world.complete(&world.claim_one().await).await.unwrap();
    world.act(Replay { execution_id: id, descendants: false }).await;
    world.act(cancel(id)).await;
    world.act(Replay { execution_id: id, descendants: false }).await;
    world.act(fail(&world.claim_one().await, "permanent")).await;
    world.act(Delete { execution_id: id }).await;
    id
}

/// Passes every limit of a budget and resets it.
async fn limits_are_passed(world: &World) {
    let budget_id = world.budget(budget(&[("tokens", 10, 5)])).await;
    world.act(usage(budget_id, &[("tokens", 6)])).await;
    world.act(usage(budget_id, &[("tokens", 6)])).await;
    world.act(ResetBudget { budget_id }).await;
}

pub async fn every_transition_is_one_event(world: &World) {
    fleet_life(world).await;
    world.advance(1).await;
    whole_life(world).await;
    // Later, so that it comes behind the first whatever its partition.
    world.advance(1).await;
    let expired = Submit { execution_deadline_at: Some(world.now().await), ..world.work() };
    world.submit(expired).await;
    world.settle().await;
    world.advance(1).await;
    limits_are_passed(world).await;
    world.advance(1).await;
    world.act(super::bulks::on_lane("work")).await;
    use EventKind::*;
    let mut log = world.log().await;
    // Partitions have no common order.
    log.sort_by_key(|envelope| envelope.event.time);
    let kinds: Vec<_> = log.iter().map(|envelope| envelope.event.kind).collect();
    assert_eq!(
        kinds,
        [
            WorkerJoined,
            WorkerDraining,
            WorkerLost,
            LaneChanged,
            NamespaceChanged,
            Submitted,
            Claimed,
            Progressed,
            Delayed,
            Eligible,
            Claimed,
            RetryScheduled,
            Eligible,
            Claimed,
            LeaseRevoked,
            Claimed,
            LeaseExpired,
            Blocked,
            Unblocked,
            PriorityChanged,
            Tagged,
            Claimed,
            WaitpointCreated,
            Suspended,
            Escalated,
            TokenIssued,
            SignalAccepted,
            WaitpointClosed,
            Resumed,
            Claimed,
            Completed,
            Replayed,
            Cancelled,
            Replayed,
            Claimed,
            Failed,
            Deleted,
            Submitted,
            Expired,
            BudgetSoftLimit,
            BudgetHardLimit,
            BudgetReset,
            BulkChanged,
        ]
    );
    let seen: BTreeSet<_> = kinds.into_iter().chain(FLOW_EVENTS).collect();
    assert_eq!(seen, EventKind::ALL.iter().copied().collect(), "no kind is without its act");
}

pub async fn numbers_rise_and_every_subject_counts_without_holes(world: &World) {
    whole_life(world).await;
    let others = [world.submit(world.work()).await, world.submit(world.work()).await];
    for id in others {
        world.act(hold(id)).await;
    }
    let log = world.log().await;
    for partition in 0..world.backend.settings().partitions.flow {
        let home = Home::partition(partition);
        let here = log.iter().filter(|envelope| envelope.event.subject.home() == home);
        let numbers: Vec<_> = here.map(|envelope| envelope.event.number).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{partition}: {numbers:?}");
    }
    let seqs_of = |id: &Subject| {
        let of_this = log.iter().filter(|envelope| envelope.event.subject == *id);
        of_this.map(|envelope| envelope.event.seq).collect::<Vec<_>>()
    };
    let subjects: BTreeSet<_> = log.iter().map(|envelope| envelope.event.subject.clone()).collect();
    assert_eq!(subjects.len(), 3);
    for id in subjects {
        let seqs = seqs_of(&id);
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    }
    assert_eq!(seqs_of(&others[0].into()), [1, 2]);
}

pub async fn what_is_no_transition_leaves_no_event(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    world.act(renew(&task)).await;
    world.refuses(hold(id), Code::ExecutionNotEligible).await;
    world
        .refuses(Replay { execution_id: id, descendants: false }, Code::ExecutionNotTerminal)
        .await;
    world.act(complete(&task)).await;
    world.act(complete(&task)).await;
    world.refuses(fail(&task, "transient"), Code::ExecutionNotActive).await;
    world.claim_ids(1).await;
    world.settle().await;
    let kinds: Vec<_> = world.log().await.iter().map(|envelope| envelope.event.kind).collect();
    assert_eq!(kinds, [EventKind::Submitted, EventKind::Claimed, EventKind::Completed]);
}

pub async fn replies_and_records_name_their_event(world: &World) {
    let reply = world.act(world.work()).await;
    let Submitted::Created { execution_id, event_id, .. } = reply else { panic!("{reply:?}") };
    let [first] = world.events(execution_id).await.try_into().unwrap();
    assert_eq!(first.id(), event_id);
    assert_eq!(event_id.to_string(), format!("{}-{}", execution_id.partition(), first.number));
    world.act(hold(execution_id)).await;
    let last = world.events(execution_id).await.pop().unwrap();
    assert_eq!(world.describe(execution_id).await.last_event_id, last.id());
}

pub async fn an_event_tells_when_and_about_what(world: &World) {
    world.advance(123).await;
    let submit = Submit { tags: tags(&[("a.b", "old")]), ..world.work() };
    let id = world.submit(submit.clone()).await;
    world.act(set_tags(id, &[("a.b", "new")])).await;
    let [submitted, _] = world.log().await.try_into().unwrap();
    let event = &submitted.event;
    assert_eq!((&event.subject, event.time), (&id.into(), world.now().await));
    assert_eq!((&event.namespace, event.lane.as_ref()), (&submit.namespace, Some(&submit.lane)));
    assert_eq!((event.attempt_index, event.lease_epoch), (None, None));
    assert_eq!((&event.worker_instance_id, event.outcome), (&None, None));
    // Kind and tags are those of the record at delivery.
    let about = submitted.about.unwrap();
    assert_eq!((about.kind, about.tags), (Some(submit.kind), tags(&[("a.b", "new")])));
}

pub async fn events_carry_no_payloads_and_no_results(world: &World) {
    let payload = Content::json(br#""payload-of-work""#.as_slice());
    let task = world.start(Submit { payload, ..world.work() }).await;
    let result = Some(Content::json(br#""result-of-work""#.as_slice()));
    world.act(Complete { result, ..complete(&task) }).await;
    world.act(Delete { execution_id: task.execution_id }).await;
    let log = world.log().await;
    assert_eq!(log.len(), 4);
    let text = format!("{log:?}");
    assert!(!text.contains("payload-of-work") && !text.contains("result-of-work"), "{text}");
}

pub async fn events_of_an_execution_come_in_pages(world: &World) {
    let id = world.submit(world.work()).await;
    for _ in 0..3 {
        world.act(hold(id)).await;
        world.act(Release { execution_id: id }).await;
    }
    for limit in 1..=8 {
        let (mut seen, mut after_seq) = (Vec::new(), 0);
        loop {
            let query = ListEvents { execution_id: id, after_seq, limit };
            let page = world.backend.ask(query).await.unwrap();
            assert!(page.items.len() <= limit as usize && !page.gap);
            seen.extend(page.items.iter().map(|envelope| envelope.event.seq));
            match page.next {
                Some(next) => after_seq = next,
                None => break,
            }
        }
        assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7], "{limit} a page");
    }
    let behind = ListEvents { execution_id: id, after_seq: 7, limit: 5 };
    let page = world.backend.ask(behind).await.unwrap();
    assert_eq!((page.items.len(), page.next, page.gap), (0, None, false));
}
