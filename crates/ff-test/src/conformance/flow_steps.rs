//! A graph that is built step by step, questions about it, and its removal.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::id::{EdgeId, FlowId, IdempotencyKey};
use ff_core::limits;
use ff_core::operation::{
    AddToFlow, AddedToFlow, ApplyEdge, CancelFlow, CascadeCompletion, Cascaded, Command,
    CreateFlow, Delete, DeleteFlow, EdgeApplied, EdgeResolution, EdgeStaged, FlowCreated, GroupSet,
    InFlow, ReplayFlow, ResolveEdge, SetFlowTags, SetGroupPolicy, StageEdge, Submit, Submitted,
    Tick,
};
use ff_core::read::{
    DescribeEdge, Eligibility, EvaluateEligibility, ListFlowEdges, ListFlowMembers,
};
use ff_core::state::{CancelPolicy, EdgeKind, EdgeState, FlowState, Join, Outcome, PublicState};

use crate::grants::grant_and_claim;
use crate::graphs::{FLOW_WORK, any_of, create_flow, let_run, name, quorum, stage, stage_between};
use crate::world::{World, code, complete, fail, tags};

use PublicState::{Skipped, Waiting, WaitingChildren};

pub async fn a_flow_is_made_once(world: &World) {
    let flow = create_flow();
    assert_eq!(world.act(flow.clone()).await, FlowCreated::Created);
    assert_eq!(world.act(flow).await, FlowCreated::AlreadySatisfied);
}

pub async fn executions_become_members(world: &World) {
    let flow = create_flow();
    let flow_id = flow.flow_id;
    world.act(flow).await;
    let id = world.submit(world.member_of(flow_id)).await;
    let add = |execution_id, name| AddToFlow { flow_id, execution_id, name };
    let added = world.act(add(id, Some(name("a")))).await;
    assert_eq!(added, AddedToFlow::Added { node_count: 1 });
    let again = world.act(add(id, None)).await;
    assert_eq!(again, AddedToFlow::AlreadyMember { node_count: 1 });
    let within = Some(InFlow { flow_id, name: Some(name("a")) });
    let taken = Submit { within, ..world.member_of(flow_id) };
    world.refuses(taken, Code::InvalidInput).await;
    let within = Some(InFlow { flow_id, name: Some(name("b")) });
    world.submit(Submit { within, ..world.member_of(flow_id) }).await;
    assert_eq!(world.flow(flow_id).await.node_count, 2);
    let nobody = world.member_of(flow_id).execution_id;
    world.refuses(add(nobody, None), Code::ExecutionNotFound).await;
}

pub async fn an_idempotency_key_of_a_member_is_one_within_its_flow(world: &World) {
    let (first, second) = (create_flow(), create_flow());
    let keyed = |flow_id| Submit {
        within: Some(InFlow { flow_id, name: None }),
        idempotency_key: IdempotencyKey::new("once").ok(),
        ..world.member_of(flow_id)
    };
    world.act(first.clone()).await;
    world.act(second.clone()).await;
    let id = world.submit(keyed(first.flow_id)).await;
    let again = world.act(keyed(first.flow_id)).await;
    assert!(matches!(again, Submitted::Duplicate { execution_id, .. } if execution_id == id));
    assert_ne!(world.submit(keyed(second.flow_id)).await, id);
    assert_eq!(world.flow(first.flow_id).await.node_count, 1);
}

pub async fn a_flow_grows_one_by_one(world: &World) {
    let flow = create_flow();
    let flow_id = flow.flow_id;
    world.act(flow).await;
    let mut expected = Vec::new();
    for n in 0..80 {
        let within = Some(InFlow { flow_id, name: Some(name(&format!("a-rather-long-name-{n}"))) });
        expected.push(world.submit(Submit { within, ..world.member_of(flow_id) }).await);
    }
    let question = ListFlowMembers { flow_id, from: 0, limit: 100 };
    let listed = world.backend.ask(question).await.unwrap().items;
    let listed: Vec<_> = listed.iter().map(|member| member.execution_id).collect();
    assert_eq!(listed, expected);
}

