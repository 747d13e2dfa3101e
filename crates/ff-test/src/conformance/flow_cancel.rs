//! Cancelling a flow.

use std::time::Duration;

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::id::Namespace;
use ff_core::limits;
use ff_core::operation::{AddToFlow, InFlow, Replay, ReplayFlow, Submit};
use ff_core::read::{CancelBacklog, Filter, ListCancelBacklog, Search};
use ff_core::state::{BlockingReason, CancelPolicy, EligibilityState, FlowState, PublicState};

use crate::grants::{grant_and_claim, issue_grant};
use crate::world::{PATIENCE, World, code, complete, delay, fail, revoke};

use PublicState::{Active, Cancelled, Completed, WaitingChildren};

pub async fn cancel_all_ends_every_member(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c", "d"], &["a>b", "c>d"])).await;
    let running = world.take(&drawn, "a").await;
    world.run(&drawn, "c").await;
    let reply = world.act(drawn.cancel(CancelPolicy::CancelAll)).await;
    assert_eq!((reply.scheduled, reply.replayed), (0, false));
    let states = world.states(&drawn, &["a", "b", "c", "d"]).await;
    assert_eq!(states, [Cancelled, Cancelled, Completed, Cancelled]);
    let record = world.describe(drawn.id("b")).await;
    assert_eq!(record.cancellation_reason.as_deref(), Some("not wanted"));
    assert_eq!(record.cancelled_by.as_deref(), Some("flow_cascade"));
    world.refuses(complete(&running), Code::ExecutionNotActive).await;
    let found = world.flow(drawn.flow_id).await;
    assert_eq!(found.state, FlowState::Cancelled);
    assert_eq!(
        found.cancellation.map(|c| (c.policy, c.reason)),
        Some(("cancel_all", "not wanted".into()))
    );
    let history = world.flow_history(drawn.flow_id).await;
    assert_eq!(history.iter().filter(|kind| **kind == EventKind::FlowCancelled).count(), 1);
}

pub async fn a_cancel_may_wait_until_all_have_ended(world: &World) {
    let drawn = world.submit_flow(world.draw_out(200)).await;
    world.run(&drawn, "x").await;
    let cancel = drawn.cancel(CancelPolicy::CancelAll);
    let reply = world.backend.cancel_flow(cancel.clone(), PATIENCE).await.expect("cancelled");
    assert_eq!(reply.scheduled, 0);
    let counts = world.flow(drawn.flow_id).await.counts;
    assert_eq!(counts.of(Cancelled), 200, "{counts:?}");
    let again = world.backend.cancel_flow(cancel, PATIENCE).await.expect("the first answer");
    assert!(again.replayed);
    let drawn = world.submit_flow(world.draw_out(200)).await;
    let in_no_time = Duration::from_nanos(1);
    let late = world.backend.cancel_flow(drawn.cancel(CancelPolicy::CancelAll), in_no_time).await;
    assert_eq!(code(late), Code::Timeout);
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Cancelled, "it stands");
    world.settle().await;
    assert_eq!(world.flow(drawn.flow_id).await.counts.of(Cancelled), 201);
}

pub async fn cancel_pending_lets_running_members_end(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>b"])).await;
    let task = world.take(&drawn, "a").await;
    world.act(drawn.cancel(CancelPolicy::CancelPending)).await;
    assert_eq!(world.states(&drawn, &["a", "b", "c"]).await, [Active, Cancelled, Cancelled]);
    world.complete(&task).await.unwrap();
    assert_eq!(world.states(&drawn, &["a", "b"]).await, [Completed, Cancelled]);
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Cancelled);
}

