//! Renewals: a later expiry under the same epoch.

use ff_core::error::Code;
use ff_core::limits;
use ff_core::operation::{Claim, Renew, Renewed};
use ff_core::state::PublicState;

use crate::world::{World, renew};

pub async fn a_renewal_moves_the_expiry_and_keeps_the_lease(world: &World) {
    let task = world.start(world.work()).await;
    world.advance(1_000).await;
    let now = world.now().await;
    let expires_at = now.after(limits::LEASE_TTL_MS);
    assert_eq!(world.act(renew(&task)).await, Renewed { expires_at });
    let record = world.describe(task.execution_id).await;
    assert_eq!((record.lease_id, record.lease_epoch), (Some(task.lease_id), 1));
    assert_eq!(record.lease_expires_at, Some(expires_at));
    assert_eq!(record.lease_last_renewed_at, Some(now));
    assert_eq!(record.lease_renewal_deadline, Some(now.after(limits::LEASE_TTL_MS * 2 / 3)));
}

pub async fn a_renewal_without_a_ttl_takes_the_last_one(world: &World) {
    world.submit(world.work()).await;
    let claim = Claim { lease_ttl_ms: 5_000, ..world.claim_request(1) };
    let task = world.claim_as(claim).await.pop().unwrap();
    world.advance(100).await;
    let now = world.now().await;
    assert_eq!(world.act(renew(&task)).await.expires_at, now.after(5_000));
    let longer = Renew { ttl_ms: Some(9_000), ..renew(&task) };
    assert_eq!(world.act(longer).await.expires_at, now.after(9_000));
    world.advance(100).await;
    assert_eq!(world.act(renew(&task)).await.expires_at, now.after(9_100));
}

pub async fn a_renewed_lease_outlives_its_first_expiry(world: &World) {
    let task = world.start(world.work()).await;
    let ttl = limits::LEASE_TTL_MS.cast_signed();
    for _ in 0..5 {
        world.pass(ttl - 1).await;
        world.act(renew(&task)).await;
    }
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Active);
    world.complete(&task).await.unwrap();
}

pub async fn a_renewal_is_not_a_transition(world: &World) {
    let task = world.start(world.work()).await;
    let (before, events) =
        (world.describe(task.execution_id).await, world.events(task.execution_id).await);
    world.advance(1_000).await;
    world.act(renew(&task)).await;
    let after = world.describe(task.execution_id).await;
    assert_eq!(after.last_transition_at, before.last_transition_at);
    assert_eq!(after.last_event_id, before.last_event_id);
    assert!(after.revision > before.revision, "a conditional write must notice a renewal");
    assert_eq!(world.events(task.execution_id).await, events);
}

pub async fn the_ttl_of_a_renewal_has_a_range(world: &World) {
    let task = world.start(world.work()).await;
    for ttl in [0, limits::LEASE_TTL_MIN_MS - 1, limits::LEASE_TTL_MAX_MS + 1, u64::MAX] {
        let renewal = Renew { ttl_ms: Some(ttl), ..renew(&task) };
        world.refuses(renewal, Code::InvalidInput).await;
    }
    for ttl in [limits::LEASE_TTL_MAX_MS, limits::LEASE_TTL_MIN_MS] {
        let renewal = Renew { ttl_ms: Some(ttl), ..renew(&task) };
        assert_eq!(world.act(renewal).await.expires_at, world.now().await.after(ttl));
    }
}
