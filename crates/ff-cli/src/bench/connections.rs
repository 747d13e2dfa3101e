//! What connections cost that only wait: claims that wait for work, and followers of events.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use ff_engine::Shutdown;
use ff_server::{Server, ServerOptions};
use serde::Serialize;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::command::{Named, OnStore};
use super::host::{open_files_max, resident_bytes};
use super::{Faults, Latencies, Measured, Target, progress};

/// Longest wait of a claim: none is answered while it is measured.
const WAIT_MS: u64 = 60_000;

/// Opening may take so long in all, so that all of them still wait at the end.
const OPENING_MOST: Duration = Duration::from_secs(45);

/// Open files besides the connections: the store, the listener, the runtime.
const OTHER_FILES: u64 = 100;

/// Memory of a server for each connection that waits, and how soon it answers others meanwhile
///
/// Half of the connections are claims that wait for work, half follow events (SSE). Both ends stand
/// in this process, so that each takes two open files, and the memory is that of both.
#[derive(Debug, Clone, Args, Serialize)]
#[command(after_help = "Example: ulimit -n 20000; ff bench connections --connections 5000")]
pub(crate) struct Connections {
    /// Connections that wait at the same time
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    connections: u32,
    /// Requests to time while they wait
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    samples: u32,
}

impl Named for Connections {
    const NAME: &'static str = "connections";
}

impl OnStore for Connections {
    async fn run(&self, target: &Target) -> anyhow::Result<Measured> {
        self.check_open_files(open_files_max())?;
        let (stop, shutdown) = Shutdown::channel();
        let places = self.connections as usize + 1;
        let options = ServerOptions {
            listen_addr: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            max_connections: places,
            max_stream_tails: places,
            ..ServerOptions::default()
        };
        let server = Server::bind(Arc::clone(&target.backend), options, shutdown).await?;
        let addr = server.local_addr()?;
        let server = tokio::spawn(server.run());
        let mut other = TcpStream::connect(addr).await?;
        ask(&mut other).await?;
        let before = resident_bytes();
        let begun = Instant::now();
        let waiting = self.open(addr, target).await?;
        let (latencies, faults) = self.sample(&mut other, &waiting).await?;
        let measured = self.measured(before, (begun, latencies, faults));
        drop((waiting, other));
        stop.send_replace(true);
        server.await?;
        Ok(measured)
    }
}

impl Connections {
    fn check_open_files(&self, most: Option<u64>) -> anyhow::Result<()> {
        let needed = 2 * u64::from(self.connections) + OTHER_FILES;
        let most = most.unwrap_or(u64::MAX);
        ensure!(
            needed <= most,
            "{} connections need {needed} open files and this process may have {most}: \
             run `ulimit -n {needed}` before it, or ask for fewer with --connections",
            self.connections
        );
        Ok(())
    }

    /// Opens them all; each was seen to wait, or to be followed, as far as that shows.
    async fn open(&self, addr: SocketAddr, target: &Target) -> anyhow::Result<Vec<TcpStream>> {
        let deadline = Instant::now() + OPENING_MOST;
        let bar = progress::bar("connecting", self.connections.into());
        let claim = claim_of(target)?;
        let mut waiting = Vec::with_capacity(self.connections as usize);
        for n in 0..self.connections {
            ensure!(Instant::now() < deadline, "only {n} were open within {OPENING_MOST:?}");
            let mut stream = TcpStream::connect(addr).await.context("a connection")?;
            if n % 2 == 0 {
                stream.write_all(claim.as_bytes()).await?;
            } else {
                follow(&mut stream).await?;
            }
            waiting.push(stream);
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(waiting)
    }

    /// Times requests of somebody else, and looks whether all others still wait.
    async fn sample(
        &self,
        other: &mut TcpStream,
        waiting: &[TcpStream],
    ) -> anyhow::Result<(Latencies, Faults)> {
        let (mut latencies, faults) = (Latencies::new()?, Faults::default());
        for _ in 0..self.samples {
            let begun = Instant::now();
            ask(other).await?;
            latencies.record(begun.elapsed());
        }
        // Who was answered, or cut, waits no more. A comment that keeps a stream alive is neither.
        let answered = |stream: &&TcpStream| {
            let mut bytes = [0; 8];
            matches!(stream.try_read(&mut bytes), Ok(read) if !bytes[..read].contains(&b':'))
        };
        for _ in waiting.iter().filter(answered) {
            faults.note(&"a connection did not wait");
        }
        Ok((latencies, faults))
    }

    fn measured(
        &self,
        before: Option<u64>,
        (begun, latencies, faults): (Instant, Latencies, Faults),
    ) -> Measured {
        let after = resident_bytes();
        let more = before.zip(after).map(|(before, after)| after.saturating_sub(before) as f64);
        let megabytes = |bytes: f64| bytes / f64::from(1 << 20);
        Measured {
            duration: begun.elapsed(),
            latency: latencies.percentiles(),
            errors: faults.count(),
            own: vec![
                ("resident_mb", after.map(|bytes| megabytes(bytes as f64))),
                ("connections_mb", more.map(megabytes)),
                ("bytes_per_connection", more.map(|bytes| bytes / f64::from(self.connections))),
            ],
            ..Measured::default()
        }
    }
}

/// A claim that waits for work that never comes.
fn claim_of(target: &Target) -> anyhow::Result<String> {
    let claim = target.claim(1);
    let lane = claim.lanes.first().context("a lane")?.lane.to_string();
    let body = json!({
        "worker_id": claim.worker_id, "worker_instance_id": claim.worker_instance_id,
        "lanes": [lane], "capabilities": [], "wait_ms": WAIT_MS,
    });
    let body = body.to_string();
    let length = body.len();
    let head = format!("POST /v1/leases HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}");
    Ok(format!("{head}\r\n\r\n{body}"))
}

/// Follows events; the head of the answer has come.
async fn follow(stream: &mut TcpStream) -> anyhow::Result<()> {
    let request = "GET /v1/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let head = head_of(stream).await?;
    ensure!(head.starts_with("HTTP/1.1 200"), "events are not followed: {head}");
    Ok(())
}

/// One request of somebody who does not wait.
async fn ask(stream: &mut TcpStream) -> anyhow::Result<()> {
    let request = "HEAD /v1/executions HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let head = head_of(stream).await?;
    ensure!(head.starts_with("HTTP/1.1 200"), "a request was refused: {head}");
    Ok(())
}

/// Everything up to the empty line, and what came with it.
async fn head_of(stream: &mut TcpStream) -> anyhow::Result<String> {
    let (mut head, mut bytes) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut bytes).await?;
        ensure!(read > 0, "the server closed a connection");
        head.extend(&bytes[..read]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_open_files_are_told_before_anything_is_opened() {
        let scenario = Connections { connections: 5_000, samples: 1 };
        let told = scenario.check_open_files(Some(1024)).unwrap_err().to_string();
        assert!(told.contains("ulimit -n 10100") && told.contains("1024"), "{told}");
        assert!(scenario.check_open_files(Some(10_100)).is_ok());
        assert!(scenario.check_open_files(None).is_ok());
    }
}