pub async fn a_wait_that_running_members_outlast_is_a_timeout(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>b"])).await;
    let task = world.take(&drawn, "a").await;
    let cancel = drawn.cancel(CancelPolicy::CancelPending);
    let short = Duration::from_millis(20);
    assert_eq!(code(world.backend.cancel_flow(cancel.clone(), short).await), Code::Timeout);
    assert_eq!(world.states(&drawn, &["a", "b", "c"]).await, [Active, Cancelled, Cancelled]);
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Cancelled, "it stands");
    let again = world.backend.cancel_flow(cancel.clone(), Duration::ZERO).await;
    let again = again.expect("nobody waited");
    assert_eq!((again.replayed, again.scheduled), (true, 0), "nobody is to be cancelled");
    let waiting = world.backend.cancel_flow(cancel, PATIENCE);
    let (cancelled, completed) = tokio::join!(waiting, world.complete(&task));
    completed.expect("it runs on");
    let cancelled = cancelled.expect("its end is waited for");
    assert_eq!(cancelled.scheduled, 0);
}

pub async fn flows_whose_cancel_is_carried_on_are_listed(world: &World) {
    let backlog = async || {
        let namespace = Namespace::default();
        let list = ListCancelBacklog { namespace, cursor: None, limit: 10 };
        world.backend.ask(list).await.expect("a page").items
    };
    let names: Vec<String> = (0..200).map(|n| format!("m{n}")).collect();
    let members: Vec<&str> = names.iter().map(String::as_str).collect();
    let drawn = world.submit_flow(world.draw(&members, &[])).await;
    assert_eq!(backlog().await, []);
    let reply = world.act(drawn.cancel(CancelPolicy::CancelAll)).await;
    let (flow_id, members) = (drawn.flow_id, reply.scheduled);
    assert_eq!(backlog().await, [CancelBacklog { flow_id, members }]);
    world.settle().await;
    assert_eq!(backlog().await, []);
}

pub async fn a_lease_that_ends_without_an_outcome_is_cancelled_in_that_step(world: &World) {
    let names = ["a", "b", "c", "d", "e", "f"];
    let drawing = world.draw(&names, &[]).with("a", |submit| submit.policy = Default::default());
    let drawn = world.submit_flow(drawing).await;
    let mut tasks = Vec::new();
    for name in names {
        tasks.push(world.take(&drawn, name).await);
    }
    world.act(drawn.cancel(CancelPolicy::CancelPending)).await;
    world.act(fail(&tasks[0], "transient")).await;
    world.act(delay(&tasks[1], 1_000)).await;
    world.act(revoke(drawn.id("c"))).await;
    let suspend = crate::waits::suspend(&tasks[3], crate::waits::wildcard("go"));
    assert_eq!(code(world.backend.call(suspend).await), Code::ExecutionNotActive);
    world.act(crate::graphs::wait_children(&tasks[5], None)).await;
    assert_eq!(
        world.states(&drawn, &names).await,
        [Cancelled, Cancelled, Cancelled, Cancelled, Active, Cancelled]
    );
    world.pass(ff_core::limits::LEASE_TTL_MS.cast_signed()).await;
    assert_eq!(world.states(&drawn, &["e"]).await, [Cancelled]);
}

pub async fn flow_only_touches_no_member(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &["a>b"])).await;
    world.act(drawn.cancel(CancelPolicy::FlowOnly)).await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Cancelled);
    assert_eq!(world.states(&drawn, &["b"]).await, [WaitingChildren]);
    world.run(&drawn, "a").await;
    world.run(&drawn, "b").await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Cancelled);
}

pub async fn nothing_is_added_to_a_cancelled_flow(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &[])).await;
    world.act(drawn.cancel(CancelPolicy::FlowOnly)).await;
    let within = Some(InFlow { flow_id: drawn.flow_id, name: None });
    let submit = Submit { within, ..world.member_of(drawn.flow_id) };
    world.refuses(submit, Code::FlowAlreadyTerminal).await;
    let id = world.submit(world.member_of(drawn.flow_id)).await;
    let add = AddToFlow { flow_id: drawn.flow_id, execution_id: id, name: None };
    world.refuses(add, Code::FlowAlreadyTerminal).await;
    let edge = crate::graphs::stage(&drawn, "a>b");
    assert_eq!(code(world.backend.call(edge).await), Code::FlowAlreadyTerminal);
}

pub async fn a_cancel_again_answers_as_the_first(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a"], &[])).await;
    world.act(drawn.cancel(CancelPolicy::FlowOnly)).await;
    let again = world.act(drawn.cancel(CancelPolicy::CancelAll)).await;
    assert_eq!((again.policy, again.replayed), (CancelPolicy::FlowOnly, true));
    assert_eq!((again.reason.as_str(), again.scheduled), ("not wanted", 0));
}

