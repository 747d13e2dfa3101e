//! `ff server` through the built binary: it serves, refuses what it must, and stops in time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where it stopped")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ff_test::servers::{Server, ServerOptions};

const STOP_WITHIN: Duration = Duration::from_secs(15);

/// A process that does not outlive its test.
struct Running {
    child: Child,
    addr: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(store: &str, listen: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ff"));
    command.args(["server", "--store", store, "--listen-addr", listen]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn start(store: &str) -> Running {
    let mut child = command(store, "127.0.0.1:0").stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let addr = line.trim().strip_prefix("listening on http://").unwrap().to_owned();
    Running { child, addr }
}

/// Sends a request on a connection of its own.
fn send(addr: &str, method: &str, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(addr).unwrap();
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n");
    stream.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes()).unwrap();
    stream
}

fn answer(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn it_serves_and_answers_those_who_wait_when_it_stops() {
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("ff.db").display());
    let mut running = start(&store);
    let addr = running.addr.clone();
    let submitted = answer(send(&addr, "POST", "/v1/executions", r#"{"lane":"l","kind":"k"}"#));
    assert!(submitted.starts_with("HTTP/1.1 201"), "{submitted}");
    let worker = r#"{"worker_id":"w","worker_instance_id":"w","boot_id":"b","lanes":["m"]}"#;
    assert!(answer(send(&addr, "POST", "/v1/workers", worker)).starts_with("HTTP/1.1 201"));
    let claim = r#"{"worker_id":"w","worker_instance_id":"w","wait_ms":60000}"#;
    let waiting = send(&addr, "POST", "/v1/leases", claim);
    let followed = send(&addr, "GET", "/v1/events?after=start&wait_ms=60000&lane=m", "");
    assert!(answer(send(&addr, "GET", "/readyz", "")).starts_with("HTTP/1.1 200"));
    let asked = Instant::now();
    let pid = running.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let told = answer(waiting);
    assert!(told.starts_with("HTTP/1.1 200") && told.ends_with(r#"{"tasks":[]}"#), "{told}");
    assert!(answer(followed).starts_with("HTTP/1.1 200"));
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
    assert!(asked.elapsed() < STOP_WITHIN);
}

#[test]
fn a_claim_that_waits_is_answered_when_it_stops_although_the_store_hangs() {
    let store = Server::start(ServerOptions::default());
    let mut running = start(&store.url());
    let addr = running.addr.clone();
    let worker = r#"{"worker_id":"w","worker_instance_id":"w","boot_id":"b","lanes":["m"]}"#;
    assert!(answer(send(&addr, "POST", "/v1/workers", worker)).starts_with("HTTP/1.1 201"));
    let claim = |wait_ms: u32| {
        let claim = r#"{"worker_id":"w","worker_instance_id":"w","wait_ms":"#;
        send(&addr, "POST", "/v1/leases", &format!("{claim}{wait_ms}}}"))
    };
    let waiting = claim(60_000);
    // Whoever comes later goes the same way: once they are answered, the first one waits.
    for _ in 0..20 {
        assert!(answer(claim(0)).starts_with("HTTP/1.1 200"));
    }
    store.pause();
    let asked = Instant::now();
    let pid = running.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let told = answer(waiting);
    assert!(told.starts_with("HTTP/1.1 200") && told.ends_with(r#"{"tasks":[]}"#), "{told}");
    assert!(asked.elapsed() < Duration::from_secs(3), "answered after {:?}", asked.elapsed());
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
    assert!(asked.elapsed() < STOP_WITHIN);
}

#[test]
fn it_stops_while_it_waits_for_its_store() {
    // Nobody listens there.
    let mut running = command("valkey://127.0.0.1:1", "127.0.0.1:0").spawn().unwrap();
    let mut log = BufReader::new(running.stderr.take().unwrap()).lines();
    assert!(log.any(|line| line.unwrap().contains("waiting for valkey")));
    let asked = Instant::now();
    let pid = running.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(running.wait().unwrap().code(), Some(0));
    assert!(asked.elapsed() < STOP_WITHIN);
}

#[test]
fn what_it_cannot_serve_is_refused_at_the_start() {
    for (store, listen, told) in
        [("sqlite::memory:", "0.0.0.0:0", "not loopback"), ("odd:store", "127.0.0.1:0", "no store")]
    {
        let output = command(store, listen).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(told), "{text}");
    }
}