pub async fn a_member_belongs_to_one_flow(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a"], &[])).await;
    let partitions = world.backend.settings().partitions;
    let id = drawn.id("a");
    let flow_id = loop {
        let flow_id = FlowId::mint();
        if flow_id.partition(&partitions) == id.partition() {
            break flow_id;
        }
    };
    world.act(CreateFlow { flow_id, ..create_flow() }).await;
    let add = AddToFlow { flow_id, execution_id: id, name: None };
    world.refuses(add, Code::AlreadyMemberOfDifferentFlow).await;
}

pub async fn an_edge_counts_once_it_is_applied(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &[])).await;
    let revision = world.flow(drawn.flow_id).await.graph_revision;
    let staged = world.act(stage(&drawn, "a>b")).await;
    assert_eq!(staged.graph_revision, revision + 1);
    assert_eq!(world.states(&drawn, &["b"]).await, [Waiting]);
    let apply = || ApplyEdge { flow_id: drawn.flow_id, edge_id: staged.edge_id };
    assert_eq!(world.act(apply()).await, EdgeApplied::Applied { unresolved: 1 });
    assert_eq!(world.act(apply()).await, EdgeApplied::AlreadyApplied);
    assert_eq!(world.states(&drawn, &["b"]).await, [WaitingChildren]);
    world.run(&drawn, "a").await;
    assert_eq!(world.states(&drawn, &["b"]).await, [Waiting]);
}

pub async fn an_edge_from_what_has_ended_resolves_when_it_is_applied(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c", "d"], &["a>b"])).await;
    world.run(&drawn, "a").await;
    world.break_down(&drawn, "d").await;
    let first = world.act(stage(&drawn, "a>c")).await;
    let apply = |edge_id| ApplyEdge { flow_id: drawn.flow_id, edge_id };
    assert_eq!(world.act(apply(first.edge_id)).await, EdgeApplied::Applied { unresolved: 0 });
    assert_eq!(world.states(&drawn, &["c"]).await, [Waiting]);
    let second = world.act(stage(&drawn, "d>b")).await;
    // The group of b has decided with its first edge.
    assert_eq!(code(world.backend.call(apply(second.edge_id)).await), Code::EdgeGroupFixed);
    world.run(&drawn, "c").await;
    let third = world.act(stage(&drawn, "d>c")).await;
    assert_eq!(code(world.backend.call(apply(third.edge_id)).await), Code::Terminal);
}

pub async fn an_edge_is_staged_and_applied_in_one_step(world: &World) {
    let names = ["a", "b", "c", "d", "e", "f"];
    let drawn = world.submit_flow(world.draw(&names, &[])).await;
    world.run(&drawn, "a").await;
    world.break_down(&drawn, "b").await;
    let revision = world.flow(drawn.flow_id).await.graph_revision;
    // What has ended resolves its edge at once; who waits for an end that cannot come is skipped.
    let cases = [("a", "d", 0, Waiting), ("c", "e", 1, WaitingChildren), ("b", "f", 0, Skipped)];
    for (number, (from, to, unresolved, expected)) in (1..).zip(cases) {
        let stage = StageEdge { apply: true, ..stage(&drawn, &format!("{from}>{to}")) };
        let (flow_id, edge_id) = (drawn.flow_id, stage.edge_id);
        let (graph_revision, unresolved) = (revision + number, Some(unresolved));
        let staged = EdgeStaged { edge_id, graph_revision, unresolved };
        assert_eq!(world.act(stage).await, staged, "{to}");
        assert_eq!(world.states(&drawn, &[to]).await, [expected], "{to}");
        let again = world.act(ApplyEdge { flow_id, edge_id }).await;
        assert_eq!(again, EdgeApplied::AlreadyApplied, "{to}");
    }
    world.run(&drawn, "c").await;
    assert_eq!(world.states(&drawn, &["e"]).await, [Waiting]);
    assert_eq!(world.act(stage(&drawn, "d>c")).await.unresolved, None, "it was not applied");
}

