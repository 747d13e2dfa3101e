//! Waitpoints that are made before a suspend: made, listed, closed, remembered.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::id::{ExecutionId, LeaseId, WaitpointId};
use ff_core::limits;
use ff_core::operation::{
    Binding, CloseWaitpoint, CreatePendingWaitpoint, DeliverSignal, IssuedWaitpoint, Settled, Task,
    WaitpointRef,
};
use ff_core::read::ListWaitpoints;
use ff_core::state::{Condition, Matcher, PublicState, SignalEffect, WaitpointState};
use ff_core::time::TimestampMs;
use uuid::Uuid;

use crate::signalling::{
    close, keyed, pending, remint, signal, suspend, suspend_on, waitpoint_key,
};
use crate::world::{World, code, complete, revoke};

pub async fn a_pending_waitpoint_keeps_the_lease(world: &World) {
    let task = world.start(world.work()).await;
    let before = world.describe(task.execution_id).await;
    world.advance(10).await;
    let expires_at = Some(world.now().await.after(9_000));
    let create = CreatePendingWaitpoint { expires_at, ..pending(&task, "k") };
    let issued = world.act(create.clone()).await;
    assert_eq!((issued.waitpoint_id, &issued.key), (create.waitpoint_id, &create.key));
    let after = world.describe(task.execution_id).await;
    assert_eq!(after.state, before.state);
    assert_eq!(
        (after.lease_id, after.lease_expires_at),
        (Some(task.lease_id), Some(task.expires_at))
    );
    assert_eq!(
        (after.waitpoint_ids, after.revision),
        (vec![create.waitpoint_id], before.revision + 1)
    );
    let [listed] = world.waitpoints(task.execution_id).await.try_into().unwrap();
    assert_eq!(
        (listed.execution_id, listed.waitpoint_id),
        (task.execution_id, create.waitpoint_id)
    );
    assert_eq!(
        (listed.key, listed.state, listed.reason),
        (create.key, WaitpointState::Pending, None)
    );
    assert_eq!((listed.created_at, listed.expires_at), (world.now().await, expires_at));
    let event = world.events(task.execution_id).await.pop().unwrap();
    assert_eq!(event.kind, EventKind::WaitpointCreated);
    let name = create.waitpoint_id.to_string();
    assert_eq!(event.data["waitpoint_id"], Detail::from(name.as_str()));
    assert_eq!(event.data["waitpoint_key"], Detail::from("k"));
    world.complete(&task).await.unwrap();
}

pub async fn only_the_holder_of_the_lease_makes_one(world: &World) {
    let task = world.start(world.work()).await;
    let nobody = ExecutionId::solo(Uuid::now_v7(), &world.backend.settings().partitions);
    let elsewhere = CreatePendingWaitpoint { execution_id: nobody, ..pending(&task, "k") };
    world.refuses(elsewhere, Code::ExecutionNotFound).await;
    let mut stale = pending(&task, "k");
    stale.fence.lease_id = LeaseId::mint();
    world.turns_away(stale, Code::StaleLease).await;
    world.complete(&task).await.unwrap();
    world.turns_away(pending(&task, "k"), Code::ExecutionNotActive).await;
    let mut waiting = task.clone();
    waiting.execution_id = world.submit(world.work()).await;
    world.turns_away(pending(&waiting, "k"), Code::ExecutionNotActive).await;
    let revoked = world.claim_one().await;
    world.act(revoke(revoked.execution_id)).await;
    world.turns_away(pending(&revoked, "k"), Code::LeaseRevoked).await;
}

pub async fn a_late_create_is_refused_and_performs_the_expiry(world: &World) {
    let task = world.start(world.work()).await;
    world.advance(limits::LEASE_TTL_MS.cast_signed()).await;
    assert_eq!(code(world.backend.call(pending(&task, "k")).await), Code::LeaseExpired);
    let record = world.describe(task.execution_id).await;
    assert_eq!((record.state.public_state, record.lease_reclaim_count), (PublicState::Waiting, 1));
    assert_eq!(world.waitpoints(task.execution_id).await, []);
}

pub async fn a_repeated_create_gives_the_token_again(world: &World) {
    let task = world.start(world.work()).await;
    let create = pending(&task, "k");
    let first = world.act(create.clone()).await;
    world.advance(1).await;
    let later = Some(world.now().await.after(1));
    let other =
        CreatePendingWaitpoint { expires_at: later, token_ttl_ms: Some(1), ..create.clone() };
    for again in [create.clone(), other] {
        let told = IssuedWaitpoint { replayed: true, ..first.clone() };
        assert_eq!(world.leaves_alone(again).await, told);
    }
    let effect = world.deliver(signal(task.execution_id, &first, "a")).await;
    assert_eq!(effect, SignalEffect::BufferedForPendingWaitpoint);
    let reminted = world.act(remint(task.execution_id, "k")).await;
    let told = IssuedWaitpoint { replayed: true, ..reminted };
    assert_eq!(world.leaves_alone(create).await, told);
}

