//! Claims that wait for work.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::{Duration, Instant};

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::{Claim, LaneShare, Release, Replay, Submit, Task};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::world::{PATIENCE, World, capabilities, code, fail, hold, lane, policy, renew, revoke};

/// What a claim that waits is given by `act`, which comes after it.
async fn woken_by(world: &World, claim: Claim, act: impl Future<Output = ()>) -> Task {
    let waiting = timeout(PATIENCE, world.backend.claim(claim, PATIENCE));
    let (tasks, ()) = tokio::join!(waiting, act);
    let [task] = tasks.expect("woken in time").unwrap().try_into().unwrap();
    task
}

async fn next(waiters: &mut JoinSet<Vec<Task>>) -> Vec<ExecutionId> {
    let tasks = timeout(PATIENCE, waiters.join_next()).await.expect("woken in time");
    tasks.unwrap().unwrap().iter().map(|task| task.execution_id).collect()
}

fn wait_in(waiters: &mut JoinSet<Vec<Task>>, world: &World, claim: Claim) {
    let backend = world.backend.clone();
    waiters.spawn(async move { backend.claim(claim, 2 * PATIENCE).await.unwrap() });
}

pub async fn nothing_to_do_answers_at_once_without_a_wait(world: &World) {
    let claim = world.backend.claim(world.claim_request(1), Duration::ZERO);
    assert_eq!(timeout(PATIENCE, claim).await.expect("no wait").unwrap(), []);
}

pub async fn a_wait_ends_empty_when_its_time_is_over(world: &World) {
    let (began, wait) = (Instant::now(), Duration::from_millis(40));
    let claim = timeout(PATIENCE, world.backend.claim(world.claim_request(1), wait));
    assert_eq!(claim.await.expect("an end of the wait").unwrap(), []);
    assert!(began.elapsed() >= wait, "it answered after {:?}", began.elapsed());
}

pub async fn work_that_is_there_needs_no_wait(world: &World) {
    let id = world.submit(world.work()).await;
    let claim = timeout(PATIENCE, world.backend.claim(world.claim_request(5), 2 * PATIENCE));
    let tasks = claim.await.expect("no wait").unwrap();
    assert_eq!(tasks.iter().map(|task| task.execution_id).collect::<Vec<_>>(), [id]);
}

pub async fn a_submit_wakes_a_claim(world: &World) {
    let submit = world.work();
    let id = submit.execution_id;
    let task = woken_by(world, world.claim_request(1), async {
        world.submit(submit).await;
    });
    assert_eq!(task.await.execution_id, id);
}

pub async fn a_release_wakes_a_claim(world: &World) {
    let id = world.submit(world.work()).await;
    world.act(hold(id)).await;
    let task = woken_by(world, world.claim_request(1), async {
        world.act(Release { execution_id: id }).await;
    });
    assert_eq!(task.await.execution_id, id);
}

pub async fn the_end_of_a_delay_wakes_a_claim(world: &World) {
    let until = Some(world.now().await.after(100));
    let id = world.submit(Submit { delay_until: until, ..world.work() }).await;
    let task = woken_by(world, world.claim_request(1), world.pass(100)).await;
    assert_eq!(task.execution_id, id);
}

pub async fn the_end_of_a_backoff_wakes_a_claim(world: &World) {
    let first = world.start(world.work()).await;
    world.act(fail(&first, "transient")).await;
    let task = woken_by(world, world.claim_request(1), world.pass(1_000)).await;
    assert_eq!((task.execution_id, task.retry_count), (first.execution_id, 1));
}

pub async fn an_expired_lease_wakes_a_claim(world: &World) {
    let lost = world.start(world.work()).await;
    let ttl = limits::LEASE_TTL_MS.cast_signed();
    let task = woken_by(world, world.claim_request(1), world.pass(ttl)).await;
    assert_eq!((task.execution_id, task.lease_epoch), (lost.execution_id, 2));
}

pub async fn a_late_call_that_performs_the_expiry_wakes_a_claim(world: &World) {
    let lost = world.start(world.work()).await;
    world.advance(limits::LEASE_TTL_MS.cast_signed()).await;
    let task = woken_by(world, world.claim_request(1), async {
        assert_eq!(code(world.backend.call(renew(&lost)).await), Code::LeaseExpired);
    });
    assert_eq!(task.await.execution_id, lost.execution_id);
}

