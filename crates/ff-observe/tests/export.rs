//! Spans reach a collector, in the trace that the caller named.

use std::net::TcpListener;
use std::thread;

use ff_observe::traces::{self, Exporter};
use ff_test::collector;
use tracing_subscriber::layer::SubscriberExt as _;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

#[test]
fn spans_reach_a_collector() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let collected = thread::spawn(move || collector::take(&listener));
    let exporter = Exporter::new(&endpoint).unwrap();
    let subscriber = tracing_subscriber::registry().with(exporter.layer());
    tracing::subscriber::with_default(subscriber, || {
        let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
        let span = traces::request("POST", "/v1/executions", Some(&parent));
        let context = traces::context(&span).expect("a collector listens");
        assert_eq!(&context[3..35], TRACE);
        assert_ne!(context, parent, "it is the span's own");
        traces::answered(&span, 201);
    });
    exporter.finish();
    let (line, body) = collected.join().unwrap();
    assert!(line.starts_with("POST /v1/traces "), "{line}");
    let id: Vec<u8> =
        (0..16).map(|at| u8::from_str_radix(&TRACE[2 * at..][..2], 16).unwrap()).collect();
    for part in [&id[..], b"POST /v1/executions", b"flowfabric"] {
        assert!(collector::holds(&body, part));
    }
}

#[test]
fn without_a_collector_there_is_no_context() {
    let span = traces::request("GET", "/", None);
    assert_eq!(traces::context(&span), None);
}
