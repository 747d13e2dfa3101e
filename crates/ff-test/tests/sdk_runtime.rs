//! Handlers of the runtime: what they are given, and what becomes of what they return.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ff_core::content::Content;
use ff_core::error::Code;
use ff_core::operation::Submit;
use ff_core::state::{FailureClass, PublicState};
use ff_sdk::runtime::{
    Data, Failure, FromTask, HandlerOptions, Outcome, Payload, PayloadBytes, Task, TaskCall,
    TaskInfo,
};
use ff_sdk::{Signal, Suspension};
use ff_test::sdk::{Running, Workshop};
use ff_test::world::{PATIENCE, policy, tags};
use tokio::sync::mpsc;
use tokio::time::timeout;

ff_test::on_every_way! {
    handlers_get_what_they_ask_for
    an_extractor_of_ones_own
    what_a_handler_returns_is_the_result
    a_handler_may_end_its_task_otherwise
    failures_have_their_categories
    a_transient_failure_is_tried_again
    a_failure_says_when_to_try_again
    what_cannot_be_done_is_a_failure
    a_task_suspends_and_goes_on
    what_was_said_already_calls_the_handler_again
    a_handle_that_outlives_its_handler_is_told
    a_task_talks_while_it_runs
}

/// The next thing that a handler says.
async fn next<T>(heard: &mut mpsc::UnboundedReceiver<T>) -> T {
    timeout(PATIENCE, heard.recv()).await.expect("in time").expect("a handler")
}

