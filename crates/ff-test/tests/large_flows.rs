//! Flows of ten thousand members, on every store: they grow, run to their end and are cancelled, and
//! all counts are right.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use ff_core::backend::BackendExt as _;
use ff_core::id::FlowId;
use ff_core::limits;
use ff_core::operation::{Command, InFlow, Submit};
use ff_core::state::{CancelPolicy, FlowState, PublicState};
use ff_test::graphs::Drawn;
use ff_test::stages;
use ff_test::world::{World, complete};

const MEMBERS: usize = 10_000;

/// As many as one submit takes, all but one waiting for that one; the others are added afterwards.
async fn grown(world: &World) -> Drawn {
    let graph = limits::FLOW_SUBMIT_MEMBERS;
    let drawn = world.submit_flow(world.draw_out(graph - 1)).await;
    let flow_id = drawn.flow_id;
    let member = || {
        let within = Some(InFlow { flow_id, name: None });
        Submit { within, ..world.member_of(flow_id) }
    };
    let mut left = MEMBERS - graph;
    while left > 0 {
        let some = left.min(limits::BATCH_ITEMS);
        let submits = (0..some).map(|_| member()).collect();
        for submitted in world.backend.submit_batch(submits).await.unwrap() {
            submitted.unwrap();
        }
        left -= some;
    }
    drawn
}

async fn has(world: &World, id: FlowId, state: FlowState, of: PublicState, count: usize) {
    let flow = world.flow(id).await;
    assert_eq!((flow.node_count as usize, flow.state), (MEMBERS, state));
    assert_eq!(flow.counts.of(of) as usize, count, "{of:?} of {:?}", flow.counts);
}

async fn grows_and_ends(world: World) {
    let drawn = grown(&world).await;
    let id = drawn.flow_id;
    let waiting = limits::FLOW_SUBMIT_MEMBERS - 1;
    has(&world, id, FlowState::Open, PublicState::WaitingChildren, waiting).await;
    let mut completed = 0;
    while completed < MEMBERS {
        let tasks = world.claim(limits::CLAIM_TASKS).await;
        assert!(!tasks.is_empty(), "{completed} completed, and nothing is left to claim");
        let completes = tasks.iter().map(|task| Command::from(complete(task))).collect();
        for reply in world.backend.apply(completes).await {
            reply.unwrap();
        }
        completed += tasks.len();
        world.settle().await;
    }
    has(&world, id, FlowState::Completed, PublicState::Completed, MEMBERS).await;
    world.audit().await;

    let drawn = grown(&world).await;
    world.act(drawn.cancel(CancelPolicy::CancelAll)).await;
    assert!(world.claim(10).await.is_empty(), "a member of a cancelled flow was claimed");
    world.settle().await;
    has(&world, drawn.flow_id, FlowState::Cancelled, PublicState::Cancelled, MEMBERS).await;
    world.audit().await;
    world.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_sqlite() {
    grows_and_ends(stages::sqlite_file().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_valkey() {
    grows_and_ends(stages::valkey_standalone().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_valkey_cluster() {
    grows_and_ends(stages::valkey_cluster().await).await;
}