pub async fn an_id_and_an_open_key_are_used_once(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    let create = pending(&task, "k");
    let first = world.act(create.clone()).await;
    let same_id =
        CreatePendingWaitpoint { waitpoint_id: create.waitpoint_id, ..pending(&task, "l") };
    world.turns_away(pending(&task, "k"), Code::WaitpointAlreadyExists).await;
    world.turns_away(same_id.clone(), Code::WaitpointAlreadyExists).await;
    world.turns_away(suspend(&task, "k"), Code::WaitpointAlreadyExists).await;
    world.act(close(id, "k")).await;
    world.turns_away(same_id, Code::WaitpointAlreadyExists).await;
    world.turns_away(create, Code::WaitpointAlreadyExists).await;
    // The key is free again, and means the open one.
    let second = world.act(pending(&task, "k")).await;
    let by_key = DeliverSignal { waitpoint: keyed("k"), ..signal(id, &second, "a") };
    world.deliver(by_key).await;
    world.turns_away(signal(id, &first, "a"), Code::WaitpointClosed).await;
    // Another execution may use the same id and key.
    let other = world.start(world.work()).await;
    let same = CreatePendingWaitpoint { waitpoint_id: second.waitpoint_id, ..pending(&other, "k") };
    world.act(same).await;
}

pub async fn an_execution_has_64_open_waitpoints_at_most(world: &World) {
    let task = world.start(world.work()).await;
    for n in 0..limits::WAITPOINTS {
        world.act(pending(&task, &format!("k{n}"))).await;
    }
    assert_eq!(limits::WAITPOINTS, 64);
    world.turns_away(pending(&task, "more"), Code::ResourceExhausted).await;
    world.turns_away(suspend(&task, "more"), Code::ResourceExhausted).await;
    world.act(close(task.execution_id, "k7")).await;
    world.act(pending(&task, "more")).await;
    assert_eq!(world.waitpoints(task.execution_id).await.len(), limits::WAITPOINTS);
}

pub async fn what_a_waitpoint_is_told_has_limits(world: &World) {
    let task = world.start(world.work()).await;
    let create = |at: i64, ttl| CreatePendingWaitpoint {
        expires_at: Some(TimestampMs(at)),
        token_ttl_ms: Some(ttl),
        ..pending(&task, &format!("{at} {ttl}"))
    };
    for (at, ttl) in [
        (-1, 1),
        (limits::TIME_MAX_MS + 1, 1),
        (i64::MAX, 1),
        (limits::TIME_MAX_MS, 0),
        (limits::TIME_MAX_MS, limits::DURATION_MAX_MS + 1),
        (limits::TIME_MAX_MS, u64::MAX),
    ] {
        world.turns_away(create(at, ttl), Code::InvalidInput).await;
    }
    world.act(create(limits::TIME_MAX_MS, limits::DURATION_MAX_MS)).await;
    world.act(create(0, 1)).await;
    world.act(pending(&task, &"k".repeat(limits::WAITPOINT_KEY_BYTES))).await;
}

pub async fn a_list_shows_kid_and_fingerprint_and_no_token(world: &World) {
    let task = world.start(world.work()).await;
    let mut issued: Vec<IssuedWaitpoint> = Vec::new();
    for key in ["c", "a", "b"] {
        issued.push(world.act(pending(&task, key)).await);
        world.advance(1).await;
    }
    issued[1] = world.act(remint(task.execution_id, "a")).await;
    let listed = world.waitpoints(task.execution_id).await;
    assert_eq!(listed.len(), 3);
    for (listed, issued) in listed.iter().zip(&issued) {
        assert_eq!(listed.key, issued.key, "in the order of their making");
        assert_eq!((listed.kid.as_str(), listed.fingerprint.len()), ("k1", 16));
        assert!(listed.fingerprint.bytes().all(|b| b.is_ascii_hexdigit()));
        assert_eq!(listed.fingerprint, issued.token.hash().fingerprint());
        let shown = format!("{:?}", world.shown(task.execution_id).await);
        let signature = issued.token.expose().rsplit(':').next().unwrap();
        assert!(!shown.contains(signature), "{shown}");
    }
    let nobody = ExecutionId::solo(Uuid::now_v7(), &world.backend.settings().partitions);
    let unknown = world.backend.ask(ListWaitpoints { execution_id: nobody }).await;
    assert_eq!(code(unknown), Code::ExecutionNotFound);
}

