//! Members that are deleted by themselves from a flow that has ended.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::id::ExecutionId;
use ff_core::operation::{
    AddToFlow, AddedToFlow, ApplyEdge, CreateFlow, Delete, DeleteFlow, FlowCreated, FlowReplayed,
    InFlow, Replay, ReplayFlow, ResolveEdge, StageEdge, Submit,
};
use ff_core::read::{
    DescribeEdge, Eligibility, EvaluateEligibility, ListFlowEdges, ListFlowMembers,
};
use ff_core::state::{CancelPolicy, EdgeKind, FlowState, Outcome, PublicState};

use crate::graphs::{Drawn, create_flow, let_run, name, stage};
use crate::world::{World, cancel, code, complete};

use PublicState::{Cancelled, Completed, Failed, Skipped, Waiting};

impl World {
    async fn remove(&self, drawn: &Drawn, name: &str) {
        self.act(Delete { execution_id: drawn.id(name) }).await;
    }

    async fn replay(&self, drawn: &Drawn, name: &str) -> PublicState {
        let replay = Replay { execution_id: drawn.id(name), descendants: false };
        let state = self.act(replay).await.public_state;
        self.settle().await;
        state
    }

    /// Members by name, and edges as pairs of ids, as lists show them; counts say the same.
    async fn standing(&self, drawn: &Drawn) -> (Vec<String>, Vec<(ExecutionId, ExecutionId)>) {
        let flow_id = drawn.flow_id;
        let list = ListFlowMembers { flow_id, from: 0, limit: 500 };
        let members = self.backend.ask(list).await.expect("a page").items;
        let (mut edges, mut from) = (Vec::new(), Some((0, 0)));
        while let Some(place) = from {
            let list = ListFlowEdges { flow_id, from: place, limit: 2 };
            let page = self.backend.ask(list).await.expect("a page");
            edges.extend(page.items.iter().map(|edge| (edge.upstream, edge.downstream)));
            from = page.next;
        }
        let flow = self.flow(flow_id).await;
        assert_eq!(flow.node_count as usize, members.len());
        assert_eq!(flow.edge_count as usize, edges.len());
        let counted: u32 = flow.counts.iter().map(|(_, count)| count).sum();
        assert_eq!(counted, flow.node_count);
        let name = |name: Option<&_>| name.map_or_else(String::new, ToString::to_string);
        (members.iter().map(|member| name(member.name.as_ref())).collect(), edges)
    }
}

pub async fn readers_do_not_find_it_any_more(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>b", "b>c", "a>c"])).await;
    for name in ["a", "b", "c"] {
        world.run(&drawn, name).await;
    }
    let before = world.flow(drawn.flow_id).await;
    world.remove(&drawn, "b").await;
    let (members, edges) = world.standing(&drawn).await;
    assert_eq!(
        (members, edges),
        (vec!["a".into(), "c".into()], vec![(drawn.id("a"), drawn.id("c"))])
    );
    let after = world.flow(drawn.flow_id).await;
    assert_eq!((after.state, after.completed_at), (before.state, before.completed_at));
    assert!(after.graph_revision > before.graph_revision);
    let flow_id = drawn.flow_id;
    for (n, expected) in [(0, None), (1, None), (2, Some(drawn.id("c")))] {
        let found =
            world.backend.ask(DescribeEdge { flow_id, edge_id: drawn.reply.edges[n] }).await;
        match expected {
            Some(downstream) => assert_eq!(found.expect("an edge").downstream, downstream),
            None => assert_eq!(code(found), Code::EdgeNotFound),
        }
    }
    let asked = EvaluateEligibility { flow_id, execution_id: drawn.id("b") };
    assert_eq!(world.backend.ask(asked).await, Ok(Eligibility::NotFound));
    let again = world.backend.call(Delete { execution_id: drawn.id("b") }).await;
    assert_eq!(code(again), Code::ExecutionNotFound);
}

