//! The heartbeat of a worker: it lives, renews what it runs, and hears what is new.

use std::time::Duration;

use ff_core::error::Code;
use ff_core::id::{ExecutionId, LeaseId};
use ff_core::limits;
use ff_core::operation::{Cancel, Renew, Task};
use ff_core::state::{CancelSource, Join, LaneState, OnSatisfied, PublicState};
use ff_engine::acts::{self, Beat, Heartbeat, News, Stopped, StoppedBy};
use tokio::time::timeout;

use crate::fleet::{beat, drain, mark_dead, register, set_lane};
use crate::world::{PATIENCE, World, cancel, code, complete, lane, renew};

/// A heartbeat of the instance that tests claim as.
fn heartbeat(tasks: &[&Task]) -> Heartbeat {
    let ff_core::operation::HeartbeatWorker { namespace, worker_instance_id, boot_id } =
        beat("pool-1");
    let leases = tasks.iter().map(|task| renew(task)).collect();
    Heartbeat { namespace, worker_instance_id, boot_id, leases, after: None }
}

async fn news(world: &World, heartbeat: &Heartbeat, wait: Duration) -> News {
    let beat = timeout(PATIENCE, acts::heartbeat(&*world.backend, heartbeat, wait));
    match beat.await.expect("in time") {
        Ok(Beat::Refreshed(news)) => news,
        other => panic!("{other:?}"),
    }
}

pub async fn it_renews_and_reports_each_lease(world: &World) {
    world.act(register("pool-1")).await;
    let (kept, lost) = (world.start(world.work()).await, world.start(world.work()).await);
    world.advance(1_000).await;
    let stale = Renew { fence: kept.fence(), ..renew(&lost) };
    let mut asked = heartbeat(&[&kept]);
    asked.leases.push(stale);
    let told = news(world, &asked, Duration::ZERO).await;
    let now = world.now().await;
    let [Ok(renewed), Err(error)] = &told.leases[..] else { panic!("{told:?}") };
    assert_eq!(renewed.expires_at, now.after(limits::LEASE_TTL_MS));
    assert_eq!(error.code(), Code::StaleLease);
    assert_eq!(told.next_expiry, now.after(crate::fleet::TTL));
    assert_eq!((told.drain, told.paused_lanes, told.cancellations), (false, vec![], vec![]));
    let renewed = world.describe(kept.execution_id).await;
    assert_eq!(renewed.lease_expires_at, Some(now.after(limits::LEASE_TTL_MS)));
}

pub async fn a_cancellation_is_told_for_a_minute(world: &World) {
    world.act(register("pool-1")).await;
    let task = world.start(world.work()).await;
    let asked = heartbeat(&[&task]);
    assert_eq!(news(world, &asked, Duration::ZERO).await.cancellations, []);
    world.act(cancel(task.execution_id)).await;
    for _ in 0..3 {
        let told = news(world, &asked, Duration::ZERO).await;
        let [cancelled] = &told.cancellations[..] else { panic!("{told:?}") };
        assert_eq!(cancelled.execution_id, task.execution_id);
        assert_eq!((cancelled.lease_id, &cancelled.reason[..]), (task.lease_id, "not wanted"));
        assert!(told.leases[0].is_err());
        world.advance(19_999).await;
    }
    world.advance(3).await;
    let told = news(world, &asked, Duration::ZERO).await;
    assert_eq!(told.cancellations, [], "a minute is over");
    assert_eq!(told.leases[0].as_ref().expect_err("ended").code(), Code::ExecutionNotActive);
}

/// The leases of tasks that the worker is told are cancelled.
fn cancelled(news: &News) -> Vec<LeaseId> {
    news.cancellations.iter().map(|it| it.lease_id).collect()
}

pub async fn cancellations_are_told_whether_listed_or_not(world: &World) {
    world.act(register("pool-1")).await;
    let (first, second) = (world.start(world.work()).await, world.start(world.work()).await);
    world.act(cancel(first.execution_id)).await;
    world.advance(20_000).await;
    let told = news(world, &heartbeat(&[]), PATIENCE).await;
    assert_eq!(cancelled(&told), [first.lease_id], "at once, and before it was ever listed");
    assert_eq!(told.cancellations[0].reason, "not wanted");
    // What was told before ends no waiting, and what is new does.
    let wait = || async { news(world, &heartbeat(&[]), PATIENCE).await };
    let (told, _) = tokio::join!(wait(), world.act(cancel(second.execution_id)));
    assert_eq!(cancelled(&told), [first.lease_id, second.lease_id]);
    world.act(register("pool-1")).await;
    world.advance(39_999).await;
    let told = news(world, &heartbeat(&[&first]), Duration::ZERO).await;
    assert_eq!(cancelled(&told), [first.lease_id, second.lease_id], "once each");
    world.advance(1).await;
    assert_eq!(cancelled(&news(world, &heartbeat(&[]), Duration::ZERO).await), [second.lease_id]);
    world.advance(20_000).await;
    assert_eq!(cancelled(&news(world, &heartbeat(&[]), Duration::ZERO).await), []);
}