pub async fn an_edge_that_cannot_be_applied_is_not_staged(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c", "d"], &["a>b"])).await;
    world.run(&drawn, "a").await;
    world.run(&drawn, "c").await;
    let (before, log) = (world.flow(drawn.flow_id).await, world.log().await.len());
    let edge = |text| StageEdge { apply: true, ..stage(&drawn, text) };
    for (text, expected) in [("d>b", Code::EdgeGroupFixed), ("d>c", Code::Terminal)] {
        let refused = edge(text);
        let apply = ApplyEdge { flow_id: drawn.flow_id, edge_id: refused.edge_id };
        assert_eq!(code(world.backend.call(refused).await), expected, "{text}");
        assert_eq!(code(world.backend.call(apply).await), Code::InvalidDependency, "{text}");
    }
    assert_eq!(world.flow(drawn.flow_id).await, before);
    assert_eq!(world.log().await.len(), log, "nothing is told");
    world.act(edge("b>d")).await;
    assert_eq!(world.flow(drawn.flow_id).await.edge_count, 2);
}

pub async fn an_impossible_edge_skips_when_it_is_applied(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &[])).await;
    world.break_down(&drawn, "a").await;
    let edge_id = world.act(stage(&drawn, "a>b")).await.edge_id;
    world.act(ApplyEdge { flow_id: drawn.flow_id, edge_id }).await;
    assert_eq!(world.states(&drawn, &["b"]).await, [Skipped]);
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Failed);
}

pub async fn an_edge_that_cannot_be_is_refused(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>b", "b>c"])).await;
    let stranger = world.submit(world.work()).await;
    let between = |from, to| stage_between(drawn.flow_id, from, to);
    let edge = |text| stage(&drawn, text);
    let unknown = StageEdge { flow_id: FlowId::mint(), ..edge("a>c") };
    let stale = StageEdge { expected_graph_revision: Some(77), ..edge("a>c") };
    let mut cases = vec![
        (edge("a>a"), Code::SelfReferencingEdge),
        (unknown, Code::FlowNotFound),
        (stale, Code::StaleGraphRevision),
        (between(drawn.id("a"), stranger), Code::ExecutionNotInFlow),
        (between(stranger, drawn.id("a")), Code::ExecutionNotInFlow),
        (edge("c>a"), Code::CycleDetected),
        (edge("b>a"), Code::CycleDetected),
        (edge("a>b"), Code::DependencyAlreadyExists),
    ];
    let known = world.act(edge("a>c")).await.edge_id;
    cases.push((StageEdge { edge_id: known, ..edge("b>c") }, Code::DependencyAlreadyExists));
    for (stage, expected) in cases {
        assert_eq!(code(world.backend.call(stage.clone()).await), expected, "{stage:?}");
    }
    assert_eq!(world.flow(drawn.flow_id).await.edge_count, 3);
    let apply = ApplyEdge { flow_id: drawn.flow_id, edge_id: EdgeId::mint() };
    assert_eq!(code(world.backend.call(apply).await), Code::InvalidDependency);
}

pub async fn one_edge_passes_a_payload(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &[])).await;
    let passing = |text| {
        let mut stage = stage(&drawn, text);
        stage.edge.data_passing_ref = Some("payload".to_owned());
        stage
    };
    world.act(passing("a>c")).await;
    assert_eq!(code(world.backend.call(passing("b>c")).await), Code::InvalidDependency);
}

pub async fn a_group_policy_holds_until_an_edge_has_resolved(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>c", "b>c"])).await;
    let set = |join| SetGroupPolicy { flow_id: drawn.flow_id, downstream: drawn.id("c"), join };
    assert_eq!(world.act(set(Join::AllOf)).await, GroupSet::AlreadySet);
    assert_eq!(world.act(set(quorum(2))).await, GroupSet::Set);
    assert_eq!(world.act(set(any_of())).await, GroupSet::Set);
    world.refuses(set(quorum(0)), Code::InvalidInput).await;
    world.run(&drawn, "a").await;
    assert_eq!(world.states(&drawn, &["c"]).await, [Waiting]);
    world.refuses(set(Join::AllOf), Code::EdgeGroupFixed).await;
    let stranger = world.submit(world.work()).await;
    let set = SetGroupPolicy { downstream: stranger, ..set(Join::AllOf) };
    world.refuses(set, Code::ExecutionNotInFlow).await;
}

