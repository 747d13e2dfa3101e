//! Every example runs: it prints what its README shows, and the store holds what it has done. Each
//! runs on a store in a file, on a Valkey server, and over HTTP.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

mod support;

use std::process::Command;

use flowfabric::Client;
use flowfabric::core::read::{Filter, FlowFilter, Record, StreamCursor};
use flowfabric::core::state::PublicState::{self, Cancelled, Completed, Failed};
use serde_json::Value;
use support::{Place, Program, every_example, says_what_its_readme_says};

macro_rules! examples {
    ($($case:ident = $name:literal;)*) => {
        const RUN: &[&str] = &[$($name),*];

        examples!(embedded: $($case = $name;)*);
        examples!(valkey: $($case = $name;)*);
        examples!(http: $($case = $name;)*);
    };
    ($place:ident: $($case:ident = $name:literal;)*) => {
        mod $place {
            $(
                #[test]
                fn $case() {
                    let place = super::Place::$place();
                    let program = env!(concat!("CARGO_BIN_EXE_", $name));
                    let program = super::Program::start(program, &["--store", place.url()]);
                    super::says_what_its_readme_says($name, &program.end());
                    place.look(super::$case);
                }
            )*
        }
    };
}

examples! {
    hello = "hello";
    retries = "retries";
    streaming_llm = "streaming-llm";
    coding_agent = "coding-agent";
    deploy_approval = "deploy-approval";
    model_race = "model-race";
    media_pipeline = "media-pipeline";
    token_budget = "token-budget";
    external_callback = "external-callback";
    capability_routing = "capability-routing";
    crash_recovery = "crash-recovery";
    incident_remediation = "incident-remediation";
    retry_and_cancel = "retry-and-cancel";
}

async fn everything(client: &Client) -> Vec<Record> {
    let page = client.search(Filter::default(), None, 100).await.unwrap();
    assert_eq!(page.next_cursor, None);
    page.items
}

/// The one execution of a kind.
async fn one(client: &Client, kind: &str) -> Record {
    let mut found = everything(client).await;
    found.retain(|record| record.kind.as_str() == kind);
    assert_eq!(found.len(), 1, "{kind}");
    found.remove(0)
}

fn state(record: &Record) -> PublicState {
    record.state.public_state
}

async fn result(client: &Client, record: &Record) -> String {
    let content = client.get_result(record.execution_id, None).await.unwrap();
    String::from_utf8(content.bytes.to_vec()).unwrap()
}