pub async fn who_cancels_its_own_task_is_not_told(world: &World) {
    world.act(register("pool-1")).await;
    let task = world.start(world.work()).await;
    let fence = Some(task.fence());
    let source = CancelSource::LeaseHolder;
    world.act(Cancel { fence, source, ..cancel(task.execution_id) }).await;
    assert_eq!(cancelled(&news(world, &heartbeat(&[]), Duration::ZERO).await), []);
}

pub async fn another_boot_is_told_nothing_of_the_one_before(world: &World) {
    world.act(register("pool-1")).await;
    let task = world.start(world.work()).await;
    world.act(cancel(task.execution_id)).await;
    world.act(crate::fleet::deregister("pool-1")).await;
    world.act(crate::fleet::note_cancelled("pool-1", task.execution_id)).await;
    world.act(register("pool-1")).await;
    assert_eq!(cancelled(&news(world, &heartbeat(&[]), Duration::ZERO).await), []);
}

pub async fn what_was_cancelled_under_another_lease_is_no_cancellation(world: &World) {
    world.act(register("pool-1")).await;
    let old = world.start(world.work()).await;
    world.act(crate::world::revoke(old.execution_id)).await;
    let now = world.claim_one().await;
    world.act(cancel(old.execution_id)).await;
    let told = news(world, &heartbeat(&[&old]), Duration::ZERO).await;
    assert_eq!(cancelled(&told), [now.lease_id], "its own lease is another");
}

/// A lease runs out in the millisecond in which a group decides, and one tick has both to carry out.
pub async fn what_is_cancelled_after_its_lease_ran_out_is_no_cancellation(world: &World) {
    let graph = world.draw_in(3).join("x", Join::Quorum(1, OnSatisfied::CancelRemaining));
    let drawn = world.submit_flow(graph).await;
    world.take(&drawn, "m1").await;
    world.advance(limits::LEASE_TTL_MS.cast_signed()).await;
    world.act(register("pool-1")).await;
    let running = world.take(&drawn, "m2").await;
    let first = world.take(&drawn, "m0").await;
    world.act(complete(&first)).await;
    assert_eq!(world.states(&drawn, &["m1", "m2"]).await, [PublicState::Active; 2]);
    world.settle().await;
    assert_eq!(world.states(&drawn, &["m1", "m2"]).await, [PublicState::Cancelled; 2]);
    let told = news(world, &heartbeat(&[]), Duration::ZERO).await;
    assert_eq!(cancelled(&told), [running.lease_id]);
}

pub async fn it_tells_of_paused_lanes_and_of_draining(world: &World) {
    world.act(register("pool-1")).await;
    world.act(set_lane("work", LaneState::Disabled)).await;
    world.act(drain("pool-1")).await;
    let told = news(world, &heartbeat(&[]), PATIENCE).await;
    assert_eq!((told.paused_lanes, told.drain), (vec![lane("work")], true), "without waiting");
}

pub async fn waiting_ends_with_news(world: &World) {
    world.act(register("pool-1")).await;
    let task = world.start(world.work()).await;
    world.advance(1).await;
    let asked = heartbeat(&[&task]);
    let wait = || news(world, &asked, PATIENCE);
    let (told, _) = tokio::join!(wait(), world.act(cancel(task.execution_id)));
    assert_eq!(told.cancellations.len(), 1);
    let asked = heartbeat(&[]);
    let wait = || news(world, &asked, PATIENCE);
    world.advance(1).await;
    let (told, _) = tokio::join!(wait(), world.act(set_lane("work", LaneState::Paused)));
    assert_eq!(told.paused_lanes, [lane("work")]);
    world.advance(1).await;
    let (told, _) = tokio::join!(wait(), world.act(drain("pool-1")));
    assert!(told.drain);
}