pub async fn an_edge_is_resolved_once(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>c", "b>c"])).await;
    let resolve = |n: usize, outcome| ResolveEdge {
        flow_id: drawn.flow_id,
        edge_id: drawn.reply.edges[n],
        outcome,
    };
    let pending = world.act(resolve(0, Outcome::Success)).await;
    assert_eq!(pending, EdgeResolution::Pending);
    world.run(&drawn, "a").await;
    assert_eq!(world.act(resolve(0, Outcome::Success)).await, EdgeResolution::AlreadyResolved);
    world.run(&drawn, "b").await;
    assert_eq!(world.act(resolve(0, Outcome::Success)).await, EdgeResolution::AlreadyFired);
    assert_eq!(world.states(&drawn, &["c"]).await, [Waiting]);
}

pub async fn an_edge_that_is_still_to_be_resolved_can_be(world: &World) {
    let drawn = world.submit_flow(world.draw_out(100)).await;
    let task = world.take(&drawn, "x").await;
    world.act(complete(&task)).await;
    let edge_id = drawn.reply.edges[90];
    assert_eq!(world.states(&drawn, &["m90"]).await, [WaitingChildren]);
    let outcome = Outcome::Success;
    let resolve = ResolveEdge { flow_id: drawn.flow_id, edge_id, outcome };
    assert_eq!(world.act(resolve).await, EdgeResolution::Satisfied);
    assert_eq!(world.states(&drawn, &["m90", "m91"]).await, [Waiting, WaitingChildren]);
    let more = world.act(CascadeCompletion { flow_id: drawn.flow_id }).await;
    assert_eq!(more, Cascaded { more: false });
    assert_eq!(world.claimable(&drawn).await.len(), 100);
}

pub async fn members_and_edges_are_shown(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>b", "a>c", "b>c"])).await;
    world.break_down(&drawn, "a").await;
    let list = ListFlowMembers { flow_id: drawn.flow_id, from: 0, limit: 2 };
    let page = world.backend.ask(list.clone()).await.unwrap();
    let names: Vec<_> = page.items.iter().map(|member| member.name.as_deref()).collect();
    assert_eq!((names, page.next), (vec![Some("a"), Some("b")], Some(2)));
    assert_eq!(page.items[1].public_state, Skipped);
    let page = world.backend.ask(ListFlowMembers { from: 2, ..list }).await.unwrap();
    assert_eq!((page.items.len(), page.next), (1, None));
    let mut edges = Vec::new();
    let mut from = Some((0, 0));
    while let Some(place) = from {
        let list = ListFlowEdges { flow_id: drawn.flow_id, from: place, limit: 2 };
        let page = world.backend.ask(list).await.unwrap();
        edges.extend(page.items);
        from = page.next;
    }
    let shown: Vec<_> = edges.iter().map(|e| (e.upstream, e.downstream, e.state)).collect();
    let [a, b, c] = ["a", "b", "c"].map(|name| drawn.id(name));
    let no = EdgeState::Impossible;
    assert_eq!(shown, [(a, b, no), (a, c, no), (b, c, no)]);
    for edge in &edges {
        let describe = DescribeEdge { flow_id: drawn.flow_id, edge_id: edge.edge_id };
        assert_eq!(world.backend.ask(describe).await.as_ref(), Ok(edge));
    }
    let describe = DescribeEdge { flow_id: drawn.flow_id, edge_id: EdgeId::mint() };
    assert_eq!(code(world.backend.ask(describe).await), Code::EdgeNotFound);
}

