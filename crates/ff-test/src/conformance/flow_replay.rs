//! Replay inside a flow.

use ff_core::backend::BackendExt;
use ff_core::content::Content;
use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::operation::{
    ApplyEdge, Complete, FlowReplayed, GraphEdge, Replay, ReplayFlow, StageEdge,
};
use ff_core::state::{AttemptType, BlockingReason, EdgeKind, FlowState, Outcome, PublicState};

use crate::grants::grant_and_claim;
use crate::graphs::{Drawing, Drawn, any_of, quorum, stage, wait_children};
use crate::world::{World, cancel, code, complete, hold, policy, revoke};

use PublicState::{Completed, Delayed, Failed, Skipped, Waiting, WaitingChildren};

fn replay(drawn: &Drawn, name: &str) -> Replay {
    Replay { execution_id: drawn.id(name), descendants: false }
}

fn replay_flow(drawn: &Drawn) -> ReplayFlow {
    ReplayFlow { flow_id: drawn.flow_id, members: None }
}

pub async fn what_was_skipped_waits_again(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>b", "b>c"])).await;
    world.break_down(&drawn, "a").await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Failed);
    let reply = world.act(replay(&drawn, "a")).await;
    assert_eq!((reply.replay_count, reply.unresolved), (1, 0));
    let states = world.states(&drawn, &["a", "b", "c"]).await;
    assert_eq!(states, [Waiting, WaitingChildren, WaitingChildren]);
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Running);
    assert_eq!(world.flow_history(drawn.flow_id).await.last(), Some(&EventKind::FlowReopened));
    for name in ["a", "b", "c"] {
        world.run(&drawn, name).await;
    }
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn downstreams_that_ran_keep_their_outcome(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &["a>b"])).await;
    world.run(&drawn, "a").await;
    world.run(&drawn, "b").await;
    world.act(replay(&drawn, "a")).await;
    assert_eq!(world.states(&drawn, &["a", "b"]).await, [Waiting, Completed]);
    world.break_down(&drawn, "a").await;
    assert_eq!(world.states(&drawn, &["b"]).await, [Completed]);
}

pub async fn descendants_are_replayed_if_asked_for(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>b", "b>c"])).await;
    for name in ["a", "b", "c"] {
        world.run(&drawn, name).await;
    }
    world.act(Replay { descendants: true, ..replay(&drawn, "a") }).await;
    let states = world.states(&drawn, &["a", "b", "c"]).await;
    assert_eq!(states, [Waiting, WaitingChildren, WaitingChildren]);
    for name in ["a", "b", "c"] {
        assert_eq!(world.claimable(&drawn).await, [name]);
        world.run(&drawn, name).await;
    }
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn a_released_downstream_that_has_not_started_waits_again(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &["a>b"])).await;
    world.run(&drawn, "a").await;
    assert_eq!(world.states(&drawn, &["b"]).await, [Waiting]);
    world.act(replay(&drawn, "a")).await;
    assert_eq!(world.states(&drawn, &["b"]).await, [WaitingChildren]);
    world.run(&drawn, "a").await;
    assert_eq!(world.states(&drawn, &["b"]).await, [Waiting]);
}

pub async fn a_replayed_skipped_member_looks_at_its_upstreams_again(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &["a>b"])).await;
    world.break_down(&drawn, "a").await;
    // Its upstream is as it was: it can still not run.
    world.act(replay(&drawn, "b")).await;
    assert_eq!(world.states(&drawn, &["b"]).await, [Skipped]);
    world.act(replay(&drawn, "a")).await;
    world.run(&drawn, "a").await;
    assert_eq!(world.states(&drawn, &["b"]).await, [Waiting]);
}

