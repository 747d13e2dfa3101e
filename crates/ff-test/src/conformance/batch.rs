//! Many operations in one call: each is atomic and answered on its own.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::{ChangePriority, Command, Delete, Release, Replay, Submit, Submitted};
use ff_core::read::Filter;
use uuid::Uuid;

use crate::world::{World, cancel, code, hold};

pub async fn a_thousand_submits_are_answered_in_their_order(world: &World) {
    let submits: Vec<_> = (0..limits::BATCH_ITEMS).map(|_| world.work()).collect();
    let expected: Vec<_> = submits.iter().map(|submit| submit.execution_id).collect();
    let replies = world.backend.submit_batch(submits).await.unwrap();
    let created = |reply| match reply {
        Ok(Submitted::Created { execution_id, .. }) => execution_id,
        other => panic!("{other:?}"),
    };
    assert_eq!(replies.into_iter().map(created).collect::<Vec<_>>(), expected);
    assert_eq!(world.claim_ids(limits::CLAIM_TASKS).await, expected);
}

pub async fn a_batch_of_none_or_of_too_many_is_refused_as_a_whole(world: &World) {
    for count in [0, limits::BATCH_ITEMS + 1] {
        let submits = (0..count).map(|_| world.work()).collect();
        assert_eq!(code(world.backend.submit_batch(submits).await), Code::InvalidInput, "{count}");
    }
    assert_eq!(world.search(Filter::default()).await, []);
}

pub async fn each_item_of_a_batch_is_answered_on_its_own(world: &World) {
    let first = world.work();
    let nowhere = ExecutionId::new(u16::MAX, Uuid::now_v7());
    let refused = Submit { execution_id: nowhere, ..world.work() };
    let other = Submit { execution_id: first.execution_id, ..world.work_on("another") };
    let last = world.work();
    let submits = vec![first.clone(), refused, first.clone(), other, last.clone()];
    let replies = world.backend.submit_batch(submits).await.unwrap();
    let [created, bad, duplicate, mismatch, also_created] = replies.try_into().unwrap();
    assert!(matches!(created, Ok(Submitted::Created { .. })), "{created:?}");
    assert_eq!(code(bad), Code::InvalidInput);
    let public_state = Some(world.public_state(first.execution_id).await);
    let execution_id = first.execution_id;
    assert_eq!(duplicate, Ok(Submitted::Duplicate { execution_id, public_state }));
    assert_eq!(code(mismatch), Code::IdempotencyMismatch);
    assert!(matches!(also_created, Ok(Submitted::Created { .. })), "{also_created:?}");
    assert_eq!(world.search(Filter::default()).await, [last.execution_id, first.execution_id]);
}

pub async fn one_key_twice_in_a_batch_makes_one_execution(world: &World) {
    let (first, second) = (world.work_keyed("once"), world.work_keyed("once"));
    let submits = vec![first.clone(), second.clone()];
    let replies = world.backend.submit_batch(submits).await.unwrap();
    assert!(matches!(replies[0], Ok(Submitted::Created { .. })), "{replies:?}");
    assert_eq!(replies[1].as_ref().unwrap().execution_id(), first.execution_id);
    assert_eq!(world.find(second.execution_id).await, None);
}

pub async fn commands_on_one_execution_run_in_their_order(world: &World) {
    let submit = world.work();
    let id = submit.execution_id;
    let commands: Vec<Command> = vec![
        submit.into(),
        hold(id).into(),
        Release { execution_id: id }.into(),
        ChangePriority { execution_id: id, priority: 5 }.into(),
        cancel(id).into(),
        Replay { execution_id: id, descendants: false }.into(),
        cancel(id).into(),
    ];
    for reply in world.backend.apply(commands).await {
        reply.unwrap();
    }
    use EventKind::{Blocked, Cancelled, PriorityChanged, Replayed, Submitted, Unblocked};
    assert_eq!(
        world.history(id).await,
        [Submitted, Blocked, Unblocked, PriorityChanged, Cancelled, Replayed, Cancelled]
    );
}

pub async fn what_comes_and_goes_within_a_batch_leaves_nothing(world: &World) {
    let submit = world.work();
    let id = submit.execution_id;
    let commands: Vec<Command> =
        vec![submit.into(), cancel(id).into(), Delete { execution_id: id }.into()];
    for reply in world.backend.apply(commands).await {
        reply.unwrap();
    }
    assert_eq!(world.find(id).await, None);
    assert_eq!(world.claim_ids(1).await, []);
}

pub async fn no_commands_have_no_replies(world: &World) {
    assert_eq!(world.backend.apply(Vec::new()).await, []);
}