pub async fn eligibility_says_how_far_a_member_is(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>b"])).await;
    let evaluate = async |name: &str| {
        let (flow_id, execution_id) = (drawn.flow_id, drawn.id(name));
        world.backend.ask(EvaluateEligibility { flow_id, execution_id }).await.unwrap()
    };
    assert_eq!(evaluate("a").await, Eligibility::Eligible);
    assert_eq!(evaluate("b").await, Eligibility::BlockedByDependencies);
    let task = world.take(&drawn, "a").await;
    assert_eq!(evaluate("a").await, Eligibility::Owned);
    world.act(fail(&task, "permanent")).await;
    assert_eq!(evaluate("b").await, Eligibility::Terminal);
    world.act(crate::world::hold(drawn.id("c"))).await;
    assert_eq!(evaluate("c").await, Eligibility::NotRunnable);
    let execution_id = world.submit(world.work()).await;
    let stranger = EvaluateEligibility { flow_id: drawn.flow_id, execution_id };
    assert_eq!(world.backend.ask(stranger).await, Ok(Eligibility::NotFound));
}

pub async fn a_flow_goes_with_its_members(world: &World) {
    let names: Vec<String> = (0..100).map(|n| format!("m{n}")).collect();
    let members: Vec<&str> = names.iter().map(String::as_str).collect();
    let drawn = world.submit_flow(world.draw(&members, &[])).await;
    let delete = || DeleteFlow { flow_id: drawn.flow_id };
    assert_eq!(code(world.backend.call(delete()).await), Code::FlowNotTerminal);
    let one = Delete { execution_id: drawn.id("m0") };
    world.run(&drawn, "m0").await;
    world.refuses(one, Code::FlowNotTerminal).await;
    for task in world.claim(1000).await {
        world.complete(&task).await.unwrap();
    }
    world.act(delete()).await;
    assert_eq!(code(world.backend.call(delete()).await), Code::FlowNotFound);
    world.settle().await;
    assert_eq!(world.find_flow(drawn.flow_id).await, None);
    assert_eq!(world.find(drawn.id("m0")).await, None);
    assert_eq!(world.find(drawn.id("m99")).await, None);
}

pub async fn what_keeps_a_flow_from_being_removed_is_told(world: &World) {
    let refused = async |flow_id, word: &str| {
        let refused = world.backend.call(DeleteFlow { flow_id }).await.unwrap_err();
        assert_eq!(refused.code(), Code::FlowNotTerminal);
        assert!(refused.to_string().contains(word), "{word:?} is missing in: {refused}");
    };
    let empty = create_flow();
    let flow_id = empty.flow_id;
    world.act(empty).await;
    refused(flow_id, "cancel it first").await;
    // Members that one step ends, and more edges than it resolves.
    let names = |layer: &str| (0..20).map(|n| format!("{layer}{n}")).collect::<Vec<_>>();
    let (above, below) = (names("a"), names("b"));
    let edges: Vec<_> =
        above.iter().flat_map(|a| below.iter().map(move |b| format!("{a}>{b}"))).collect();
    let members: Vec<_> = above.iter().chain(&below).map(String::as_str).collect();
    let edges: Vec<_> = edges.iter().map(String::as_str).collect();
    let drawn = world.submit_flow(world.draw(&members, &edges)).await;
    refused(drawn.flow_id, "members have not ended").await;
    world.act(drawn.cancel(CancelPolicy::CancelAll)).await;
    refused(drawn.flow_id, "try again").await;
    world.settle().await;
    world.act(DeleteFlow { flow_id: drawn.flow_id }).await;
}