pub async fn with_another_failed_upstream_it_stays_skipped(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "j", "k"], &["a>j", "b>j", "j>k"])).await;
    world.break_down(&drawn, "a").await;
    world.break_down(&drawn, "b").await;
    world.act(replay(&drawn, "a")).await;
    assert_eq!(world.states(&drawn, &["a", "j", "k"]).await, [Waiting, Skipped, Skipped]);
    world.run(&drawn, "a").await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Failed);
    world.act(replay(&drawn, "b")).await;
    assert_eq!(world.states(&drawn, &["j", "k"]).await, [WaitingChildren, WaitingChildren]);
    for name in ["b", "j", "k"] {
        assert_eq!(world.claimable(&drawn).await, [name]);
        world.run(&drawn, name).await;
    }
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn replayed_descendants_are_skipped_if_it_fails_this_time(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>b", "b>c"])).await;
    for name in ["a", "b", "c"] {
        world.run(&drawn, name).await;
    }
    world.act(Replay { descendants: true, ..replay(&drawn, "a") }).await;
    world.break_down(&drawn, "a").await;
    assert_eq!(world.states(&drawn, &["b", "c"]).await, [Skipped, Skipped]);
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Failed);
    world.act(replay(&drawn, "a")).await;
    for name in ["a", "b", "c"] {
        assert_eq!(world.claimable(&drawn).await, [name]);
        world.run(&drawn, name).await;
    }
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn replayed_descendants_wait_for_both_sides_of_a_diamond(world: &World) {
    let edges = ["a>b", "a>c", "b>d", "c>d"];
    let drawn = world.submit_flow(world.draw(&["a", "b", "c", "d"], &edges)).await;
    for name in ["a", "b", "c", "d"] {
        world.run(&drawn, name).await;
    }
    world.act(Replay { descendants: true, ..replay(&drawn, "a") }).await;
    for name in ["a", "b"] {
        world.run(&drawn, name).await;
    }
    assert_eq!(world.states(&drawn, &["c", "d"]).await, [Waiting, WaitingChildren]);
    world.run(&drawn, "c").await;
    world.run(&drawn, "d").await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn replayed_descendants_get_the_new_payload(world: &World) {
    let drawing = world.draw(&["a", "b"], &["a>b"]);
    let passing = |edge: &mut GraphEdge| edge.data_passing_ref = Some("payload".to_owned());
    let drawn = world.submit_flow(drawing.edge("a>b", passing)).await;
    let run = async |name: &str, result: &str| {
        let task = world.take(&drawn, name).await;
        let result = Some(Content::new(result.to_owned()));
        world.act(Complete { result, ..complete(&task) }).await;
        world.settle().await;
        task.payload
    };
    run("a", "first").await;
    assert_eq!(run("b", "").await, "first");
    world.act(Replay { descendants: true, ..replay(&drawn, "a") }).await;
    run("a", "second").await;
    assert_eq!(run("b", "").await, "second");
}

pub async fn descendants_behind_a_skipped_member_are_replayed_too(world: &World) {
    let drawing = world.draw(&["a", "b", "c"], &["a>b", "b>c"]).kind("b>c", EdgeKind::Always);
    let drawn = world.submit_flow(drawing).await;
    world.break_down(&drawn, "a").await;
    world.run(&drawn, "c").await;
    assert_eq!(world.states(&drawn, &["b", "c"]).await, [Skipped, Completed]);
    world.act(Replay { descendants: true, ..replay(&drawn, "a") }).await;
    for name in ["a", "b", "c"] {
        assert_eq!(world.claimable(&drawn).await, [name]);
        world.run(&drawn, name).await;
    }
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn a_flow_replays_its_failed_part(world: &World) {
    let edges = ["a>b", "b>c", "x>y"];
    let drawn = world.submit_flow(world.draw(&["a", "b", "c", "x", "y"], &edges)).await;
    world.run(&drawn, "a").await;
    world.break_down(&drawn, "b").await;
    world.run(&drawn, "x").await;
    let early = world.backend.call(replay_flow(&drawn)).await;
    assert_eq!(code(early), Code::FlowNotTerminal);
    world.run(&drawn, "y").await;
    let reply = world.act(replay_flow(&drawn)).await;
    assert_eq!(reply, FlowReplayed::Replayed { members: vec![drawn.id("b")], more: false });
    let states = world.states(&drawn, &["a", "b", "c", "x", "y"]).await;
    assert_eq!(states, [Completed, Waiting, WaitingChildren, Completed, Completed]);
    world.run(&drawn, "b").await;
    world.run(&drawn, "c").await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
    assert_eq!(world.act(replay_flow(&drawn)).await, FlowReplayed::AlreadySatisfied);
}

pub async fn what_comes_back_keeps_its_delay(world: &World) {
    let later = world.now().await.after(60_000);
    let drawing = world.draw(&["a", "d"], &["a>d"]);
    let drawing = drawing.with("d", |submit| submit.delay_until = Some(later));
    let drawn = world.submit_flow(drawing).await;
    world.break_down(&drawn, "a").await;
    assert_eq!(world.states(&drawn, &["d"]).await, [Skipped]);
    world.act(replay_flow(&drawn)).await;
    assert_eq!(world.states(&drawn, &["d"]).await, [WaitingChildren]);
    world.run(&drawn, "a").await;
    assert_eq!(world.states(&drawn, &["d"]).await, [Delayed]);
    world.pass(60_000).await;
    assert_eq!(world.claim_ids(5).await, [drawn.id("d")]);
}

/// A member cancelled before it began, and an upstream that failed: both are replayed.
pub async fn what_was_cancelled_before_it_began_waits_again(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &["a>b"])).await;
    world.act(cancel(drawn.id("b"))).await;
    world.break_down(&drawn, "a").await;
    world.act(replay_flow(&drawn)).await;
    assert_eq!(world.states(&drawn, &["a", "b"]).await, [Waiting, WaitingChildren]);
    world.run(&drawn, "a").await;
    assert_eq!(world.states(&drawn, &["b"]).await, [Waiting]);
    world.run(&drawn, "b").await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn a_replayed_descendant_that_is_replayed_again_still_waits(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &["a>b"])).await;
    world.run(&drawn, "a").await;
    world.run(&drawn, "b").await;
    world.act(Replay { descendants: true, ..replay(&drawn, "a") }).await;
    world.act(cancel(drawn.id("b"))).await;
    let reply = world.act(replay(&drawn, "b")).await;
    assert_eq!((reply.public_state, reply.unresolved), (WaitingChildren, 1));
    world.run(&drawn, "a").await;
    let task = world.take(&drawn, "b").await;
    assert_eq!(task.extras.inputs["a"].outcome, Outcome::Success);
}