pub async fn its_removal_is_told_of_the_flow(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &["a>b"])).await;
    world.run(&drawn, "a").await;
    world.run(&drawn, "b").await;
    world.remove(&drawn, "a").await;
    let log = world.log().await;
    let of_flow =
        |e: &&ff_core::event::Envelope| e.event.subject.to_string() == drawn.flow_id.to_string();
    let last = &log.iter().rfind(of_flow).expect("events").event;
    assert_eq!(last.kind, EventKind::FlowChanged);
    assert_eq!(last.data["removed"], Detail::from(drawn.id("a").to_string().as_str()));
}

pub async fn edges_of_it_are_no_edges_any_more(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>b", "b>c"])).await;
    for name in ["a", "b", "c"] {
        world.run(&drawn, name).await;
    }
    world.remove(&drawn, "b").await;
    let flow_id = drawn.flow_id;
    for edge_id in drawn.reply.edges.clone() {
        let apply = ApplyEdge { flow_id, edge_id };
        assert_eq!(code(world.backend.call(apply).await), Code::InvalidDependency);
        let resolve = ResolveEdge { flow_id, edge_id, outcome: Outcome::Success };
        assert_eq!(code(world.backend.call(resolve).await), Code::InvalidDependency);
    }
    let edge = stage(&drawn, "c>b");
    assert_eq!(code(world.backend.call(edge).await), Code::ExecutionNotInFlow);
    // The way from a to c led over b.
    world.replay(&drawn, "a").await;
    let edge = StageEdge { apply: true, ..stage(&drawn, "c>a") };
    world.act(edge).await;
}

pub async fn its_name_is_free_again(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &["a>b"])).await;
    world.run(&drawn, "a").await;
    world.run(&drawn, "b").await;
    world.remove(&drawn, "a").await;
    let flow_id = drawn.flow_id;
    let within = Some(InFlow { flow_id, name: Some(name("a")) });
    let id = world.submit(Submit { within, ..world.member_of(flow_id) }).await;
    let (members, edges) = world.standing(&drawn).await;
    assert_eq!((members, edges), (vec!["b".into(), "a".into()], vec![]));
    let add = AddToFlow { flow_id, execution_id: id, name: None };
    assert_eq!(world.act(add).await, AddedToFlow::AlreadyMember { node_count: 2 });
    let task = world.claim_one().await;
    world.act(complete(&task)).await;
    assert_eq!(world.flow_state(flow_id).await, FlowState::Completed);
}

pub async fn a_graph_that_is_submitted_again_does_not_name_it(world: &World) {
    let drawing = world.draw(&["a", "b"], &["a>b"]);
    let submit = drawing.submit.clone();
    let drawn = world.submit_flow(drawing).await;
    world.run(&drawn, "a").await;
    world.run(&drawn, "b").await;
    world.remove(&drawn, "a").await;
    let within = Some(InFlow { flow_id: drawn.flow_id, name: Some(name("late")) });
    world.submit(Submit { within, ..world.member_of(drawn.flow_id) }).await;
    let again = world.act(submit).await;
    assert!(again.duplicate);
    assert_eq!(again.members, [(name("b"), drawn.id("b"))]);
}

