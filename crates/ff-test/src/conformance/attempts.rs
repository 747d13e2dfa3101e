//! Attempts are listed by their index, without holes.

use ff_core::backend::BackendExt;
use ff_core::limits;
use ff_core::operation::{Claim, Replay, Task};
use ff_core::read::ListAttempts;
use ff_core::state::{AttemptState, AttemptType};

use crate::world::{World, cancel, delay, fail, revoke};

/// An execution with five attempts, the last of them running.
async fn five_attempts(world: &World) -> Task {
    let task = world.start(world.work()).await;
    world.act(fail(&task, "transient")).await;
    world.pass(1_000).await;
    let task = world.claim_one().await;
    world.act(revoke(task.execution_id)).await;
    world.claim_one().await;
    world.pass(limits::LEASE_TTL_MS.cast_signed()).await;
    let task = world.claim_one().await;
    world.act(delay(&task, 0)).await;
    world.complete(&world.claim_one().await).await.unwrap();
    world.act(Replay { execution_id: task.execution_id, descendants: false }).await;
    world.claim_one().await
}

pub async fn every_attempt_is_listed_with_its_type_and_end(world: &World) {
    let task = five_attempts(world).await;
    let attempts = world.attempts(task.execution_id).await;
    let shown: Vec<_> = attempts.iter().map(|a| (a.index, a.kind, a.state)).collect();
    assert_eq!(
        shown,
        [
            (0, AttemptType::Initial, AttemptState::EndedFailure),
            (1, AttemptType::Retry, AttemptState::InterruptedReclaimed),
            (2, AttemptType::Reclaim, AttemptState::InterruptedReclaimed),
            (3, AttemptType::Reclaim, AttemptState::EndedSuccess),
            (4, AttemptType::Replay, AttemptState::Started),
        ]
    );
    assert_eq!(world.describe(task.execution_id).await.total_attempt_count, 5);
}

pub async fn attempts_come_in_pages(world: &World) {
    let task = five_attempts(world).await;
    for limit in 1..=6 {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let query = ListAttempts { execution_id: task.execution_id, after, limit };
            let page = world.backend.ask(query).await.unwrap();
            assert!(page.items.len() <= limit as usize);
            seen.extend(page.items.iter().map(|attempt| attempt.index));
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        assert_eq!(seen, [0, 1, 2, 3, 4], "{limit} a page");
    }
    let behind = ListAttempts { execution_id: task.execution_id, after: Some(4), limit: 5 };
    assert_eq!(world.backend.ask(behind).await.unwrap().items, []);
}

pub async fn an_execution_that_never_ran_has_no_attempts(world: &World) {
    let id = world.submit(world.work()).await;
    assert_eq!(world.attempts(id).await, []);
    world.act(cancel(id)).await;
    assert_eq!(world.attempts(id).await, []);
}

pub async fn a_resumed_attempt_names_the_worker_that_runs_it_now(world: &World) {
    let task = world.start(world.work()).await;
    world.act(delay(&task, 0)).await;
    let other = Claim {
        worker_id: "other-pool".parse().unwrap(),
        worker_instance_id: "other-1".parse().unwrap(),
        ..world.claim_request(1)
    };
    let resumed = world.claim_as(other).await.pop().unwrap();
    assert_eq!(resumed.attempt_id, task.attempt_id);
    let [attempt] = world.attempts(task.execution_id).await.try_into().unwrap();
    assert_eq!(attempt.worker_id.as_str(), "other-pool");
    assert_eq!(attempt.worker_instance_id.as_str(), "other-1");
    assert_eq!(attempt.started_at, world.now().await);
}
