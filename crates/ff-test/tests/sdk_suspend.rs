//! Tasks of the SDK that stop until somebody has said what they wait for.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::time::Duration;

use ff_core::backend::BackendExt as _;
use ff_core::error::Code;
use ff_core::operation::{Resume, ResumeSignal};
use ff_core::state::{PublicState, SignalEffect};
use ff_sdk::WaitpointToken;
use ff_sdk::{
    ClaimedTask, ConditionMatcher, FlowFabricWorker, SdkError, Signal, SignalOutcome,
    SuspendOutcome, SuspendedAt, Suspension, TimeoutBehavior, WaitpointTicket,
};
use ff_test::sdk::{Fault, Workshop};

ff_test::on_every_way! {
    a_signal_resumes_the_task
    without_matchers_any_signal_does
    several_matchers_want_all
    what_was_said_before_gives_the_task_back
    a_pending_waitpoint_is_made_once
    a_suspend_counts_once_when_its_reply_is_lost
    a_suspend_that_is_refused_gives_the_task_back
    so_many_different_people_must_agree
    people_and_a_machine_must_agree
    time_ends_a_wait
    operators_resume_without_signals
    metadata_comes_back
    signals_are_told_apart
    a_wrong_token_is_refused
    one_suspension_serves_many_tasks
}

fn named(names: &[&str]) -> Vec<ConditionMatcher> {
    names.iter().map(|name| ConditionMatcher::named(*name)).collect()
}

fn waits(outcome: SuspendOutcome) -> SuspendedAt {
    match outcome {
        SuspendOutcome::Suspended(at) => at,
        other => panic!("{other:?}"),
    }
}

/// Suspends a new task: its id, and the waitpoint that it listens at.
async fn suspended(
    workshop: &Workshop,
    worker: &FlowFabricWorker,
    matchers: &[ConditionMatcher],
) -> (ff_core::id::ExecutionId, WaitpointTicket) {
    let task = workshop.start(worker, workshop.work()).await;
    let id = task.execution_id();
    let outcome = task.suspend("waiting_for_signal", matchers, None, TimeoutBehavior::Fail).await;
    let [ticket] = waits(outcome.unwrap()).waitpoints.try_into().unwrap();
    assert_eq!(ticket.key.to_string(), format!("wpk:{}", ticket.waitpoint_id));
    (id, ticket)
}

async fn say(
    worker: &FlowFabricWorker,
    id: ff_core::id::ExecutionId,
    ticket: &WaitpointTicket,
    name: &str,
) -> SignalOutcome {
    let signal = Signal::new(name, ticket.token.clone());
    worker.deliver_signal(id, ticket.waitpoint_id, signal).await.unwrap()
}

/// The task as it goes on, and the names of the signals that resumed it.
async fn resumed(worker: &FlowFabricWorker) -> (ClaimedTask, Vec<String>) {
    let task = worker.claim_next().await.unwrap().expect("it goes on");
    let signals = task.resume_signals().await.unwrap();
    (task, signals.iter().map(|signal| signal.name.to_string()).collect())
}

async fn a_signal_resumes_the_task(workshop: &Workshop) {
    let worker = workshop.worker().await;
    let (id, ticket) = suspended(workshop, &worker, &named(&["go"])).await;
    assert_eq!((workshop.state(id).await, worker.running_tasks()), (PublicState::Suspended, 0));
    let other = say(&worker, id, &ticket, "else").await;
    let SignalOutcome::Accepted { effect, .. } = other else { panic!("{other:?}") };
    assert_ne!(effect, SignalEffect::ResumeConditionSatisfied);
    let told = Signal::new("go", ticket.token.clone()).json(&[1, 2]).unwrap();
    let told = worker.deliver_signal(id, ticket.key.clone(), told).await.unwrap();
    assert!(matches!(told, SignalOutcome::TriggeredResume { .. }), "{told:?}");
    let (task, names) = resumed(&worker).await;
    assert_eq!((task.execution_id(), task.attempt_index(), task.lease_epoch()), (id, 0, 2));
    assert_eq!(names, ["go"]);
    let [ResumeSignal { payload, .. }] = &task.resume_signals().await.unwrap()[..] else {
        panic!("one signal")
    };
    assert_eq!(payload.as_deref(), Some(&b"[1,2]"[..]));
    task.complete(None).await.unwrap();
}