pub async fn edges_into_what_never_began_are_taken_back(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &["a>b"])).await;
    world.run(&drawn, "a").await;
    world.act(cancel(drawn.id("b"))).await;
    world.act(replay(&drawn, "a")).await;
    world.break_down(&drawn, "a").await;
    let reply = world.act(replay(&drawn, "b")).await;
    assert_eq!(reply.public_state, Skipped, "its only upstream has failed this time");
    world.act(replay(&drawn, "a")).await;
    world.run(&drawn, "a").await;
    world.run(&drawn, "b").await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn a_parent_waits_for_a_child_that_is_replayed(world: &World) {
    for ends_first in [true, false] {
        let drawn = world.submit_flow(world.draw(&["p", "k", "l"], &[])).await;
        let children = || Some(vec![drawn.id("k"), drawn.id("l")]);
        if ends_first {
            world.break_down(&drawn, "k").await;
        }
        let task = world.take(&drawn, "p").await;
        world.act(wait_children(&task, children())).await;
        if !ends_first {
            world.break_down(&drawn, "k").await;
        }
        world.act(replay(&drawn, "k")).await;
        world.run(&drawn, "l").await;
        assert_eq!(world.states(&drawn, &["p"]).await, [WaitingChildren]);
        world.run(&drawn, "k").await;
        let task = world.act(grant_and_claim(drawn.id("p"))).await;
        let outcomes: Vec<_> = task.extras.inputs.values().map(|input| input.outcome).collect();
        assert_eq!(outcomes, [Outcome::Success; 2]);
    }
}

pub async fn inputs_outlive_the_replay_of_an_upstream(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "d"], &["a>d"])).await;
    world.run(&drawn, "a").await;
    world.take(&drawn, "d").await;
    world.act(replay(&drawn, "a")).await;
    for begins in [false, true] {
        if begins {
            world.take(&drawn, "a").await;
        }
        world.act(revoke(drawn.id("d"))).await;
        let task = world.take(&drawn, "d").await;
        let input = &task.extras.inputs["a"];
        assert_eq!((input.outcome, input.inline), (Outcome::Success, !begins));
        let result = input.result.as_ref().map(|result| &result.bytes[..]);
        assert_eq!(result, (!begins).then_some(&b"result of a"[..]), "or it is fetched");
    }
}

