//! Errors and panics reach whoever speaks Sentry's protocol, without secrets, and a stop waits for them.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use ff_observe::reports::{Dsn, Reporter};
use ff_test::collector;
use tracing_subscriber::layer::SubscriberExt as _;

const PATIENCE: Duration = Duration::from_secs(60);

fn reporter_to(listener: &TcpListener) -> Reporter {
    let dsn: Dsn = format!("http://abc123@{}/7", listener.local_addr().unwrap()).parse().unwrap();
    Reporter::start(dsn).unwrap()
}

#[test]
fn errors_and_panics_are_reported_and_a_stop_waits_for_them() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let reporter = reporter_to(&listener);
    let taken = thread::spawn(move || {
        let (first, second) = (collector::take(&listener), collector::take(&listener));
        [first, second].map(|(line, body)| (line, String::from_utf8(body).unwrap()))
    });
    let subscriber = tracing_subscriber::registry().with(reporter.layer());
    tracing::subscriber::with_default(subscriber, || {
        tracing::warn!("a warning is none");
        let store = "valkey://me:hunter2@h:1";
        tracing::error!(api_token = "t0k3n", %store, count = 3, "a request met a bug");
    });
    reporter.hear_panics();
    thread::spawn(|| panic!("it broke at {}", "redis://x:hunter2@h")).join().unwrap_err();
    assert!(reporter.finish(PATIENCE), "both were sent");
    let [(line, error), (_, panicked)] = taken.join().unwrap();
    assert!(line.starts_with("POST /api/7/envelope/ "), "{line}");
    for part in ["a request met a bug", "\"level\":\"error\"", "\"count\":\"3\"", "[redacted]@h:1"]
    {
        assert!(error.contains(part), "{part} is not in {error}");
    }
    for part in ["it broke at", "\"level\":\"fatal\"", "reports.rs:"] {
        assert!(panicked.contains(part), "{part} is not in {panicked}");
    }
    for secret in ["hunter2", "t0k3n", "abc123"] {
        assert!(!error.contains(secret) && !panicked.contains(secret), "{secret} is told");
    }
}

#[test]
fn a_stop_does_not_wait_for_ever() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let reporter = reporter_to(&listener);
    let subscriber = tracing_subscriber::registry().with(reporter.layer());
    // Whoever accepts nothing answers nothing.
    tracing::subscriber::with_default(subscriber, || tracing::error!("nobody hears it"));
    let begun = Instant::now();
    assert!(!reporter.finish(Duration::from_millis(50)));
    assert!(begun.elapsed() < Duration::from_secs(5));
}
