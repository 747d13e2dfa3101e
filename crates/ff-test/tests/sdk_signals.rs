//! What the SDK says to those who wait: signals, decisions, webhooks, and an operator's grants.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::time::Duration;

use ff_core::capability::Capabilities;
use ff_core::error::Code;
use ff_core::id::{ExecutionId, WaitpointKey};
use ff_core::operation::{IssueReclaimGrant, IssuedReclaimGrant};
use ff_core::token::WaitpointToken;
use ff_sdk::bridge::{BridgeError, verify_and_deliver};
use ff_sdk::{
    FlowFabricAdminClient, FlowFabricWorker, ReclaimOutcome, SdkError, Signal, SignalOutcome,
    Submission, SuspendOutcome, Suspension, WaitpointTicket,
};
use ff_test::sdk::Workshop;
use uuid::Uuid;

ff_test::on_every_way! {
    a_signal_resumes_and_repeats_count_once
    an_operator_decides_without_a_token
    every_decision_counts
    a_webhook_is_checked_before_it_is_heard
    tokens_are_read_and_replaced
    a_grant_comes_by_way_of_the_server
    a_lost_lease_is_reclaimed_by_grant
    settings_of_an_admin_are_checked
}

fn key(text: &str) -> WaitpointKey {
    text.parse().unwrap()
}

/// An execution that waits at `gate`, and the ticket of its waitpoint.
async fn waiting(
    workshop: &Workshop,
    on: Suspension,
) -> (FlowFabricWorker, ExecutionId, WaitpointTicket) {
    let worker = workshop.worker().await;
    let execution = workshop.client().submit(Submission::new("test").lane("work")).await.unwrap();
    let task = worker.claim_next().await.unwrap().unwrap();
    let SuspendOutcome::Suspended(at) = task.suspend_on(on).await.unwrap() else {
        panic!("satisfied already")
    };
    (worker, execution.id(), at.waitpoint().unwrap().clone())
}

async fn a_signal_resumes_and_repeats_count_once(workshop: &Workshop) {
    let on = Suspension::signal("gate", "open").unwrap();
    let (worker, id, ticket) = waiting(workshop, on).await;
    let open = waitpoints(workshop, id).await;
    assert_eq!(open, ["gate"]);
    let inbox = workshop.client().list_pending_waitpoints(Vec::new(), None).await.unwrap();
    assert_eq!(inbox.items.len(), 1);
    let other = Signal::new("other", ticket.token.clone());
    let kept = worker.deliver_signal(id, ticket.waitpoint_id, other).await.unwrap();
    assert!(matches!(kept, SignalOutcome::Accepted { .. }), "{kept:?}");
    let signal = Signal::new("open", ticket.token.clone()).idempotency_key("k").payload("now");
    let said = workshop.client().deliver_signal(id, key("gate"), signal.clone()).await.unwrap();
    let SignalOutcome::TriggeredResume { signal_id } = said else { panic!("{said:?}") };
    let again = workshop.client().deliver_signal(id, key("gate"), signal).await.unwrap();
    assert_eq!(again, SignalOutcome::Duplicate { existing: signal_id });
    let task = worker.claim_next().await.unwrap().unwrap();
    let heard = task.resume_signals().await.unwrap();
    assert!(heard.iter().any(|signal| signal.signal_id == signal_id));
    let signals = workshop.client().list_signals(id, 0).await.unwrap().items;
    assert_eq!(signals.len(), 2);
    task.complete(None).await.unwrap();
}

async fn waitpoints(workshop: &Workshop, id: ExecutionId) -> Vec<String> {
    let open = workshop.client().list_waitpoints(id).await.unwrap();
    open.into_iter().map(|waitpoint| waitpoint.key.to_string()).collect()
}

async fn an_operator_decides_without_a_token(workshop: &Workshop) {
    let (worker, id, _) = waiting(workshop, Suspension::approval("gate").unwrap()).await;
    let client = workshop.client();
    let said = client.approve(id, key("gate"), "ada", Some("fine")).await.unwrap();
    assert!(matches!(said, SignalOutcome::TriggeredResume { .. }), "{said:?}");
    let task = worker.claim_next().await.unwrap().unwrap();
    let SuspendOutcome::Suspended(_) =
        task.suspend_on(Suspension::approval("again").unwrap()).await.unwrap()
    else {
        panic!("satisfied already")
    };
    let said = client.deny(id, key("again"), "ada", None).await.unwrap();
    assert!(matches!(said, SignalOutcome::TriggeredResume { .. }), "{said:?}");
    let task = worker.claim_next().await.unwrap().unwrap();
    let heard = task.resume_signals().await.unwrap();
    assert_eq!(heard.last().unwrap().name.as_str(), "denied");
    task.suspend_on(Suspension::approval("third").unwrap()).await.unwrap();
    client.resume(id, "an operator").await.unwrap();
    worker.claim_next().await.unwrap().unwrap().complete(None).await.unwrap();
}