pub async fn an_ended_flow_is_not_cancelled(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a"], &[])).await;
    world.run(&drawn, "a").await;
    let cancel = drawn.cancel(CancelPolicy::CancelAll);
    assert_eq!(code(world.backend.call(cancel).await), Code::FlowAlreadyTerminal);
}

pub async fn no_member_is_claimed_after_the_accepting_step(world: &World) {
    let names: Vec<String> = (0..200).map(|n| format!("m{n}")).collect();
    let members: Vec<&str> = names.iter().map(String::as_str).collect();
    let drawn = world.submit_flow(world.draw(&members, &[])).await;
    let reply = world.act(drawn.cancel(CancelPolicy::CancelAll)).await;
    assert!(reply.scheduled > 0, "{reply:?}");
    let other = world.submit(world.work()).await;
    assert_eq!(world.claim_ids(1000).await, [other]);
    let late = drawn.id("m199");
    assert_eq!(code(world.backend.call(issue_grant(late)).await), Code::ExecutionNotEligible);
    assert_eq!(
        code(world.backend.call(grant_and_claim(drawn.id("m198"))).await),
        Code::ExecutionNotLeaseable
    );
    world.settle().await;
    assert_eq!(world.flow(drawn.flow_id).await.counts.of(Cancelled), 200);
}

pub async fn a_member_that_awaits_its_cancel_says_so(world: &World) {
    let drawn = world.submit_flow(world.draw_out(200)).await;
    world.run(&drawn, "x").await;
    let reply = world.act(drawn.cancel(CancelPolicy::CancelAll)).await;
    assert!(reply.scheduled > 0, "all were cancelled in one step");
    let (filter, limit) = (Filter::default(), limits::PAGE_MAX);
    let found = world.backend.ask(Search { filter, cursor: None, limit }).await.expect("a page");
    let waiting: Vec<_> = found.items.iter().filter(|record| !record.has_ended()).collect();
    assert!(!waiting.is_empty());
    for record in &waiting {
        let state = &record.state;
        assert_eq!(state.eligibility_state, EligibilityState::BlockedByOperator);
        assert_eq!(state.blocking_reason, BlockingReason::PausedByFlowCancel);
        assert_eq!(state.public_state, PublicState::Waiting);
    }
    let described = world.describe(waiting[0].execution_id).await;
    assert_eq!(described.state, waiting[0].state, "a list says the same");
    world.settle().await;
    let described = world.describe(described.execution_id).await;
    assert_eq!(described.state.blocking_reason, BlockingReason::None);
    assert_eq!(described.state.public_state, Cancelled);
}

pub async fn a_graph_that_is_still_unfolding_is_cancelled_whole(world: &World) {
    let names: Vec<String> = (0..150).map(|n| format!("m{n}")).collect();
    let members: Vec<&str> = names.iter().map(String::as_str).collect();
    let edges: Vec<String> = (1..150).map(|n| format!("m0>m{n}")).collect();
    let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
    let drawing = world.draw(&members, &edges);
    let flow_id = drawing.submit.flow.flow_id;
    let reply = world.act(drawing.submit).await;
    let reason = "too late".to_owned();
    let policy = CancelPolicy::CancelAll;
    world.act(ff_core::operation::CancelFlow { flow_id, policy, reason }).await;
    world.settle().await;
    assert_eq!(reply.members.len(), 150);
    assert_eq!(world.flow(flow_id).await.counts.of(Cancelled), 150);
}

pub async fn nothing_in_a_cancelled_flow_is_replayed(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a"], &[])).await;
    world.act(drawn.cancel(CancelPolicy::CancelAll)).await;
    let replay = Replay { execution_id: drawn.id("a"), descendants: false };
    world.refuses(replay, Code::ReplayNotAllowed).await;
    let replay = ReplayFlow { flow_id: drawn.flow_id, members: None };
    assert_eq!(code(world.backend.call(replay).await), Code::ReplayNotAllowed);
}