pub async fn an_ended_flow_is_kept_for_its_time(world: &World) {
    let mut drawing = world.draw(&["a"], &[]).with("a", |submit| {
        submit.policy = crate::world::policy(r#"{"retention":{"success_ms":10}}"#);
    });
    drawing.submit.flow.retention_ms = Some(1_000);
    let drawn = world.submit_flow(drawing).await;
    world.run(&drawn, "a").await;
    world.pass(999).await;
    assert!(world.find(drawn.id("a")).await.is_some(), "members live as long as their flow");
    world.pass(1).await;
    assert_eq!(world.find_flow(drawn.flow_id).await, None);
    assert_eq!(world.find(drawn.id("a")).await, None);
}

/// Every operation on a flow, by name; what it is given names a flow that is not.
pub fn on_no_flow(world: &World) -> Vec<(&'static str, Command)> {
    let flow_id = FlowId::mint();
    let [id, other] = [(); 2].map(|()| world.member_of(flow_id).execution_id);
    let (edge_id, outcome, reason) = (EdgeId::mint(), Outcome::Success, String::new());
    let (policy, join) = (CancelPolicy::CancelAll, Join::AllOf);
    vec![
        (
            "set_flow_tags",
            SetFlowTags { flow_id, tags: tags(&[("a.b", "c")]), expected_revision: None }.into(),
        ),
        ("stage_dependency_edge", stage_between(flow_id, id, other).into()),
        ("apply_dependency_to_child", ApplyEdge { flow_id, edge_id }.into()),
        ("resolve_dependency", ResolveEdge { flow_id, edge_id, outcome }.into()),
        ("cancel_flow", CancelFlow { flow_id, policy, reason }.into()),
        ("replay_flow", ReplayFlow { flow_id, members: None }.into()),
        ("delete_flow", DeleteFlow { flow_id }.into()),
        ("cascade_completion", CascadeCompletion { flow_id }.into()),
        ("add_execution_to_flow", AddToFlow { flow_id, execution_id: id, name: None }.into()),
        ("set_edge_group_policy", SetGroupPolicy { flow_id, downstream: id, join }.into()),
    ]
}

pub async fn there_is_no_such_flow(world: &World) {
    let flow_id = FlowId::mint();
    for (name, command) in on_no_flow(world) {
        assert_eq!(command.name(), name);
        assert_eq!(code(world.command(command).await), Code::FlowNotFound, "{name}");
    }
    let members = ListFlowMembers { flow_id, from: 0, limit: 1 };
    assert_eq!(code(world.backend.ask(members).await), Code::FlowNotFound);
    for bad in [0, limits::PAGE_MAX + 1] {
        let members = ListFlowMembers { flow_id, from: 0, limit: bad };
        assert_eq!(code(world.backend.ask(members).await), Code::InvalidInput);
    }
}

/// Every kind of work that a flow leaves is done under its own name.
pub async fn a_tick_counts_the_work_of_flows_by_kind(world: &World) {
    let mut kinds = Vec::new();
    let mut count = async || {
        let ticked = world.act(Tick { home: None, most: 10 }).await;
        kinds.extend(ticked.fired.into_iter().map(|(kind, _)| kind));
    };
    let drawing = world.draw_out(70);
    let flow_id = drawing.submit.flow.flow_id;
    let x = drawing.submit.members[70].submit.execution_id;
    world.act(drawing.submit).await;
    count().await;
    let task = world.act(grant_and_claim(x)).await;
    world.act(complete(&task)).await;
    count().await;
    let (policy, reason) = (CancelPolicy::CancelAll, String::new());
    world.act(CancelFlow { flow_id, policy, reason }).await;
    count().await;
    let handled = |join| {
        let mut drawing = world.draw_in(70).join("x", join);
        drawing.submit.edges.iter_mut().for_each(|edge| edge.kind = EdgeKind::FailureOnly);
        drawing
    };
    let drawn = world.submit_flow(handled(quorum(1))).await;
    world.act(fail(&world.take(&drawn, "m3").await, "permanent")).await;
    count().await;
    world.settle().await;
    world.run(&drawn, "x").await;
    let drawn = world.submit_flow(handled(let_run(70))).await;
    for n in 0..70 {
        world.act(fail(&world.take(&drawn, &format!("m{n}")).await, "permanent")).await;
    }
    world.act(complete(&world.take(&drawn, "x").await)).await;
    count().await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
    kinds.sort_unstable();
    assert_eq!(kinds, FLOW_WORK);
}