async fn every_decision_counts(workshop: &Workshop) {
    let suspension = || Suspension::approval("gate").unwrap();
    let (worker, id, _) = waiting(workshop, suspension()).await;
    let client = workshop.client();
    for round in 0..3 {
        let said = client.deny(id, key("gate"), "ada", Some("again")).await.unwrap();
        assert!(matches!(said, SignalOutcome::TriggeredResume { .. }), "{round}: {said:?}");
        let task = worker.claim_next().await.unwrap().expect("it goes on");
        task.suspend_on(suspension()).await.unwrap();
    }
    assert_eq!(client.list_signals(id, 0).await.unwrap().items.len(), 3);
}

async fn a_webhook_is_checked_before_it_is_heard(workshop: &Workshop) {
    let on = Suspension::signal("gate", "open").unwrap();
    let (_worker, id, ticket) = waiting(workshop, on).await;
    let client = workshop.client();
    let nobody = ExecutionId::solo(Uuid::now_v7(), &workshop.backend.settings().partitions);
    let said = |token: WaitpointToken| Signal::new("open", token);
    let text = ticket.token.expose();
    let last = if text.ends_with('0') { "1" } else { "0" };
    let forged = WaitpointToken::parse(&format!("{}{last}", &text[..text.len() - 1])).unwrap();
    let refused = verify_and_deliver(&client, id, key("gate"), said(forged)).await;
    assert_eq!(refused, Err(BridgeError::TokenMismatch));
    let good = ticket.token.clone();
    let refused = verify_and_deliver(&client, nobody, key("gate"), said(good.clone())).await;
    let unknown = [BridgeError::UnknownWaitpoint, BridgeError::TokenMismatch];
    assert!(unknown.contains(&refused.unwrap_err()));
    let bad_name = Signal::new("", good.clone());
    let refused = verify_and_deliver(&client, id, key("gate"), bad_name).await.unwrap_err();
    assert!(matches!(refused, BridgeError::Backend(SdkError::Config { .. })), "{refused}");
    let heard = verify_and_deliver(&client, id, key("gate"), said(good)).await.unwrap();
    assert!(matches!(heard, SignalOutcome::TriggeredResume { .. }), "{heard:?}");
}

async fn tokens_are_read_and_replaced(workshop: &Workshop) {
    let on = Suspension::signal("gate", "open").unwrap();
    let (_worker, id, ticket) = waiting(workshop, on).await;
    let client = workshop.client();
    let admin = FlowFabricAdminClient::connect_with(workshop.backend.clone());
    let read = admin.read_waitpoint_token(id, key("gate")).await.unwrap().unwrap();
    assert_eq!(read, ticket);
    assert_eq!(client.read_waitpoint_token(id, key("gate")).await.unwrap(), ticket);
    assert!(admin.read_waitpoint_token(id, key("nowhere")).await.unwrap().is_none());
    let nobody = ExecutionId::solo(Uuid::now_v7(), &workshop.backend.settings().partitions);
    assert!(admin.read_waitpoint_token(nobody, key("gate")).await.unwrap().is_none());
    let newer = client.remint_waitpoint_token(id, key("gate"), None).await.unwrap();
    assert_ne!(newer.token, ticket.token);
    let old = Signal::new("open", ticket.token);
    let refused = client.deliver_signal(id, key("gate"), old).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::InvalidToken));
    client.close_waitpoint(id, key("gate"), "too late").await.unwrap();
    let late = client.deliver_signal(id, key("gate"), Signal::new("open", newer.token)).await;
    assert!(late.is_err());
}

