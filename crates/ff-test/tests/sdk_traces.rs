//! The span of a handler reaches a collector, in the trace of whoever submitted the task.

use std::net::TcpListener;
use std::thread;

use ff_core::operation::Submit;
use ff_core::state::PublicState;
use ff_observe::traces::Exporter;
use ff_sdk::layers::TraceTasks;
use ff_test::collector;
use ff_test::sdk::{Running, Workshop, on_sqlite};
use tracing_subscriber::layer::SubscriberExt as _;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

async fn handle_one(workshop: &Workshop) {
    let runtime = workshop.runtime().await.layer(TraceTasks);
    let running = Running::start(runtime.on("resize", || async { "done" }));
    let context = Some(format!("00-{TRACE}-00f067aa0ba902b7-01"));
    let submit = Submit { trace_context: context, ..workshop.once("resize") };
    let id = workshop.submit(submit).await;
    workshop.until(id, PublicState::Completed).await;
    running.stop().await;
}

#[test]
fn a_handler_belongs_to_the_trace_of_its_submit() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let collected = thread::spawn(move || collector::take(&listener));
    let exporter = Exporter::new(&endpoint).unwrap();
    let subscriber = tracing_subscriber::registry().with(exporter.layer());
    tracing::subscriber::set_global_default(subscriber).unwrap();
    on_sqlite(|workshop| Box::pin(handle_one(workshop)));
    exporter.finish();
    let (_, body) = collected.join().unwrap();
    let id: Vec<u8> =
        (0..16).map(|at| u8::from_str_radix(&TRACE[2 * at..][..2], 16).unwrap()).collect();
    for part in [&id[..], b"handle resize", b"execution_id", b"attempt", b"completed"] {
        assert!(collector::holds(&body, part), "{}", String::from_utf8_lossy(part));
    }
}