pub async fn a_revoked_lease_wakes_a_claim(world: &World) {
    let lost = world.start(world.work()).await;
    let task = woken_by(world, world.claim_request(1), async {
        world.act(revoke(lost.execution_id)).await;
    });
    assert_eq!(task.await.execution_id, lost.execution_id);
}

pub async fn a_replay_wakes_a_claim(world: &World) {
    let done = world.finish(world.work()).await;
    let task = woken_by(world, world.claim_request(1), async {
        world.act(Replay { execution_id: done.execution_id, descendants: false }).await;
    });
    assert_eq!(task.await.execution_id, done.execution_id);
}

pub async fn each_new_execution_goes_to_one_of_many_waiting_claims(world: &World) {
    let mut waiters = JoinSet::new();
    for _ in 0..10 {
        wait_in(&mut waiters, world, world.claim_request(5));
    }
    // A claim that were woken in vain and gave up would show as an empty answer.
    for _ in 0..10 {
        let id = world.submit(world.work()).await;
        assert_eq!(next(&mut waiters).await, [id]);
    }
    assert!(waiters.is_empty());
}

pub async fn a_batch_wakes_as_many_claims_as_it_needs(world: &World) {
    let mut waiters = JoinSet::new();
    for max in [1, 2, 3] {
        wait_in(&mut waiters, world, world.claim_request(max));
    }
    let submits: Vec<_> = (0..6).map(|_| world.work()).collect();
    let expected: BTreeSet<_> = submits.iter().map(|submit| submit.execution_id).collect();
    world.backend.submit_batch(submits).await.unwrap();
    let mut claimed = Vec::new();
    while !waiters.is_empty() {
        let tasks = next(&mut waiters).await;
        assert!(!tasks.is_empty(), "there is work for all");
        claimed.extend(tasks);
    }
    // A batch is no atomic step: a claim may be served before the last of it is there.
    claimed.extend(world.claim_ids(10).await);
    assert_eq!((claimed.len(), BTreeSet::from_iter(claimed)), (6, expected));
}

pub async fn only_a_claim_that_can_run_it_gets_the_work(world: &World) {
    let mut waiters = JoinSet::new();
    let other_lane = vec![LaneShare::new(lane("other"))];
    wait_in(&mut waiters, world, world.claim_request(1));
    wait_in(&mut waiters, world, Claim { lanes: other_lane, ..world.claim_request(1) });
    let able = Claim { capabilities: capabilities(&["gpu"]), ..world.claim_request(1) };
    let required = r#"{"routing_requirements":{"required_capabilities":["gpu"]}}"#;
    let submit = Submit { policy: policy(required), ..world.work() };
    let id = submit.execution_id;
    let task = woken_by(world, able, async {
        world.submit(submit).await;
    });
    assert_eq!(task.await.execution_id, id);
    assert!(waiters.try_join_next().is_none(), "a claim that cannot run it was answered");
    let elsewhere = world.submit(world.work_on("other")).await;
    assert_eq!(next(&mut waiters).await, [elsewhere]);
    let here = world.submit(world.work()).await;
    assert_eq!(next(&mut waiters).await, [here]);
}

pub async fn a_claim_waits_on_all_its_lanes(world: &World) {
    for name in ["a", "b", "c"] {
        let lanes = ["a", "b", "c"].map(|name| LaneShare::new(lane(name))).to_vec();
        let submit = world.work_on(name);
        let id = submit.execution_id;
        let claim = Claim { lanes, ..world.claim_request(1) };
        let task = woken_by(world, claim, async {
            world.submit(submit).await;
        });
        assert_eq!(task.await.execution_id, id);
    }
}

pub async fn a_claim_that_was_given_up_takes_no_work(world: &World) {
    let given_up = world.backend.claim(world.claim_request(1), PATIENCE);
    timeout(Duration::from_millis(1), given_up).await.unwrap_err();
    let id = world.submit(world.work()).await;
    assert_eq!(world.claim_ids(1).await, [id]);
}

pub async fn a_claim_that_was_given_up_keeps_no_work_from_the_next_in_line(world: &World) {
    let given_up = world.backend.claim(world.claim_request(1), PATIENCE);
    timeout(Duration::from_millis(1), given_up).await.unwrap_err();
    let submit = world.work();
    let id = submit.execution_id;
    let task = woken_by(world, world.claim_request(1), async {
        world.submit(submit).await;
    });
    assert_eq!(task.await.execution_id, id);
}
