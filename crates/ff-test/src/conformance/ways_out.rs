//! Ways out that an explanation names: what is pasted does what it says, and nothing else.

use ff_core::id::{ExecutionId, Namespace};
use ff_core::operation::{IssuedWaitpoint, SetLane, Submit, Suspend};
use ff_core::read::{Action, Cause};
use ff_core::state::{
    Condition, CountKind, LaneState, ResumePolicy, SetMode, SuspensionReason, TimeoutBehavior,
};
use serde_json::json;

use super::explain::{assert_way_out, explain, path};
use crate::waits::{count, named, set, suspend, wildcard, within};
use crate::world::{World, hold, lane};

/// What is offered, without the ways that are always there.
async fn offered(world: &World, id: ExecutionId) -> Vec<Action> {
    let mut offered = explain(world, id).await.unblock;
    let always = offered.split_off(offered.len() - 2);
    let always: Vec<_> = always.into_iter().map(|action| action.cli).collect();
    assert_eq!(always, [format!("ff resume '{id}'"), format!("ff cancel '{id}'")]);
    offered
}

fn approve(id: ExecutionId, at: &IssuedWaitpoint) -> (String, String) {
    let at = at.waitpoint_id;
    (
        format!("ff approve '{id}' --waitpoint {at}"),
        format!("POST {}/waitpoints/{at}/approve", path(id)),
    )
}

fn signal(id: ExecutionId, at: &IssuedWaitpoint, name: &str) -> (String, String) {
    let at = at.waitpoint_id;
    let token = format!("ff waitpoint token '{id}' {at}");
    (
        format!("{token} | ff signal '{id}' --waitpoint {at} --token-file - --name {name}"),
        format!("POST {}/signal", path(id)),
    )
}

pub async fn commands_and_routes_are_of_its_namespace(world: &World) {
    let home = Namespace::default();
    let team = Namespace::new("teama").unwrap();
    for (namespace, name, cli, route) in [
        (&home, "plain", "ff lane resume plain", "POST /v1/lanes/plain/resume"),
        (&home, "a b", "ff lane resume 'a b'", "POST /v1/lanes/a%20b/resume"),
        (
            &team,
            "it's",
            r"ff lane resume 'it'\''s' --namespace teama",
            "POST /v1/namespaces/teama/lanes/it%27s/resume",
        ),
        (
            &team,
            "-x;y",
            "ff lane resume --namespace teama -- '-x;y'",
            "POST /v1/namespaces/teama/lanes/-x%3By/resume",
        ),
    ] {
        let state = Some(LaneState::Paused);
        world.act(SetLane { state, ..SetLane::new(namespace.clone(), lane(name)) }).await;
        let namespace = namespace.clone();
        let id = world.submit(Submit { namespace, lane: lane(name), ..world.work() }).await;
        let told = explain(world, id).await;
        assert_eq!((told.cause, &told.unblock[0].cli[..]), (Cause::LanePaused, cli));
        assert_eq!(told.unblock[0].route, route);
    }
    let id = world.submit(Submit { namespace: team, ..world.work() }).await;
    for action in explain(world, id).await.unblock {
        assert!(action.cli.ends_with(" --namespace teama"), "{}", action.cli);
        assert!(action.route.contains(" /v1/namespaces/teama/"), "{}", action.route);
    }
    world.act(hold(id)).await;
    let told = explain(world, id).await;
    assert_eq!(told.unblock[0].cli, format!("ff release '{id}' --namespace teama"));
    let rest = path(id).replace("/v1", "/v1/namespaces/teama");
    assert_eq!(told.unblock[0].route, format!("POST {rest}/release"));
}

pub async fn a_suspended_execution_says_what_it_waits_for(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    let both = Condition::AllOf(vec![named("a", "yes"), named("b", "yes")]);
    let reason = SuspensionReason("waiting_for_approval".to_owned());
    let requester = Some("ada".to_owned());
    let asked = Suspend { reason, requester, ..suspend(&task, both) };
    let asked = within(5_000, TimeoutBehavior::Escalate, asked);
    let since = world.now().await;
    let waitpoints = world.suspend(asked.clone()).await;
    world.signal(&task, &waitpoints[1], "yes").await;
    world.signal(&task, &waitpoints[1], "no").await;
    let explanation = explain(world, id).await;
    assert_eq!(explanation.cause, Cause::Suspended);
    assert_eq!(explanation.cause.as_str(), "suspended");
    assert_eq!(explanation.earliest_start_at, None, "time hands it to an operator");
    let evidence = &explanation.evidence;
    assert_eq!(evidence["suspension_id"], asked.suspension_id.to_string());
    assert_eq!(evidence["reason"], "waiting_for_approval");
    assert_eq!(evidence["requester"], "ada");
    assert_eq!(evidence["suspended_since"], since.rfc3339());
    for (place, waitpoint) in waitpoints.iter().enumerate() {
        let told = &evidence["waitpoints"][place];
        assert_eq!(told["waitpoint_id"], waitpoint.waitpoint_id.to_string());
        assert_eq!(told["key"], waitpoint.key.as_str());
        assert_eq!(told["takes_any"], false);
        assert!(!format!("{explanation:?}").contains(waitpoint.token.expose()));
    }
    assert_eq!(evidence["waitpoints"][0]["takes"], json!(["yes"]));
    assert_eq!(evidence["waitpoints"][1]["takes"], json!([]), "it was heard");
    assert_eq!(evidence["accepted_signals"][0], "yes");
    assert_eq!(evidence["accepted_signals"][1], "no");
    assert_eq!(evidence["timeout_at"], since.after(5_000).rfc3339());
    assert_eq!(evidence["timeout_behavior"], "escalate");
    assert_eq!(evidence["escalated"], false);
    assert_eq!(
        explanation.summary,
        "It is suspended (waiting_for_approval) and listens on \"a\" for \"yes\"."
    );
    world.pass(5_000).await;
    let explanation = explain(world, id).await;
    assert_eq!(explanation.evidence["escalated"], true);
    assert!(explanation.evidence["timeout_at"].is_null());
    assert_eq!(explanation.earliest_start_at, None);
}