async fn handlers_get_what_they_ask_for(workshop: &Workshop) {
    async fn none() -> u8 {
        0
    }
    async fn all(
        Payload(value): Payload<serde_json::Value>,
        PayloadBytes(bytes): PayloadBytes,
        data: Data<String>,
        info: TaskInfo,
    ) -> String {
        let tag = info.tags().get("team").unwrap_or("?");
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        format!("{} {text} {} {} {tag}", value["n"], *data, info.kind())
    }
    async fn handle(task: Task) -> String {
        format!("{} {}", task.info().lane(), task.is_cancelled())
    }
    let runtime = workshop.runtime().await.data("shared".to_owned());
    let runtime = runtime.on("none", none).on("all", all).on("handle", handle);
    let closure = |n: Payload<BTreeMap<String, u32>>| async move { n["n"] };
    let running = Running::start(runtime.on("closure", closure));
    let mut ids = Vec::new();
    for kind in ["none", "all", "handle", "closure"] {
        let submit = Submit { tags: tags(&[("team", "red")]), ..workshop.once(kind) };
        ids.push(workshop.submit(submit).await);
    }
    let expected = ["0", r#""1 {\"n\":1} shared all red""#, r#""work false""#, "1"];
    for (id, expected) in ids.into_iter().zip(expected) {
        assert_eq!(workshop.result(id).await.as_deref(), Some(expected));
    }
    running.stop().await;
}

async fn an_extractor_of_ones_own(workshop: &Workshop) {
    struct Team(String);
    impl FromTask for Team {
        fn from_task(call: &TaskCall) -> Result<Self, Failure> {
            let team = call.info().tags().get("team");
            team.map(|team| Self(team.to_owned()))
                .ok_or_else(|| Failure::permanent("no team").category("no_team"))
        }
    }
    async fn of_team(team: Team) -> String {
        team.0
    }
    let running = Running::start(workshop.runtime().await.on("k", of_team));
    let red = Submit { tags: tags(&[("team", "red")]), ..workshop.once("k") };
    let red = workshop.submit(red).await;
    assert_eq!(workshop.result(red).await.as_deref(), Some(r#""red""#));
    let nobody = workshop.submit_kind("k").await;
    let failed = workshop.until(nobody, PublicState::Failed).await;
    assert_eq!(failed.failure_category.as_deref(), Some("no_team"));
    running.stop().await;
}

async fn what_a_handler_returns_is_the_result(workshop: &Workshop) {
    let runtime = workshop.runtime().await;
    let running = Running::start(
        runtime
            .on("unit", || async {})
            .on("text", || async { "hello" })
            .on("fallible", || async { Ok::<_, String>(vec![1, 2]) })
            .on("none", || async { Outcome::None })
            .on("empty", || async { Outcome::bytes("") })
            .on("bytes", || async { Ok::<_, Failure>(Outcome::bytes("raw")) }),
    );
    for (kind, result) in [
        ("unit", None),
        ("text", Some(r#""hello""#)),
        ("fallible", Some("[1,2]")),
        ("none", None),
        ("empty", Some("")),
        ("bytes", Some("raw")),
    ] {
        let id = workshop.submit_kind(kind).await;
        assert_eq!(workshop.result(id).await.as_deref(), result, "{kind}");
    }
    running.stop().await;
}

async fn a_handler_may_end_its_task_otherwise(workshop: &Workshop) {
    let calls = Arc::new(AtomicU32::new(0));
    let later = |calls: Data<Arc<AtomicU32>>, info: TaskInfo| async move {
        match calls.fetch_add(1, Ordering::SeqCst) {
            0 => Outcome::Delay(Duration::from_secs(60)),
            1 => Outcome::DelayUntil(info.created_at().after(120_000)),
            _ => Outcome::bytes(format!("attempt {}", info.attempt_index())),
        }
    };
    let cancel = || async { Outcome::Cancel { reason: "not wanted".to_owned() } };
    let runtime = workshop.runtime().await.data(Arc::clone(&calls));
    let running = Running::start(runtime.on("later", later).on("cancel", cancel));
    let cancelled = workshop.submit_kind("cancel").await;
    let record = workshop.until(cancelled, PublicState::Cancelled).await;
    assert_eq!(record.cancellation_reason.as_deref(), Some("not wanted"));
    let id = workshop.submit_kind("later").await;
    for call in 1..=2 {
        workshop.until(id, PublicState::Delayed).await;
        assert_eq!(calls.load(Ordering::SeqCst), call);
        workshop.pass(60_000).await;
    }
    assert_eq!(workshop.result(id).await.as_deref(), Some("attempt 0"));
    running.stop().await;
}

async fn failures_have_their_categories(workshop: &Workshop) {
    async fn error() -> Result<(), Failure> {
        Ok("x".parse::<u8>().map(drop)?)
    }
    async fn permanent() -> Result<(), Failure> {
        Err(Failure::permanent("never"))
    }
    async fn named() -> Result<(), Failure> {
        Err(Failure::transient("bank").category("bank_is_closed"))
    }
    async fn panics() {
        panic!("at the disco");
    }
    async fn data(_: Data<u128>) {}
    async fn payload(_: Payload<Vec<u8>>) {}
    let brief = HandlerOptions::new().timeout(Duration::from_millis(20));
    let runtime = workshop.runtime().await.on("error", error).on("permanent", permanent);
    let runtime = runtime.on("named", named).on("panics", panics).on("data", data);
    let runtime = runtime.on("payload", payload);
    let running = Running::start(runtime.on_with("slow", std::future::pending::<()>, brief));
    let transient = FailureClass::Transient;
    for (kind, category, class, said) in [
        ("error", "handler_error", transient, "invalid digit"),
        ("permanent", "handler_error", FailureClass::Permanent, "never"),
        ("named", "bank_is_closed", transient, "bank"),
        ("panics", "handler_panic", transient, "at the disco"),
        ("data", "extractor_missing_state", transient, "u128"),
        ("payload", "extractor_payload_decode", FailureClass::Permanent, "expected a sequence"),
        ("nobody", "runtime_no_handler", transient, "nobody"),
        ("slow", "handler_timeout", FailureClass::Timeout, "20ms"),
    ] {
        let id = workshop.submit_kind(kind).await;
        let record = workshop.until(id, PublicState::Failed).await;
        assert_eq!(record.failure_category.as_deref(), Some(category), "{kind}");
        assert_eq!(record.failure_class, Some(class), "{kind}");
        let reason = record.failure_reason.unwrap();
        assert!(reason.contains(said), "{kind}: {reason}");
    }
    running.stop().await;
}

async fn a_transient_failure_is_tried_again(workshop: &Workshop) {
    async fn second(info: TaskInfo) -> Result<String, Failure> {
        match info.previous_failure() {
            None => Err("first")?,
            Some(before) => Ok(format!("{} {}", info.attempt_index(), before.reason)),
        }
    }
    let running = Running::start(workshop.runtime().await.on("second", second));
    let policy =
        policy(r#"{"retry_policy":{"max_retries":1,"backoff":{"type":"fixed","delay_ms":5000}}}"#);
    let id = workshop.submit(Submit { policy, ..workshop.once("second") }).await;
    workshop.until(id, PublicState::Delayed).await;
    workshop.pass(5_000).await;
    assert_eq!(workshop.result(id).await.as_deref(), Some(r#""1 first""#));
    running.stop().await;
}

async fn a_failure_says_when_to_try_again(workshop: &Workshop) {
    let after = || async {
        Err::<(), _>(Failure::transient("busy").retry_after(Duration::from_secs(3_600)))
    };
    let running = Running::start(workshop.runtime().await.on("busy", after));
    let policy = policy(r#"{"retry_policy":{"max_retries":1}}"#);
    let id = workshop.submit(Submit { policy, ..workshop.once("busy") }).await;
    let record = workshop.until(id, PublicState::Delayed).await;
    assert_eq!(record.delay_until, Some(record.last_transition_at.after(3_600_000)));
    running.stop().await;
}

/// A result over the limit, and children where there is no flow.
async fn what_cannot_be_done_is_a_failure(workshop: &Workshop) {
    let large = || async { Outcome::Complete(Content::new(vec![0; 64 << 20])) };
    let children = || async { Outcome::WaitChildren(None) };
    let runtime = workshop.runtime().await.on("large", large).on("children", children);
    let running = Running::start(runtime);
    for (kind, said) in [("large", "payload_too_large"), ("children", "execution_not_in_flow")] {
        let id = workshop.submit_kind(kind).await;
        let record = workshop.until(id, PublicState::Failed).await;
        assert_eq!(record.failure_category.as_deref(), Some("handler_error"));
        let reason = record.failure_reason.unwrap();
        assert!(reason.contains(said), "{kind}: {reason}");
    }
    running.stop().await;
}

async fn a_task_suspends_and_goes_on(workshop: &Workshop) {
    type Tickets = mpsc::UnboundedSender<ff_sdk::WaitpointTicket>;
    async fn review(
        task: Task,
        info: TaskInfo,
        tickets: Data<Tickets>,
    ) -> Result<Outcome, Failure> {
        if let [signal] = info.resume_signals() {
            let left = info.metadata().cloned().unwrap_or_default();
            let left = String::from_utf8_lossy(&left).into_owned();
            return Outcome::json(&format!("{} {left}", signal.name));
        }
        let ticket = task.create_pending_waitpoint("review", None).await?;
        tickets.send(ticket.clone())?;
        let wait = Suspension::approval("review")?.using(&ticket).metadata("page 7");
        Ok(Outcome::suspend(wait))
    }
    let (tickets, mut given): (Tickets, _) = mpsc::unbounded_channel();
    let running = Running::start(workshop.runtime().await.data(tickets).on("review", review));
    let id = workshop.submit_kind("review").await;
    let ticket = next(&mut given).await;
    workshop.until(id, PublicState::Suspended).await;
    let signal = Signal::new("approved", ticket.token);
    workshop.client().deliver_signal(id, ticket.waitpoint_id, signal).await.unwrap();
    assert_eq!(workshop.result(id).await.as_deref(), Some(r#""approved page 7""#));
    assert_eq!(workshop.describe(id).await.total_attempt_count, 1);
    running.stop().await;
}

/// The signal comes between the waitpoint and the suspend.
async fn what_was_said_already_calls_the_handler_again(workshop: &Workshop) {
    async fn impatient(task: Task, info: TaskInfo) -> Result<Outcome, Failure> {
        if let [signal] = info.resume_signals() {
            let read = task.resume_signals().await?;
            let body = String::from_utf8(read[0].payload.clone().unwrap_or_default().to_vec())?;
            let left = info.metadata().map_or(0, bytes::Bytes::len);
            let epoch = info.lease_epoch();
            return Outcome::json(&format!("{} {body} {left} {epoch}", signal.name));
        }
        let ticket = task.create_pending_waitpoint("go", None).await?;
        let signal = Signal::new("go", ticket.token.clone()).payload("now");
        let id = info.execution_id();
        task.client().deliver_signal(id, ticket.waitpoint_id, signal).await?;
        let wait = Suspension::signal("go", "go")?.using(&ticket).metadata("abc");
        Ok(Outcome::suspend(wait))
    }
    let running = Running::start(workshop.runtime().await.on("k", impatient));
    let id = workshop.submit_kind("k").await;
    assert_eq!(workshop.result(id).await.as_deref(), Some(r#""go now 3 1""#));
    assert_eq!(workshop.describe(id).await.total_attempt_count, 1);
    running.stop().await;
}

async fn a_handle_that_outlives_its_handler_is_told(workshop: &Workshop) {
    let (tasks, mut given) = mpsc::unbounded_channel::<Task>();
    let leak = |task: Task, tasks: Data<mpsc::UnboundedSender<Task>>| async move {
        tasks.send(task).unwrap();
    };
    let running = Running::start(workshop.runtime().await.data(tasks).on("leak", leak));
    let id = workshop.submit_kind("leak").await;
    let task = next(&mut given).await;
    workshop.until(id, PublicState::Completed).await;
    let refused = task.update_progress(1, "late").await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::ExecutionNotActive));
    running.stop().await;
}

async fn a_task_talks_while_it_runs(workshop: &Workshop) {
    use ff_core::read::StreamCursor;
    async fn talk(task: Task) -> Result<usize, Failure> {
        task.update_progress(50, "half").await?;
        task.append_frame("delta", "one", None).await?;
        let all = task.read_stream(StreamCursor::Start, StreamCursor::End, 10).await?;
        let from = StreamCursor::from_beginning();
        let tailed = task.tail_stream(from, Duration::ZERO, 10).await?;
        task.renew_lease().await?;
        Ok(all.frames.len() + tailed.frames.len())
    }
    let running = Running::start(workshop.runtime().await.on("talk", talk));
    let id = workshop.submit_kind("talk").await;
    assert_eq!(workshop.result(id).await.as_deref(), Some("2"));
    let record = workshop.describe(id).await;
    assert_eq!(record.progress_message.as_deref(), Some("half"));
    running.stop().await;
}