/// What it ran with is gone; that it was satisfied is not.
pub async fn a_downstream_that_ran_is_replayed_without_it(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>c", "b>c"])).await;
    for name in ["a", "b", "c"] {
        world.run(&drawn, name).await;
    }
    world.remove(&drawn, "a").await;
    assert_eq!(world.replay(&drawn, "c").await, Waiting);
    let task = world.take(&drawn, "c").await;
    let inputs: Vec<_> = task.extras.inputs.keys().cloned().collect();
    assert_eq!(inputs, ["b"]);
    world.act(complete(&task)).await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn a_downstream_that_was_skipped_stays_so(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>b", "b>c"])).await;
    world.break_down(&drawn, "a").await;
    world.remove(&drawn, "a").await;
    assert_eq!(world.replay(&drawn, "b").await, Skipped);
    assert_eq!(world.states(&drawn, &["b", "c"]).await, [Skipped, Skipped]);
    let flow = world.flow(drawn.flow_id).await;
    assert_eq!(flow.state, FlowState::Completed, "no failure is left");
}

/// It was cancelled before its group had decided: its edges are counted anew.
pub async fn a_join_counts_what_it_had_come_to(world: &World) {
    let drawing = world.draw(&["a", "b", "c", "d"], &["a>d", "b>d", "c>d"]);
    let drawn = world.submit_flow(drawing.join("d", let_run(2))).await;
    world.run(&drawn, "a").await;
    world.act(cancel(drawn.id("d"))).await;
    world.break_down(&drawn, "b").await;
    world.break_down(&drawn, "c").await;
    world.remove(&drawn, "a").await;
    world.remove(&drawn, "b").await;
    assert_eq!(world.replay(&drawn, "d").await, Skipped, "only c is there, and it failed");
    world.replay(&drawn, "c").await;
    assert_eq!(world.states(&drawn, &["d"]).await, [PublicState::WaitingChildren]);
    world.run(&drawn, "c").await;
    assert_eq!(world.states(&drawn, &["d"]).await, [Waiting], "two of three were satisfied");
    world.run(&drawn, "d").await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn an_upstream_of_it_is_replayed_to_its_end(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>b", "a>c"])).await;
    world.break_down(&drawn, "a").await;
    world.remove(&drawn, "b").await;
    world.replay(&drawn, "a").await;
    let told = async || {
        let history = world.flow_history(drawn.flow_id).await;
        history.iter().filter(|kind| **kind == EventKind::EdgeResolved).count()
    };
    let before = told().await;
    world.run(&drawn, "a").await;
    assert_eq!(told().await - before, 1, "one edge is left");
    world.run(&drawn, "c").await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn a_flow_replays_the_failures_that_are_there(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &[])).await;
    for name in ["a", "b"] {
        world.break_down(&drawn, name).await;
    }
    world.run(&drawn, "c").await;
    let flow_id = drawn.flow_id;
    world.remove(&drawn, "a").await;
    let listed = ReplayFlow { flow_id, members: Some(vec![drawn.id("a")]) };
    assert_eq!(code(world.backend.call(listed).await), Code::ExecutionNotInFlow);
    let members = vec![drawn.id("b")];
    let all = ReplayFlow { flow_id, members: None };
    assert_eq!(world.act(all.clone()).await, FlowReplayed::Replayed { members, more: false });
    world.break_down(&drawn, "b").await;
    world.remove(&drawn, "b").await;
    assert_eq!(world.flow_state(flow_id).await, FlowState::Failed, "it ended so");
    assert_eq!(world.act(all).await, FlowReplayed::AlreadySatisfied);
}

/// Whether a failure was handled does not change with those behind it.
pub async fn what_was_handled_stays_handled(world: &World) {
    let drawing = world.draw(&["a", "b", "c", "d", "e"], &["a>c", "b>c", "a>d"]);
    let drawing = drawing.join("c", let_run(1)).kind("a>d", EdgeKind::FailureOnly);
    for (gone, kept) in [("c", "d"), ("d", "c")] {
        let drawing = crate::graphs::Drawing { submit: fresh(world, &drawing.submit) };
        let drawn = world.submit_flow(drawing).await;
        world.break_down(&drawn, "a").await;
        for name in ["b", "c", "d", "e"] {
            world.run(&drawn, name).await;
        }
        assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
        world.remove(&drawn, gone).await;
        world.replay(&drawn, "e").await;
        world.run(&drawn, "e").await;
        assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed, "{kept} is left");
        world.remove(&drawn, kept).await;
        let again = ReplayFlow { flow_id: drawn.flow_id, members: None };
        assert_eq!(world.act(again).await, FlowReplayed::AlreadySatisfied);
    }
}

/// The same graph as another flow.
fn fresh(world: &World, of: &ff_core::operation::SubmitFlow) -> ff_core::operation::SubmitFlow {
    let mut submit = of.clone();
    submit.flow = create_flow();
    submit.edge_seed = uuid::Uuid::now_v7();
    for member in &mut submit.members {
        member.submit = world.member_of(submit.flow.flow_id);
    }
    submit
}

