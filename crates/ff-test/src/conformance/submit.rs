//! Submit.

use ff_core::backend::BackendExt;
use ff_core::event::EventKind;
use ff_core::operation::Submitted;
use ff_core::state::{
    AttemptProgress, BlockingReason, EligibilityState, LifecyclePhase, OwnershipState, PublicState,
};

use crate::world::World;

pub async fn a_new_execution_waits_for_a_worker(world: &World) {
    let submit = world.work();
    let reply = world.backend.call(submit.clone()).await.unwrap();
    let Submitted::Created { execution_id, public_state, priority, event_id } = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(
        (execution_id, public_state, priority),
        (submit.execution_id, PublicState::Waiting, 0)
    );
    assert_eq!(event_id.partition, execution_id.partition());
    let record = world.describe(execution_id).await;
    assert_eq!(record.state.lifecycle_phase, LifecyclePhase::Runnable);
    assert_eq!(record.state.ownership_state, OwnershipState::Unowned);
    assert_eq!(record.state.eligibility_state, EligibilityState::EligibleNow);
    assert_eq!(record.state.blocking_reason, BlockingReason::WaitingForWorker);
    assert_eq!(record.state.attempt_state, AttemptProgress::PendingFirstAttempt);
    assert_eq!(record.state.terminal_outcome, None);
    assert_eq!(record.last_event_id, event_id);
    assert_eq!(record.created_at, world.now().await);
    assert_eq!(world.history(execution_id).await, [EventKind::Submitted]);
}