pub async fn what_failed_behind_a_failure_waits_for_it(world: &World) {
    let drawing = world.draw(&["a", "x", "b"], &["a>x", "x>b"]).kind("x>b", EdgeKind::Always);
    let drawn = world.submit_flow(drawing).await;
    world.break_down(&drawn, "a").await;
    world.break_down(&drawn, "b").await;
    world.act(replay_flow(&drawn)).await;
    let states = world.states(&drawn, &["a", "x", "b"]).await;
    assert_eq!(states, [Waiting, WaitingChildren, WaitingChildren]);
    for name in ["a", "x", "b"] {
        world.run(&drawn, name).await;
    }
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn a_skipped_member_that_had_run_before_is_replayed(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &["a>b"])).await;
    world.run(&drawn, "a").await;
    world.break_down(&drawn, "b").await;
    world.act(Replay { descendants: true, ..replay(&drawn, "a") }).await;
    world.break_down(&drawn, "a").await;
    assert_eq!(world.states(&drawn, &["b"]).await, [Skipped]);
    world.act(replay(&drawn, "a")).await;
    world.run(&drawn, "a").await;
    let task = world.take(&drawn, "b").await;
    assert_eq!((task.attempt_index, task.attempt_type), (1, AttemptType::Replay));
}

pub async fn many_failures_are_all_named(world: &World) {
    let names: Vec<_> = (0..40).map(|n| format!("m{n:02}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let edges = [("m00", "h")].map(|(from, to)| format!("{from}>{to}"));
    let drawing = world.draw(&[&names[..], &["h"]].concat(), &[&edges[0]]);
    let drawn = world.submit_flow(drawing.kind("m00>h", EdgeKind::FailureOnly)).await;
    for name in &names {
        world.break_down(&drawn, name).await;
    }
    world.run(&drawn, "h").await;
    let reply = world.act(replay_flow(&drawn)).await;
    let FlowReplayed::Replayed { mut members, more: false } = reply else { panic!("{reply:?}") };
    let mut expected: Vec<_> = names[1..].iter().map(|name| drawn.id(name)).collect();
    members.sort_unstable();
    expected.sort_unstable();
    assert_eq!(members, expected, "all but the one that was handled");
    world.settle().await;
    assert_eq!(world.states(&drawn, &names[1..]).await, vec![Waiting; 39]);
    for name in &names[1..] {
        world.run(&drawn, name).await;
    }
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn handled_failures_are_left_alone(world: &World) {
    let drawing = world.draw(&["a", "b", "d"], &["a>d", "b>d"]).join("d", any_of());
    let drawn = world.submit_flow(drawing).await;
    world.break_down(&drawn, "a").await;
    world.run(&drawn, "b").await;
    world.run(&drawn, "d").await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
    assert_eq!(world.act(replay_flow(&drawn)).await, FlowReplayed::AlreadySatisfied);
    assert_eq!(world.states(&drawn, &["a"]).await, [Failed]);
}

pub async fn listed_members_are_replayed(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &[])).await;
    world.run(&drawn, "a").await;
    world.break_down(&drawn, "b").await;
    let members = Some(vec![drawn.id("a")]);
    world.act(ReplayFlow { members, ..replay_flow(&drawn) }).await;
    assert_eq!(world.states(&drawn, &["a", "b"]).await, [Waiting, Failed]);
    let stranger = world.submit(world.work()).await;
    world.run(&drawn, "a").await;
    let members = Some(vec![stranger]);
    let refused = world.backend.call(ReplayFlow { members, ..replay_flow(&drawn) }).await;
    assert_eq!(code(refused), Code::ExecutionNotInFlow);
}

pub async fn a_wide_replay_is_carried_on(world: &World) {
    let drawn = world.submit_flow(world.draw_out(150)).await;
    world.break_down(&drawn, "x").await;
    assert_eq!(world.flow(drawn.flow_id).await.counts.of(Skipped), 150);
    world.act(replay(&drawn, "x")).await;
    // It may end before all edges have been taken back.
    let task = world.take(&drawn, "x").await;
    world.complete(&task).await.unwrap();
    world.settle().await;
    assert_eq!(world.flow(drawn.flow_id).await.counts.of(Waiting), 150);
}

/// `x`, members behind it, and `j` behind them all and behind `v`.
fn wide(world: &World, count: usize) -> Drawing {
    let names: Vec<String> = (0..count).map(|n| format!("m{n}")).collect();
    let edges = names.iter().flat_map(|name| [format!("x>{name}"), format!("{name}>j")]);
    let edges: Vec<String> = edges.chain(["v>j".to_owned()]).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).chain(["x", "v", "j"]).collect();
    world.draw(&all, &edges.iter().map(String::as_str).collect::<Vec<_>>())
}