pub async fn a_waitpoint_that_is_waited_for_is_listed_with_the_reason(world: &World) {
    let (task, _) = world.start_with("left").await;
    let bound = world.act(pending(&task, "bound")).await;
    let wait = Condition::Single { waitpoint: waitpoint_key("bound"), name: Matcher::Wildcard };
    let binding = Binding::UsePending { waitpoint_id: bound.waitpoint_id };
    let suspended = world.act(suspend_on(&task, vec![binding], wait)).await;
    assert_eq!(suspended.waitpoints, [bound], "it keeps its token");
    let [left, bound] = world.waitpoints(task.execution_id).await.try_into().unwrap();
    assert_eq!((left.state, left.reason), (WaitpointState::Pending, None));
    let reason = bound.reason.as_deref();
    assert_eq!((bound.state, reason), (WaitpointState::Open, Some("waiting_for_signal")));
}

pub async fn a_closed_waitpoint_takes_no_signal(world: &World) {
    let (task, a) = world.start_with("a").await;
    let id = task.execution_id;
    let b = world.act(pending(&task, "b")).await;
    assert_eq!(world.act(close(id, "a")).await, Settled::Done);
    let reasons = world.told(id, EventKind::WaitpointClosed, "reason").await;
    assert_eq!(reasons, [Detail::from("not needed")]);
    let by_id = CloseWaitpoint { waitpoint: WaitpointRef::Id(a.waitpoint_id), ..close(id, "a") };
    for again in [close(id, "a"), by_id] {
        assert_eq!(world.leaves_alone(again).await, Settled::AlreadySatisfied);
    }
    world.turns_away(signal(id, &a, "x"), Code::WaitpointClosed).await;
    world.deliver(signal(id, &b, "x")).await;
    world.act(close(id, "b")).await;
    world.turns_away(signal(id, &a, "x"), Code::TargetNotSignalable).await;
    world.turns_away(signal(id, &b, "x"), Code::TargetNotSignalable).await;
    world.act(complete(&task)).await;
    assert_eq!(world.leaves_alone(close(id, "b")).await, Settled::AlreadySatisfied);
}

pub async fn only_a_waitpoint_of_the_execution_is_closed(world: &World) {
    let (mine, _) = world.start_with("mine").await;
    let (other, theirs) = world.start_with("theirs").await;
    let foreign = WaitpointRef::Id(theirs.waitpoint_id);
    let closing = close(mine.execution_id, "mine");
    for waitpoint in [keyed("theirs"), foreign, WaitpointRef::Id(WaitpointId::mint())] {
        let wrong = CloseWaitpoint { waitpoint, ..closing.clone() };
        world.turns_away(wrong, Code::WaitpointNotFound).await;
    }
    let nobody = ExecutionId::solo(Uuid::now_v7(), &world.backend.settings().partitions);
    let nowhere = CloseWaitpoint { execution_id: nobody, ..closing.clone() };
    world.refuses(nowhere, Code::ExecutionNotFound).await;
    let reason = |bytes| CloseWaitpoint { reason: "x".repeat(bytes), ..closing.clone() };
    world.turns_away(reason(limits::REASON_BYTES + 1), Code::InvalidInput).await;
    assert_eq!(world.act(reason(limits::REASON_BYTES)).await, Settled::Done);
    assert_eq!(world.waitpoints(other.execution_id).await.len(), 1);
}

pub async fn closed_ones_are_remembered_up_to_a_limit(world: &World) {
    let task: Task = world.start(world.work()).await;
    let id = task.execution_id;
    let mut issued = Vec::new();
    for n in 0..=limits::WAITPOINTS_CLOSED {
        issued.push(world.act(pending(&task, &format!("k{n}"))).await);
        world.act(close(id, &format!("k{n}"))).await;
    }
    world.act(pending(&task, "open")).await;
    world.turns_away(close(id, "k0"), Code::WaitpointNotFound).await;
    world.turns_away(signal(id, &issued[0], "x"), Code::InvalidToken).await;
    for n in [1, limits::WAITPOINTS_CLOSED] {
        let again = close(id, &format!("k{n}"));
        assert_eq!(world.leaves_alone(again).await, Settled::AlreadySatisfied);
        world.turns_away(signal(id, &issued[n], "x"), Code::WaitpointClosed).await;
    }
}