async fn without_matchers_any_signal_does(workshop: &Workshop) {
    let worker = workshop.worker().await;
    for matchers in [vec![], named(&[""])] {
        let (id, ticket) = suspended(workshop, &worker, &matchers).await;
        say(&worker, id, &ticket, "whatever").await;
        let (task, names) = resumed(&worker).await;
        assert_eq!(names, ["whatever"]);
        task.complete(None).await.unwrap();
    }
}

async fn several_matchers_want_all(workshop: &Workshop) {
    let worker = workshop.worker().await;
    let (id, ticket) = suspended(workshop, &worker, &named(&["a", "b"])).await;
    say(&worker, id, &ticket, "b").await;
    assert!(worker.claim_next().await.unwrap().is_none());
    say(&worker, id, &ticket, "a").await;
    let (_task, mut names) = resumed(&worker).await;
    names.sort();
    assert_eq!(names, ["a", "b"]);
}

async fn what_was_said_before_gives_the_task_back(workshop: &Workshop) {
    let (worker, task) = workshop.started(workshop.work()).await;
    let id = task.execution_id();
    let ticket = task.create_pending_waitpoint("answer", None).await.unwrap();
    say(&worker, id, &ticket, "yes").await;
    let suspension = Suspension::signal("answer", "yes").unwrap().using(&ticket);
    let SuspendOutcome::AlreadySatisfied { at, task } = task.suspend_on(suspension).await.unwrap()
    else {
        panic!("it was said already")
    };
    assert_eq!(at.waitpoint().unwrap().waitpoint_id, ticket.waitpoint_id);
    assert_eq!((task.lease_epoch(), worker.running_tasks()), (1, 1), "nothing was given up");
    let signals = task.resume_signals().await.unwrap();
    assert_eq!(signals.len(), 1);
    task.complete(None).await.unwrap();
}

async fn a_pending_waitpoint_is_made_once(workshop: &Workshop) {
    let (worker, task) = workshop.started(workshop.work()).await;
    let id = task.execution_id();
    workshop.wire.plan("create_pending_waitpoint", [Fault::ReplyLost]);
    let ticket = task.create_pending_waitpoint("answer", None).await.unwrap();
    assert_eq!(worker.running_tasks(), 1, "the lease is kept");
    let suspension = Suspension::signal("answer", "yes").unwrap().using(&ticket);
    let at = waits(task.suspend_on(suspension).await.unwrap());
    assert_eq!(at.waitpoints.len(), 1);
    say(&worker, id, &ticket, "yes").await;
    assert_eq!(resumed(&worker).await.1, ["yes"]);
}

async fn a_suspend_counts_once_when_its_reply_is_lost(workshop: &Workshop) {
    let (worker, task) = workshop.started(workshop.work()).await;
    let id = task.execution_id();
    workshop.wire.plan("suspend_execution", [Fault::ReplyLost, Fault::ReplyLost]);
    let suspension = Suspension::approval("review").unwrap();
    let at = waits(task.suspend_on(suspension).await.unwrap());
    say(&worker, id, at.waitpoint().unwrap(), "approved").await;
    assert_eq!(resumed(&worker).await.1, ["approved"]);
}

