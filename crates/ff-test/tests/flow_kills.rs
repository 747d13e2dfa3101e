//! The process is killed between any two steps of what a flow has left to do, and nothing is lost:
//! graphs that unfold, edges that resolve, siblings and members that are cancelled, edges that are
//! taken back, flows that are removed.

use ff_core::operation::{DeleteFlow, Replay, Tick};
use ff_core::partition::PartitionConfig;
use ff_core::state::{CancelPolicy, FlowState, PublicState};
use ff_test::graphs::{Drawing, Drawn, quorum};
use ff_test::lives::{Lives, Mortal};
use ff_test::stages::{SqliteStage, ValkeyStage};
use ff_test::world::{World, complete, fail};

/// More than three steps take.
const WIDE: usize = 200;

/// Steps of what flows have left to do.
trait Flowing {
    async fn carry_on(&mut self) -> usize;

    async fn draw(&mut self, drawing: impl FnOnce(&World) -> Drawing) -> Drawn;

    async fn count(&mut self, drawn: &Drawn, state: PublicState) -> u32;
}

impl<S: Mortal> Flowing for Lives<S> {
    /// Carries on one step a life until nothing is left: how many there were.
    async fn carry_on(&mut self) -> usize {
        let mut steps = 0;
        loop {
            let ticked = self
                .once(async |world| {
                    world.audit().await;
                    world.act(Tick { home: None, most: 1 }).await
                })
                .await;
            if ticked.fired.is_empty() && !ticked.more {
                return steps;
            }
            steps += 1;
        }
    }

    async fn draw(&mut self, drawing: impl FnOnce(&World) -> Drawing) -> Drawn {
        let drawing = self.once(async |world| drawing(world)).await;
        let reply = self.once(async |world| world.act(drawing.submit).await).await;
        self.carry_on().await;
        Drawn::of(reply)
    }

    async fn count(&mut self, drawn: &Drawn, state: PublicState) -> u32 {
        self.once(async |world| world.flow(drawn.flow_id).await.counts.of(state)).await
    }
}

async fn edges_resolve_and_are_taken_back(lives: &mut Lives<impl Mortal>) {
    let drawn = lives.draw(|world| world.draw_out(WIDE)).await;
    assert_eq!(lives.count(&drawn, PublicState::WaitingChildren).await, WIDE as u32);
    let task = lives.once(async |world| world.take(&drawn, "x").await).await;
    lives.once(async |world| world.act(fail(&task, "permanent")).await).await;
    assert!(lives.carry_on().await >= 3);
    assert_eq!(lives.count(&drawn, PublicState::Skipped).await, WIDE as u32);
    let replay = Replay { execution_id: drawn.id("x"), descendants: false };
    lives.once(async |world| world.act(replay).await).await;
    assert!(lives.carry_on().await >= 3);
    assert_eq!(lives.count(&drawn, PublicState::WaitingChildren).await, WIDE as u32);
    let task = lives.once(async |world| world.take(&drawn, "x").await).await;
    lives.once(async |world| world.act(complete(&task)).await).await;
    assert!(lives.carry_on().await >= 3);
    assert_eq!(lives.count(&drawn, PublicState::Waiting).await, WIDE as u32);
}

async fn siblings_are_cancelled(lives: &mut Lives<impl Mortal>) {
    let drawn = lives.draw(|world| world.draw_in(WIDE).join("x", quorum(1))).await;
    let task = lives.once(async |world| world.take(&drawn, "m50").await).await;
    lives.once(async |world| world.act(complete(&task)).await).await;
    assert!(lives.carry_on().await >= 3);
    assert_eq!(lives.count(&drawn, PublicState::Cancelled).await, WIDE as u32 - 1);
    assert_eq!(lives.count(&drawn, PublicState::Waiting).await, 1);
}

async fn a_flow_is_cancelled_and_removed(lives: &mut Lives<impl Mortal>) {
    let drawn = lives.draw(|world| world.draw_out(WIDE)).await;
    lives.once(async |world| world.act(drawn.cancel(CancelPolicy::CancelAll)).await).await;
    assert!(lives.carry_on().await >= 3);
    assert_eq!(lives.count(&drawn, PublicState::Cancelled).await, WIDE as u32 + 1);
    let state = lives.once(async |world| world.flow_state(drawn.flow_id).await).await;
    assert_eq!(state, FlowState::Cancelled);
    let delete = DeleteFlow { flow_id: drawn.flow_id };
    lives.once(async |world| world.act(delete).await).await;
    assert!(lives.carry_on().await >= 3);
    let gone = lives.once(async |world| world.find_flow(drawn.flow_id).await).await;
    assert_eq!(gone, None);
    let member = lives.once(async |world| world.find(drawn.id("m0")).await).await;
    assert_eq!(member, None);
}

async fn all(mut lives: Lives<impl Mortal>) {
    edges_resolve_and_are_taken_back(&mut lives).await;
    siblings_are_cancelled(&mut lives).await;
    a_flow_is_cancelled_and_removed(&mut lives).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_sqlite() {
    all(Lives::new(SqliteStage::on_file(PartitionConfig::default()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_valkey() {
    all(Lives::new(ValkeyStage::standalone(PartitionConfig::default()).await)).await;
}