pub async fn what_only_an_operator_resumes_says_so(world: &World) {
    let (task, _) = world.suspended(Condition::OperatorOnly).await;
    let explanation = explain(world, task.execution_id).await;
    assert_eq!((explanation.cause, explanation.earliest_start_at), (Cause::Suspended, None));
    assert_way_out(&explanation, task.execution_id, "resume");
}

pub async fn what_is_offered_is_what_a_condition_takes(world: &World) {
    type Expected = fn(ExecutionId, &[IssuedWaitpoint]) -> Vec<(String, String)>;
    let deny: Expected = |id, at| {
        let (cli, route) = approve(id, &at[0]);
        let denied = (format!("{cli} --deny"), route.replace("/approve", "/deny"));
        vec![(cli, route), denied]
    };
    let cases: [(Condition, Expected); 7] = [
        (named("d", "go"), |id, at| vec![signal(id, &at[0], "go")]),
        (named("d", "it's"), |id, at| vec![signal(id, &at[0], r"'it'\''s'")]),
        (named("d", "approved"), |id, at| vec![approve(id, &at[0])]),
        (wildcard("d"), |id, at| vec![approve(id, &at[0])]),
        (set("d", &["approved", "denied"], SetMode::Any), deny),
        (Condition::AllOf(vec![wildcard("a"), named("b", "go")]), |id, at| {
            vec![approve(id, &at[0]), signal(id, &at[1], "go")]
        }),
        (Condition::AllOf(vec![wildcard("a"), Condition::OperatorOnly]), |_, _| Vec::new()),
    ];
    for (condition, expected) in cases {
        let (task, waitpoints) = world.suspended(condition).await;
        let id = task.execution_id;
        let offered = offered(world, id).await;
        let offered: Vec<_> = offered.into_iter().map(|a| (a.cli, a.route)).collect();
        assert_eq!(offered, expected(id, &waitpoints));
    }
}

pub async fn what_was_heard_is_not_offered_again(world: &World) {
    let (task, at) = world.suspended(set("d", &["x", "y"], SetMode::All)).await;
    world.signal(&task, &at[0], "x").await;
    let told = offered(world, task.execution_id).await;
    assert_eq!((told.len(), &told[0].summary[..]), (1, "signal \"y\" on \"d\""));
    let (task, at) = world.suspended(count(2, CountKind::DistinctWaitpoints, &["a", "b"])).await;
    world.signal(&task, &at[0], "x").await;
    let told = offered(world, task.execution_id).await;
    assert_eq!((told.len(), &told[0].summary[..]), (1, "approve \"b\""));
    // The same decision once more is no second signal unless it says so.
    let (task, at) = world.suspended(count(2, CountKind::DistinctSignals, &["a"])).await;
    world.signal(&task, &at[0], "approved").await;
    let told = offered(world, task.execution_id).await;
    let (cli, _) = approve(task.execution_id, &at[0]);
    assert_eq!(told[0].cli, format!("{cli} --suffix 1"));
}

pub async fn only_a_timeout_that_resumes_says_when_it_starts(world: &World) {
    for behavior in TimeoutBehavior::ALL {
        let task = world.start(world.work()).await;
        let resume_policy = ResumePolicy { resume_delay_ms: 2_000, ..ResumePolicy::default() };
        let asked = Suspend { resume_policy, ..suspend(&task, wildcard("a")) };
        world.suspend(within(5_000, behavior, asked)).await;
        let starts = world.now().await.after(7_000);
        let expected = (behavior == TimeoutBehavior::AutoResume).then_some(starts);
        assert_eq!(explain(world, task.execution_id).await.earliest_start_at, expected);
    }
}