async fn a_suspend_that_is_refused_gives_the_task_back(workshop: &Workshop) {
    let (_worker, task) = workshop.started(workshop.work()).await;
    let long = named(&["x".repeat(1_000).as_str()]);
    let back = task.suspend("r", &long, None, TimeoutBehavior::Fail).await.unwrap_err();
    assert!(matches!(back.error, SdkError::Config { field: "signal_name", .. }), "{back}");
    let task = back.task.unwrap();
    let unbound = ff_core::state::Condition::Single {
        waitpoint: "nowhere".parse().unwrap(),
        name: ff_core::state::Matcher::Wildcard,
    };
    let back = task.suspend_on(Suspension::on(unbound, vec![])).await.unwrap_err();
    assert!(matches!(back.error, SdkError::Engine(_)), "{back}");
    back.task.unwrap().complete(None).await.unwrap();
}

async fn so_many_different_people_must_agree(workshop: &Workshop) {
    let (worker, task) = workshop.started(workshop.work()).await;
    let id = task.execution_id();
    let suspension = Suspension::distinct_sources("deploy", "approved", 2).unwrap();
    let at = waits(task.suspend_on(suspension).await.unwrap());
    let ticket = at.waitpoint().unwrap();
    for (who, resumes) in [("ada", false), ("ada", false), ("bob", true)] {
        let signal = Signal::new("approved", ticket.token.clone()).source("user", who);
        let told = worker.deliver_signal(id, ticket.waitpoint_id, signal).await.unwrap();
        assert_eq!(matches!(told, SignalOutcome::TriggeredResume { .. }), resumes, "{who}");
    }
}

async fn people_and_a_machine_must_agree(workshop: &Workshop) {
    let (worker, task) = workshop.started(workshop.work()).await;
    let id = task.execution_id();
    let suspension = Suspension::distinct_sources("people", "approved", 2)
        .unwrap()
        .and(Suspension::signal("checks", "passed").unwrap())
        .and(Suspension::signal("checks", "scanned").unwrap());
    let at = waits(task.suspend_on(suspension).await.unwrap());
    let keys: Vec<&str> = at.waitpoints.iter().map(|ticket| ticket.key.as_str()).collect();
    assert_eq!(keys, ["people", "checks"], "a waitpoint that both name is made once");
    let [people, checks] = &at.waitpoints[..] else { panic!("{at:?}") };
    for (ticket, word, who, resumes) in [
        (people, "approved", "ada", false),
        (checks, "passed", "ci", false),
        (people, "approved", "bob", false),
        (checks, "scanned", "ci", true),
    ] {
        let signal = Signal::new(word, ticket.token.clone()).source("user", who);
        let told = worker.deliver_signal(id, ticket.waitpoint_id, signal).await.unwrap();
        assert_eq!(matches!(told, SignalOutcome::TriggeredResume { .. }), resumes, "{word} {who}");
    }
    let (_task, names) = resumed(&worker).await;
    assert_eq!(names, ["approved", "passed", "approved", "scanned"]);
}

async fn time_ends_a_wait(workshop: &Workshop) {
    let worker = workshop.worker().await;
    for (behavior, then) in [
        (TimeoutBehavior::Fail, PublicState::Failed),
        (TimeoutBehavior::Cancel, PublicState::Cancelled),
        (TimeoutBehavior::Expire, PublicState::Expired),
    ] {
        let task = workshop.start(&worker, workshop.work()).await;
        let id = task.execution_id();
        let minute = Some(Duration::from_secs(60));
        waits(task.suspend("r", &named(&["go"]), minute, behavior).await.unwrap());
        workshop.pass(60_000).await;
        assert_eq!(workshop.state(id).await, then, "{behavior}");
    }
    let task = workshop.start(&worker, workshop.work()).await;
    waits(task.suspend_on(Suspension::sleep(Duration::from_secs(5))).await.unwrap());
    workshop.pass(4_999).await;
    assert!(worker.claim_next().await.unwrap().is_none());
    workshop.pass(1).await;
    let (task, names) = resumed(&worker).await;
    assert_eq!((task.attempt_index(), names.len()), (0, 1), "a signal says that time is over");
}