async fn a_grant_comes_by_way_of_the_server(workshop: &Workshop) {
    let worker = workshop.worker_with(workshop.config().max_concurrent_tasks(1)).await;
    let admin = FlowFabricAdminClient::connect_with(workshop.backend.clone());
    let ttl = Duration::from_secs(5);
    assert!(worker.claim_via_server(&admin, "work", ttl).await.unwrap().is_none());
    let execution = workshop.client().submit(Submission::new("test").lane("work")).await.unwrap();
    let task = worker.claim_via_server(&admin, "work", ttl).await.unwrap().unwrap();
    assert_eq!(task.execution_id(), execution.id());
    let full = worker.claim_via_server(&admin, "work", ttl).await.unwrap_err();
    assert_eq!(full, SdkError::WorkerAtCapacity);
    task.complete(None).await.unwrap();
    let bad = worker.claim_via_server(&admin, "", ttl).await.unwrap_err();
    assert!(matches!(bad, SdkError::Config { field: "lane", .. }), "{bad}");
}

async fn a_lost_lease_is_reclaimed_by_grant(workshop: &Workshop) {
    let worker = workshop.worker().await;
    let admin = FlowFabricAdminClient::connect_with(workshop.backend.clone());
    let execution = workshop.client().submit(Submission::new("test").lane("work")).await.unwrap();
    let issue = IssueReclaimGrant {
        execution_id: execution.id(),
        worker_id: "w".parse().unwrap(),
        worker_instance_id: Some(worker.worker_instance_id().parse().unwrap()),
        lane: "work".parse().unwrap(),
        capabilities: Capabilities::default(),
        grant_ttl_ms: 5_000,
    };
    let not_yet = admin.issue_reclaim_grant(issue.clone()).await.unwrap();
    assert!(matches!(not_yet, IssuedReclaimGrant::NotReclaimable { .. }), "{not_yet:?}");
    let task = worker.claim_next().await.unwrap().unwrap();
    workshop.client().revoke_lease(execution.id(), "test").await.unwrap();
    let IssuedReclaimGrant::Granted(grant) = admin.issue_reclaim_grant(issue).await.unwrap() else {
        panic!("no grant")
    };
    let reclaimed = worker.claim_from_reclaim_grant(&grant).await.unwrap();
    let ReclaimOutcome::Claimed(second) = reclaimed else { panic!("{reclaimed:?}") };
    assert!(second.lease_epoch() > task.lease_epoch());
    second.complete(None).await.unwrap();
    assert!(task.complete(None).await.is_err());
}

async fn settings_of_an_admin_are_checked(workshop: &Workshop) {
    let admin = FlowFabricAdminClient::connect_with(workshop.backend.clone());
    let refused = admin.rotate_waitpoint_secret("a:b", &"5e".repeat(32), None).await.unwrap_err();
    assert!(matches!(refused, SdkError::Config { field: "new_kid", .. }), "{refused}");
    let refused = admin.rotate_waitpoint_secret("k9", "5e", None).await.unwrap_err();
    assert!(matches!(refused, SdkError::Config { field: "new_secret_hex", .. }), "{refused}");
    assert!(admin.in_namespace("Not A Namespace").is_err());
    let nowhere = FlowFabricAdminClient::new("nowhere").await.err().unwrap();
    assert!(matches!(nowhere, SdkError::Config { field: "url", .. }), "{nowhere}");
    let store = FlowFabricAdminClient::with_token("sqlite::memory:", "t").await.err().unwrap();
    assert!(matches!(store, SdkError::Config { field: "token", .. }), "{store}");
}

/// Secrets do not leave this process over HTTP.
mod beside_the_store {
    use super::*;

    ff_test::on_both_stores! {
        a_rotated_secret_signs_from_then_on
    }

    async fn a_rotated_secret_signs_from_then_on(workshop: &Workshop) {
        let worker = workshop.worker().await;
        let secret = "5e".repeat(32);
        let rotated = worker.rotate_waitpoint_hmac_secret_all("next", &secret, None).await.unwrap();
        assert_eq!((rotated.current_kid.as_str(), rotated.rotated), ("next", true));
        let again = worker.rotate_waitpoint_hmac_secret_all("next", &secret, None).await.unwrap();
        assert!(!again.rotated);
        workshop.client().submit(Submission::new("test").lane("work")).await.unwrap();
        let task = worker.claim_next().await.unwrap().unwrap();
        let ticket = task.create_pending_waitpoint("gate", None).await.unwrap();
        assert_eq!(ticket.token.kid().as_str(), "next");
    }
}