async fn hello(client: &Client) {
    let greet = one(client, "greet").await;
    assert_eq!((state(&greet), greet.total_attempt_count), (Completed, 1));
    assert_eq!(result(client, &greet).await, r#""hello Ada""#);
}

async fn retries(client: &Client) {
    let charge = one(client, "charge").await;
    assert_eq!((state(&charge), charge.retry_count), (Completed, 2));
    let refund = one(client, "refund").await;
    assert_eq!((state(&refund), refund.total_attempt_count), (Failed, 1));
    assert_eq!(refund.failure_category.as_deref(), Some("unknown_order"));
    let receipt = one(client, "print-receipt").await;
    assert_eq!((state(&receipt), receipt.total_attempt_count), (Completed, 2));
    let attempts = client.list_attempts(receipt.execution_id, None).await.unwrap().items;
    assert_eq!(attempts[0].failure_category.as_deref(), Some("handler_panic"));
}

async fn streaming_llm(client: &Client) {
    let answer = one(client, "answer").await;
    let (id, all) = (answer.execution_id, StreamCursor::End);
    let stream = client.read_stream(id, 0, StreamCursor::Start, all, 1_000).await.unwrap();
    let tokens = stream.frames.iter().filter(|frame| frame.frame_type == "token");
    let text: String = tokens.map(|frame| String::from_utf8_lossy(&frame.content.bytes)).collect();
    assert!(text.ends_with("keeps what the worker has said."), "{text}");
    let words = text.split(' ').count();
    assert_eq!(result(client, &answer).await, words.to_string());
    let summary = client.read_summary(id, 0).await.unwrap();
    let document: Value = serde_json::from_str(&summary.document).unwrap();
    assert_eq!((document["words"].as_u64(), summary.version), (Some(words as u64), words as u64));
}

async fn coding_agent(client: &Client) {
    let develop = one(client, "develop").await;
    assert_eq!((state(&develop), develop.total_attempt_count), (Completed, 1));
    assert_eq!((develop.signal_count, develop.lease_epoch), (2, 3));
    let draft: Value = serde_json::from_str(&result(client, &develop).await).unwrap();
    assert_eq!(draft["revision"], 2);
}

async fn deploy_approval(client: &Client) {
    let deploy = one(client, "deploy").await;
    assert_eq!((state(&deploy), deploy.total_attempt_count), (Completed, 1));
    assert_eq!((deploy.signal_count, deploy.lease_epoch), (4, 2));
    assert!(result(client, &deploy).await.contains("ada, ben, build-server"));
}

async fn model_race(client: &Client) {
    for record in everything(client).await {
        let expected = match record.member_name.as_ref().unwrap().as_str() {
            "large" | "medium" => Cancelled,
            "small" | "publish" => Completed,
            other => panic!("{other}"),
        };
        assert_eq!(state(&record), expected, "{:?}", record.member_name);
    }
    assert_eq!(result(client, &one(client, "publish").await).await, r#""42, says small""#);
}

async fn media_pipeline(client: &Client) {
    let steps = everything(client).await;
    assert_eq!(steps.len(), 6);
    assert!(steps.iter().all(|step| state(step) == Completed));
    assert_eq!(result(client, &one(client, "package").await).await, "25650");
    let flows = client.list_flows(FlowFilter::default(), None, 10).await.unwrap().items;
    assert_eq!((flows.len(), flows[0].state.as_str()), (1, "completed"));
    assert_eq!(flows[0].tags.get("film"), Some("summer.mov"));
}

async fn token_budget(client: &Client) {
    let chapters = everything(client).await;
    assert_eq!(chapters.len(), 6);
    assert!(chapters.iter().all(|chapter| state(chapter) == Completed));
    let budgets = client.list_budgets(None).await.unwrap().items;
    let [budget] = &budgets[..] else { panic!("{budgets:?}") };
    assert_eq!(budget.reset_count, 1);
    assert!(budget.dimensions.values().all(|counter| counter.used == 300));
}

async fn external_callback(client: &Client) {
    let sell = one(client, "sell").await;
    assert_eq!((state(&sell), sell.signal_count), (Completed, 1));
    assert!(result(client, &sell).await.contains("4200 cents are paid"));
}

async fn capability_routing(client: &Client) {
    for record in everything(client).await {
        let by = if record.required_capabilities.is_empty() { "cpu-box" } else { "gpu-box" };
        let attempts = client.list_attempts(record.execution_id, None).await.unwrap().items;
        assert_eq!(state(&record), Completed);
        assert_eq!((attempts.len(), attempts[0].worker_id.as_str()), (1, by));
    }
}

async fn crash_recovery(client: &Client) {
    let backup = one(client, "back-up").await;
    assert_eq!((state(&backup), backup.lease_epoch), (Completed, 2));
    assert_eq!((backup.total_attempt_count, backup.lease_reclaim_count), (2, 1));
    assert_eq!(result(client, &backup).await, "4");
}

async fn incident_remediation(client: &Client) {
    let repair = one(client, "repair").await;
    assert_eq!((state(&repair), repair.lease_epoch), (Completed, 2));
    assert_eq!(result(client, &repair).await, "failed over");
}

async fn retry_and_cancel(client: &Client) {
    let fetch = one(client, "fetch-orders").await;
    assert_eq!((state(&fetch), fetch.retry_count), (Cancelled, 3));
    assert_eq!(fetch.cancellation_reason.as_deref(), Some("the partner is closed today"));
    let mirror = one(client, "mirror").await;
    assert_eq!((state(&mirror), mirror.replay_count), (Cancelled, 1));
    assert_eq!(mirror.cancellation_reason.as_deref(), Some("for good"));
}

#[test]
fn worker_runtime_stops_gracefully() {
    let place = Place::embedded();
    let program = env!("CARGO_BIN_EXE_worker-runtime");
    let mut program = Program::start(program, &["--store", place.url()]);
    program.line("report begins");
    let pid = program.pid().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    says_what_its_readme_says("worker-runtime", &program.end());
    place.look(async |client| {
        let report = one(client, "report").await;
        assert_eq!(state(&report), Completed, "it was running, and was let end");
        let mails = everything(client).await;
        assert_eq!(mails.len(), 7);
        assert!(mails.iter().all(|record| record.lease_id.is_none()), "nothing is left running");
    });
}

#[test]
fn a_person_reviews_over_a_server() {
    let place = Place::http();
    let arguments = ["--interactive", "--store", place.url()];
    let mut program = Program::start(env!("CARGO_BIN_EXE_coding-agent"), &arguments);
    for approves in [false, false, true] {
        let line = program.line("waiting for you: ff approve '");
        let id = line.split('\'').nth(1).unwrap().parse().unwrap();
        place.look(async |client| {
            let waitpoint = client.list_waitpoints(id).await.unwrap().remove(0).waitpoint_id;
            match approves {
                true => client.approve(id, waitpoint, "a person", None).await.unwrap(),
                false => client.deny(id, waitpoint, "a person", Some("shorter")).await.unwrap(),
            };
        });
    }
    let said = program.end();
    assert!(said.contains("denied: shorter") && said.contains("done in revision 3"), "{said}");
}

#[test]
fn a_review_at_the_terminal_needs_a_server() {
    let refused = Program::start(env!("CARGO_BIN_EXE_coding-agent"), &["--interactive"]).refusal();
    assert!(refused.contains("`ff approve` needs a server"), "{refused}");
}

#[test]
fn without_arguments_there_is_a_store_for_the_moment() {
    let said = Program::start(env!("CARGO_BIN_EXE_hello"), &[]).end();
    assert!(said.contains("hello Ada"), "{said}");
}

#[test]
fn a_store_that_is_none_is_refused() {
    let refused = Program::start(env!("CARGO_BIN_EXE_hello"), &["--store", "nonsense"]).refusal();
    assert!(refused.contains("the URL names neither a store nor a server"), "{refused}");
}

#[test]
fn every_example_is_run_and_listed() {
    let list = include_str!("../../README.md");
    for name in every_example() {
        assert!(RUN.contains(&&name[..]) || name == "worker-runtime", "{name} is not run");
        let link = format!("[{name}](rust/src/bin/{name})");
        assert!(list.contains(&link), "examples/README.md does not list {name}: {link}");
    }
}