pub async fn waiting_without_news_ends_with_its_time(world: &World) {
    world.act(register("pool-1")).await;
    world.advance(1).await;
    let told = news(world, &heartbeat(&[]), Duration::from_millis(30)).await;
    assert_eq!((told.drain, told.paused_lanes.len()), (false, 0));
}

pub async fn news_of_others_is_none(world: &World) {
    world.act(register("pool-1")).await;
    world.act(register("pool-2")).await;
    world.advance(1).await;
    let other = async {
        world.act(drain("pool-2")).await;
        world.act(set_lane("else", LaneState::Paused)).await;
    };
    let asked = heartbeat(&[]);
    let (told, ()) = tokio::join!(news(world, &asked, Duration::from_millis(200)), other);
    assert_eq!((told.drain, told.paused_lanes.len()), (false, 0));
}

/// What was stopped: whose lease, and by a cancel with which reason.
fn stopped(news: &News) -> Vec<(ExecutionId, u64, Option<String>)> {
    let shown = |stopped: &Stopped| match &stopped.by {
        StoppedBy::Cancel { reason } => Some(reason.clone()),
        StoppedBy::Loss => None,
    };
    let one = |s: &Stopped| (s.execution_id, s.lease_epoch, shown(s));
    news.stopped.iter().map(one).collect()
}

pub async fn tasks_that_were_stopped_are_told_unlisted(world: &World) {
    world.act(register("pool-1")).await;
    let tasks = [(); 3].map(|()| world.work());
    let mut started = Vec::new();
    for submit in tasks {
        started.push(world.start(submit).await);
    }
    world.advance(1).await;
    let told = news(world, &heartbeat(&[]), Duration::from_millis(1)).await;
    let asked = Heartbeat { after: told.cursor, ..heartbeat(&[]) };
    let wait = || news(world, &asked, PATIENCE);
    let (told, _) = tokio::join!(wait(), world.act(cancel(started[0].execution_id)));
    let first = (started[0].execution_id, 1, Some("not wanted".to_owned()));
    assert_eq!(stopped(&told), [first]);
    assert_eq!(cancelled(&told), [started[0].lease_id], "listed or not");
    // Nothing is missed between two heartbeats, whether they wait or not.
    world.act(crate::world::revoke(started[1].execution_id)).await;
    let asked = Heartbeat { after: told.cursor, ..asked };
    for wait in [Duration::ZERO, PATIENCE] {
        let told = news(world, &asked, wait).await;
        assert_eq!(stopped(&told), [(started[1].execution_id, 1, None)]);
    }
    let told = news(world, &asked, Duration::ZERO).await;
    let asked = Heartbeat { after: told.cursor, ..asked };
    assert_eq!(stopped(&news(world, &asked, Duration::ZERO).await), []);
    assert_eq!(news(world, &heartbeat(&[]), Duration::ZERO).await.cursor, None);
}

pub async fn a_cursor_that_is_none_is_refused(world: &World) {
    world.act(register("pool-1")).await;
    let asked = Heartbeat { after: Some("nowhere".to_owned()), ..heartbeat(&[]) };
    let beat = acts::heartbeat(&*world.backend, &asked, Duration::ZERO).await;
    assert_eq!(code(beat), Code::InvalidCursor);
}

pub async fn nobody_waits_for_a_worker_that_is_not_registered(world: &World) {
    let asked = heartbeat(&[]);
    let beat = acts::heartbeat(&*world.backend, &asked, PATIENCE);
    assert_eq!(timeout(PATIENCE, beat).await.expect("at once").unwrap(), Beat::NotRegistered);
    world.act(register("pool-1")).await;
    world.advance(1).await;
    let asked = heartbeat(&[]);
    let waiting = acts::heartbeat(&*world.backend, &asked, PATIENCE);
    let (told, _) = tokio::join!(timeout(PATIENCE, waiting), world.act(mark_dead("pool-1")));
    assert_eq!(told.expect("in time").unwrap(), Beat::NotRegistered);
}

pub async fn a_heartbeat_has_limits(world: &World) {
    let long = Duration::from_millis(limits::HEARTBEAT_WAIT_MS + 1);
    let beat = acts::heartbeat(&*world.backend, &heartbeat(&[]), long).await;
    assert_eq!(code(beat), Code::InvalidInput);
    let task = world.start(world.work()).await;
    let asked = Heartbeat { leases: vec![renew(&task); limits::BATCH_ITEMS + 1], ..heartbeat(&[]) };
    let beat = acts::heartbeat(&*world.backend, &asked, Duration::ZERO).await;
    assert_eq!(code(beat), Code::InvalidInput);
}