/// Satisfied anyway, by a group whose member is gone: still handled. Never satisfied: still not.
pub async fn what_its_group_had_decided_is_remembered(world: &World) {
    for (helped, state) in [(true, FlowState::Completed), (false, FlowState::Failed)] {
        let drawing = world.draw(&["a", "b", "c", "d"], &["a>c", "b>c"]);
        let drawn = world.submit_flow(drawing.join("c", let_run(1))).await;
        world.break_down(&drawn, "a").await;
        if helped {
            world.run(&drawn, "b").await;
            world.run(&drawn, "c").await;
        } else {
            world.act(cancel(drawn.id("c"))).await;
            world.run(&drawn, "b").await;
        }
        world.run(&drawn, "d").await;
        world.remove(&drawn, "c").await;
        world.replay(&drawn, "d").await;
        world.run(&drawn, "d").await;
        assert_eq!(world.flow_state(drawn.flow_id).await, state, "{helped}");
    }
}

/// A removed id is free again: whoever has it next is not the member that was removed.
pub async fn another_execution_with_its_id_is_another(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>b", "b>c", "a>c"])).await;
    world.break_down(&drawn, "a").await;
    assert_eq!(world.states(&drawn, &["b", "c"]).await, [Skipped, Skipped]);
    world.remove(&drawn, "b").await;
    let stranger = Submit { execution_id: drawn.id("b"), ..world.member_of(drawn.flow_id) };
    world.submit(stranger).await;
    let (members, edges) = world.standing(&drawn).await;
    assert_eq!((members.len(), edges.len()), (2, 1));
    world.replay(&drawn, "a").await;
    world.run(&drawn, "a").await;
    assert_eq!(world.public_state(drawn.id("b")).await, Waiting, "it stands for itself");
    assert_eq!(world.states(&drawn, &["c"]).await, [Skipped], "b was skipped");
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
    let flow_id = drawn.flow_id;
    let add = AddToFlow { flow_id, execution_id: drawn.id("b"), name: Some(name("b")) };
    assert_eq!(world.act(add).await, AddedToFlow::Added { node_count: 3 });
    let (members, edges) = world.standing(&drawn).await;
    assert_eq!((members, edges.len()), (vec!["a".into(), "c".into(), "b".into()], 1));
    world.act(StageEdge { apply: true, ..stage(&drawn, "a>b") }).await;
    world.run(&drawn, "b").await;
    world.replay(&drawn, "a").await;
    world.run(&drawn, "a").await;
    assert_eq!(world.flow_state(flow_id).await, FlowState::Completed);
    world.act(DeleteFlow { flow_id }).await;
    assert_eq!(world.find(drawn.id("b")).await, None);
}

/// Another flow in the same partition.
fn another_beside(world: &World, drawn: &Drawn) -> CreateFlow {
    let partitions = &world.backend.settings().partitions;
    let here = drawn.flow_id.partition(partitions);
    let mut flows = std::iter::repeat_with(create_flow);
    flows.find(|flow| flow.flow_id.partition(partitions) == here).expect("without end")
}

pub async fn a_failure_with_its_id_is_no_failure_of_the_flow(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &[])).await;
    world.break_down(&drawn, "a").await;
    world.run(&drawn, "b").await;
    world.remove(&drawn, "a").await;
    let beside = another_beside(world, &drawn);
    let within = Some(InFlow { flow_id: beside.flow_id, name: None });
    world.act(beside).await;
    let stranger = world.member_of(drawn.flow_id);
    world.submit(Submit { execution_id: drawn.id("a"), within, ..stranger }).await;
    world.break_down(&drawn, "a").await;
    world.replay(&drawn, "b").await;
    world.run(&drawn, "b").await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
    let all = ReplayFlow { flow_id: drawn.flow_id, members: None };
    assert_eq!(world.act(all).await, FlowReplayed::AlreadySatisfied);
}