async fn operators_resume_without_signals(workshop: &Workshop) {
    let worker = workshop.worker().await;
    let (id, _) = suspended(workshop, &worker, &named(&["go"])).await;
    let resume = Resume { execution_id: id, trigger: "operator".to_owned(), delay_ms: None };
    workshop.store().call(resume).await.unwrap();
    assert_eq!(resumed(&worker).await.1, [""; 0]);
}

async fn metadata_comes_back(workshop: &Workshop) {
    let (worker, task) = workshop.started(workshop.work()).await;
    let suspension = Suspension::sleep(Duration::from_secs(1)).metadata("step 3");
    waits(task.suspend_on(suspension).await.unwrap());
    workshop.pass(1_000).await;
    let (task, _) = resumed(&worker).await;
    assert_eq!(task.metadata().map(|bytes| &bytes[..]), Some(&b"step 3"[..]));
}

async fn signals_are_told_apart(workshop: &Workshop) {
    let worker = workshop.worker().await;
    let (id, ticket) = suspended(workshop, &worker, &named(&["a", "b"])).await;
    let once = || Signal::new("a", ticket.token.clone()).idempotency_key("mail-1");
    let first = worker.deliver_signal(id, ticket.waitpoint_id, once()).await.unwrap();
    let SignalOutcome::Accepted { signal_id, .. } = first else { panic!("{first:?}") };
    let again = worker.deliver_signal(id, ticket.waitpoint_id, once()).await.unwrap();
    assert_eq!(again, SignalOutcome::Duplicate { existing: signal_id });
    let without = say(&worker, id, &ticket, "a").await;
    assert!(matches!(without, SignalOutcome::Accepted { .. }), "no key, no memory: {without:?}");
}

async fn a_wrong_token_is_refused(workshop: &Workshop) {
    let worker = workshop.worker().await;
    let (id, ticket) = suspended(workshop, &worker, &named(&["a"])).await;
    let (_, others) = suspended(workshop, &worker, &named(&["a"])).await;
    let shown = format!("{:?} {:?}", others, Signal::new("a", others.token.clone()));
    assert!(!shown.contains(others.token.expose()), "{shown}");
    for token in [others.token, format!("k1:0:{}", "0".repeat(64)).parse().unwrap()] {
        let signal = Signal::new("a", token);
        let refused = worker.deliver_signal(id, ticket.waitpoint_id, signal).await.unwrap_err();
        assert_eq!(refused.code(), Some(Code::InvalidToken), "{refused:?}");
    }
    assert_eq!("nonsense".parse::<WaitpointToken>().unwrap_err().code, Code::InvalidToken);
    let bad = Signal::new("", ticket.token.clone());
    let refused = worker.deliver_signal(id, ticket.waitpoint_id, bad).await.unwrap_err();
    assert!(matches!(refused, SdkError::Config { field: "name", .. }), "{refused}");
}

async fn one_suspension_serves_many_tasks(workshop: &Workshop) {
    let worker = workshop.worker().await;
    let paid = Suspension::signal("payment", "paid").unwrap();
    let until = paid.and(Suspension::approval("review").unwrap());
    let mut made = Vec::new();
    for _ in 0..2 {
        let mut task = workshop.start(&worker, workshop.work()).await;
        // The second wait of a task is one more use.
        for _ in 0..2 {
            let id = task.execution_id();
            let at = waits(task.suspend_on(until.clone()).await.unwrap());
            for (ticket, name) in at.waitpoints.iter().zip(["paid", "approved"]) {
                say(&worker, id, ticket, name).await;
                made.push(ticket.waitpoint_id);
            }
            task = resumed(&worker).await.0;
        }
        task.complete(None).await.unwrap();
    }
    made.sort_unstable();
    made.dedup();
    assert_eq!(made.len(), 8, "each has waitpoints of its own");
}