async fn run_all(world: &World) {
    loop {
        let tasks = world.claim(100).await;
        if tasks.is_empty() {
            return;
        }
        for task in tasks {
            world.complete(&task).await.expect("completed");
        }
        world.settle().await;
    }
}

pub async fn a_join_behind_a_wide_replay_runs_again(world: &World) {
    let drawn = world.submit_flow(wide(world, 70)).await;
    run_all(world).await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
    world.act(Replay { descendants: true, ..replay(&drawn, "x") }).await;
    world.settle().await;
    assert_eq!(world.states(&drawn, &["x", "j"]).await, [Waiting, WaitingChildren]);
    run_all(world).await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn a_replay_before_all_edges_have_resolved_takes_back_those_that_did(world: &World) {
    let mut drawing = world.draw_out(130);
    drawing = drawing.member("y").more_edges(&["y>m0", "y>m129"]);
    let drawn = world.submit_flow(drawing).await;
    world.run(&drawn, "y").await;
    let task = world.take(&drawn, "x").await;
    world.complete(&task).await.expect("completed");
    world.act(replay(&drawn, "x")).await;
    world.settle().await;
    world.run(&drawn, "x").await;
    assert_eq!(world.states(&drawn, &["m0", "m70", "m129"]).await, [Waiting; 3]);
}

pub async fn edges_of_two_generations_resolve_once(world: &World) {
    let drawing = world.draw_out(130).member("y").more_edges(&["y>m0", "y>m129"]);
    let drawn = world.submit_flow(drawing).await;
    for _ in 0..2 {
        let task = world.take(&drawn, "x").await;
        world.complete(&task).await.expect("completed");
        if world.public_state(drawn.id("m1")).await == Waiting {
            world.act(replay(&drawn, "x")).await;
        }
    }
    world.settle().await;
    assert_eq!(world.states(&drawn, &["m0", "m129"]).await, [WaitingChildren; 2]);
    run_all(world).await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn an_edge_that_is_applied_while_others_are_taken_back_counts_once(world: &World) {
    let drawn = world.submit_flow(world.draw_out(130).member("y").member("z")).await;
    let staged = world.act(StageEdge { apply: false, ..stage(&drawn, "x>z") }).await;
    world.run(&drawn, "x").await;
    world.act(replay(&drawn, "x")).await;
    let (flow_id, edge_id) = (drawn.flow_id, staged.edge_id);
    world.act(ApplyEdge { flow_id, edge_id }).await;
    world.act(StageEdge { apply: true, ..stage(&drawn, "x>y") }).await;
    world.settle().await;
    assert_eq!(world.states(&drawn, &["y", "z"]).await, [WaitingChildren; 2]);
    world.run(&drawn, "x").await;
    assert_eq!(world.states(&drawn, &["m129", "y", "z"]).await, [Waiting; 3]);
}

pub async fn what_comes_back_has_its_time_and_its_hold(world: &World) {
    let deadline = r#"{"timeout_policy":{"execution_deadline_ms":3000}}"#;
    let drawing = world.draw(&["a", "b", "c"], &["a>b", "a>c"]);
    let drawing = drawing.with("b", |submit| submit.policy = policy(deadline));
    let drawn = world.submit_flow(drawing).await;
    world.act(hold(drawn.id("c"))).await;
    world.break_down(&drawn, "a").await;
    world.pass(10_000).await;
    world.act(replay_flow(&drawn)).await;
    world.pass(2_000).await;
    assert_eq!(world.states(&drawn, &["b"]).await, [WaitingChildren], "its time began anew");
    world.run(&drawn, "a").await;
    assert_eq!(world.states(&drawn, &["b"]).await, [Waiting]);
    let held = world.describe(drawn.id("c")).await.state;
    assert_eq!(held.blocking_reason, BlockingReason::PausedByOperator);
    world.pass(2_000).await;
    assert_eq!(world.states(&drawn, &["b"]).await, [PublicState::Expired]);
}

pub async fn a_parent_waits_for_a_child_that_comes_back(world: &World) {
    let drawn = world.submit_flow(world.draw(&["x", "d", "e", "p"], &["x>d"])).await;
    let task = world.take(&drawn, "p").await;
    let children = vec![drawn.id("d"), drawn.id("e")];
    world.act(wait_children(&task, Some(children))).await;
    world.break_down(&drawn, "x").await;
    assert_eq!(world.states(&drawn, &["d", "p"]).await, [Skipped, WaitingChildren]);
    world.act(replay(&drawn, "x")).await;
    world.run(&drawn, "e").await;
    assert_eq!(world.states(&drawn, &["p"]).await, [WaitingChildren], "one has not ended");
    world.run(&drawn, "x").await;
    world.run(&drawn, "d").await;
    assert_eq!(world.states(&drawn, &["p"]).await, [PublicState::Resumable]);
}

pub async fn a_failed_quorum_is_replayed_with_its_siblings(world: &World) {
    let drawing = world.draw(&["x", "y", "z", "d"], &["x>d", "y>d", "z>d"]);
    let drawn = world.submit_flow(drawing.join("d", quorum(3))).await;
    world.break_down(&drawn, "x").await;
    let cancelled = PublicState::Cancelled;
    assert_eq!(world.states(&drawn, &["y", "z", "d"]).await, [cancelled, cancelled, Skipped]);
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Failed);
    world.act(replay_flow(&drawn)).await;
    world.settle().await;
    assert_eq!(world.states(&drawn, &["x", "y", "z"]).await, [Waiting; 3]);
    run_all(world).await;
    assert_eq!(world.states(&drawn, &["d"]).await, [Completed]);
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn a_replay_ends_the_cancels_of_a_decision(world: &World) {
    let drawn = world.submit_flow(world.draw_in(3).join("x", any_of())).await;
    let task = world.take(&drawn, "m0").await;
    world.complete(&task).await.expect("completed");
    // The group has decided, and nobody has been cancelled yet.
    world.act(replay(&drawn, "m0")).await;
    world.settle().await;
    assert_eq!(world.states(&drawn, &["m0", "m1", "m2"]).await, [Waiting; 3]);
}

pub async fn what_comes_back_gets_the_payload_that_came_meanwhile(world: &World) {
    let drawing = world.draw(&["a", "b", "c"], &["a>b", "c>b"]);
    let passing = |edge: &mut GraphEdge| edge.data_passing_ref = Some("payload".to_owned());
    let drawn = world.submit_flow(drawing.edge("a>b", passing)).await;
    world.break_down(&drawn, "c").await;
    assert_eq!(world.states(&drawn, &["b"]).await, [Skipped]);
    world.run(&drawn, "a").await;
    world.act(replay(&drawn, "c")).await;
    world.run(&drawn, "c").await;
    let task = world.take(&drawn, "b").await;
    assert_eq!(task.payload, "result of a");
}

pub async fn a_group_that_a_replay_finds_decided_cancels_the_rest(world: &World) {
    let drawn = world.submit_flow(world.draw_in(2).join("x", any_of())).await;
    world.act(cancel(drawn.id("x"))).await;
    world.run(&drawn, "m0").await;
    assert_eq!(world.states(&drawn, &["m1"]).await, [Waiting]);
    world.act(replay(&drawn, "x")).await;
    world.settle().await;
    assert_eq!(world.states(&drawn, &["m1", "x"]).await, [PublicState::Cancelled, Waiting]);
}

pub async fn inputs_tell_results_of_the_outcome_they_name(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &["a>b"])).await;
    world.run(&drawn, "a").await;
    world.break_down(&drawn, "b").await;
    world.act(replay(&drawn, "a")).await;
    world.break_down(&drawn, "a").await;
    world.act(replay(&drawn, "b")).await;
    let task = world.take(&drawn, "b").await;
    let input = &task.extras.inputs["a"];
    assert_eq!((input.outcome, input.inline), (Outcome::Success, false), "it is to be fetched");
    let drawing = world.draw(&["c", "p"], &["c>p"]).kind("c>p", EdgeKind::Always);
    let drawn = world.submit_flow(drawing).await;
    world.break_down(&drawn, "c").await;
    let task = world.take(&drawn, "p").await;
    assert_eq!(task.extras.inputs["c"].outcome, Outcome::Failed);
    world.act(replay(&drawn, "c")).await;
    world.act(wait_children(&task, Some(vec![drawn.id("c")]))).await;
    world.run(&drawn, "c").await;
    let task = world.take(&drawn, "p").await;
    let input = &task.extras.inputs["c"];
    assert_eq!(input.outcome, Outcome::Success, "as the wait has found it");
    assert_eq!(input.result, Some(Content::new("result of c")));
}