pub async fn a_flow_whose_members_are_all_removed_goes_in_its_time(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &["a>b"])).await;
    world.run(&drawn, "a").await;
    world.run(&drawn, "b").await;
    world.remove(&drawn, "a").await;
    world.remove(&drawn, "b").await;
    let (members, edges) = world.standing(&drawn).await;
    assert_eq!((members.len(), edges.len()), (0, 0));
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
    let replay = ReplayFlow { flow_id: drawn.flow_id, members: None };
    assert_eq!(world.act(replay).await, FlowReplayed::AlreadySatisfied);
    world.pass(ff_core::limits::RETENTION_MS.cast_signed()).await;
    assert_eq!(world.find_flow(drawn.flow_id).await, None);
}

pub async fn a_flow_is_deleted_with_those_that_are_left(world: &World) {
    let drawn = world.submit_flow(world.draw_out(100)).await;
    world.break_down(&drawn, "x").await;
    world.remove(&drawn, "m7").await;
    world.remove(&drawn, "x").await;
    let (members, edges) = world.standing(&drawn).await;
    assert_eq!((members.len(), edges.len()), (99, 0));
    world.act(DeleteFlow { flow_id: drawn.flow_id }).await;
    world.settle().await;
    assert_eq!(world.find_flow(drawn.flow_id).await, None);
    assert_eq!(world.find(drawn.id("m99")).await, None);
}

pub async fn a_deleted_flow_is_gone_when_that_is_answered(world: &World) {
    let drawn = world.submit_flow(world.draw_out(200)).await;
    world.break_down(&drawn, "x").await;
    world.backend.delete_flow(drawn.flow_id).await.expect("it has ended");
    assert_eq!(world.find_flow(drawn.flow_id).await, None);
    assert_eq!(world.find(drawn.id("x")).await, None);
    let again = CreateFlow { flow_id: drawn.flow_id, ..create_flow() };
    assert_eq!(world.act(again).await, FlowCreated::Created);
}

pub async fn while_a_flow_is_removed_nothing_of_it_comes_back(world: &World) {
    let drawing = world.draw_out(100);
    let graph = drawing.submit.clone();
    let drawn = world.submit_flow(drawing).await;
    world.break_down(&drawn, "x").await;
    world.act(DeleteFlow { flow_id: drawn.flow_id }).await;
    let oldest = drawn.id("m0");
    assert!(world.find(oldest).await.is_some(), "it goes in a later step");
    assert_eq!(world.find_flow(drawn.flow_id).await, None);
    let replay = Replay { execution_id: oldest, descendants: false };
    world.refuses(replay, Code::ExecutionNotFound).await;
    let again = CreateFlow { flow_id: drawn.flow_id, ..create_flow() };
    assert_eq!(code(world.backend.call(again.clone()).await), Code::StoreBusy);
    assert_eq!(code(world.backend.call(graph).await), Code::StoreBusy);
    world.settle().await;
    assert_eq!(world.find(oldest).await, None);
    assert_eq!(world.act(again).await, FlowCreated::Created);
}

pub async fn members_of_a_cancelled_flow_are_removed_too(world: &World) {
    let drawn = world.submit_flow(world.draw_out(100)).await;
    world.act(drawn.cancel(CancelPolicy::CancelAll)).await;
    world.settle().await;
    world.remove(&drawn, "x").await;
    let (members, edges) = world.standing(&drawn).await;
    assert_eq!((members.len(), edges.len()), (100, 0));
    assert_eq!(world.flow(drawn.flow_id).await.counts.of(Cancelled), 100);
}

pub async fn a_member_of_a_flow_that_goes_on_is_not_removed(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &[])).await;
    world.break_down(&drawn, "a").await;
    world.refuses(Delete { execution_id: drawn.id("a") }, Code::FlowNotTerminal).await;
    assert_eq!(world.states(&drawn, &["a"]).await, [Failed]);
    world.run(&drawn, "b").await;
    assert_eq!(world.states(&drawn, &["b"]).await, [Completed]);
    world.remove(&drawn, "a").await;
}
