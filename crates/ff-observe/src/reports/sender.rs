//! The queue of reports, and the thread that sends them.

use std::panic::{self, PanicHookInfo};
use std::sync::mpsc as blocking;
use std::thread;
use std::time::Duration;

use reqwest::Client;
use tokio::sync::mpsc;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use super::dsn::Dsn;
use super::event::Report;
use super::layer::Errors;

/// Reports that wait to be sent. In a storm of errors the first say what there is to say.
const WAITING_MOST: usize = 100;

/// Longest time of one report.
const SENDING: Duration = Duration::from_secs(5);

const CLIENT: &str = concat!("flowfabric/", env!("CARGO_PKG_VERSION"));

/// Reports errors and panics of this process.
pub struct Reporter {
    queue: Queue,
    /// Tells of the end of the thread.
    ended: blocking::Receiver<()>,
}

/// Where reports are put.
#[derive(Clone)]
pub(super) struct Queue(mpsc::Sender<Option<Vec<u8>>>);

impl Queue {
    pub(super) fn put(&self, report: &Report) {
        // Whoever finds no place is one of very many.
        let _ = self.0.try_send(Some(report.envelope()));
    }
}

impl Reporter {
    /// Begins to take reports. Whether anybody listens at the address is not asked.
    pub fn start(dsn: Dsn) -> std::io::Result<Self> {
        let (sender, waiting) = mpsc::channel(WAITING_MOST);
        let (end, ended) = blocking::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("ff-reports".to_owned()).spawn(move || {
            runtime.block_on(send_all(&dsn, waiting));
            // Nobody may wait for it.
            let _ = end.send(());
        })?;
        Ok(Self { queue: Queue(sender), ended })
    }

    /// What takes up errors of the log.
    pub fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(&self) -> impl Layer<S> + use<S> {
        Errors(self.queue.clone())
    }

    /// Reports panics as well, after whatever was done with them before.
    pub fn hear_panics(&self) {
        let (queue, before) = (self.queue.clone(), panic::take_hook());
        panic::set_hook(Box::new(move |panicked| {
            before(panicked);
            queue.put(&of_panic(panicked));
        }));
    }

    /// Sends what waits, for so long at most: whether all of it was sent.
    pub fn finish(self, within: Duration) -> bool {
        // With a full queue there is no place to say that it is the end; the time is then what ends it.
        let _ = self.queue.0.try_send(None);
        self.ended.recv_timeout(within).is_ok()
    }
}

fn of_panic(panicked: &PanicHookInfo<'_>) -> Report {
    let message = panicked.payload_as_str().unwrap_or("a panic without a message").to_owned();
    let place = panicked.location().map(|at| format!("{}:{}", at.file(), at.line()));
    Report { panicked: true, message, place: place.unwrap_or_default(), fields: Vec::new() }
}

/// Until the end is in the queue.
async fn send_all(dsn: &Dsn, mut waiting: mpsc::Receiver<Option<Vec<u8>>>) {
    let Ok(client) = Client::builder().timeout(SENDING).user_agent(CLIENT).build() else {
        tracing::warn!("errors are not reported: there is no HTTP client");
        return;
    };
    let key = &dsn.key;
    let auth = format!("Sentry sentry_version=7, sentry_client={CLIENT}, sentry_key={key}");
    while let Some(Some(envelope)) = waiting.recv().await {
        let request = client.post(dsn.envelopes.clone()).header("x-sentry-auth", &auth);
        let request = request.header("content-type", "application/x-sentry-envelope");
        let sent = request.body(envelope).send().await;
        if let Err(error) = sent.and_then(reqwest::Response::error_for_status) {
            // An error here would be reported, and so on for ever.
            tracing::warn!(error = %error.without_url(), "an error could not be reported");
        }
    }
}
