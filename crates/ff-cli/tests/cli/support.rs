//! A server process, a worker's side of it, and the command.

use std::borrow::BorrowMut;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long a test waits for what must come before it calls it missing.
const PATIENCE: Duration = Duration::from_secs(60);

/// The command, without what the environment says of it.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ff"));
    command.env_clear().args(arguments).stdin(Stdio::null());
    command
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Told {
    pub(crate) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        Self { code: output.status.code().unwrap(), out, err }
    }

    /// It went well: what it answered.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// The answer is one JSON document on one line.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let out = self.ok();
        assert_eq!(out.trim_end().lines().count(), 1, "{out}");
        serde_json::from_str(&out).unwrap()
    }

    /// It was refused with a problem document: its code.
    #[track_caller]
    pub(crate) fn problem(self, exit: i32) -> String {
        assert_eq!(self.code, exit, "{self:?}");
        assert_eq!(self.out, "", "{self:?}");
        let problem: Value = serde_json::from_str(&self.err).unwrap();
        problem["code"].as_str().unwrap().to_owned()
    }
}

/// Runs a command to its end.
pub(crate) fn ff(arguments: &[&str]) -> Told {
    Told::of(&command(arguments).output().unwrap())
}

/// Runs a command that reads.
pub(crate) fn ff_reading(arguments: &[&str], input: &[u8]) -> Told {
    let mut child = command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    Told::of(&child.wait_with_output().unwrap())
}

/// Lines as they come; the channel ends with the stream.
fn lines_of(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// A process that does not outlive its test, and its lines as they come.
pub(crate) struct Running {
    pub(crate) child: Child,
    lines: Receiver<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    pub(crate) fn start(mut command: impl BorrowMut<Command>) -> Self {
        let command = command.borrow_mut();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// With the lines of its log.
    pub(crate) fn start_logging(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = lines_of(child.stderr.take().unwrap());
        Self { child, lines }
    }

    /// The next line that holds `part`.
    #[track_caller]
    pub(crate) fn line_with(&self, part: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = Vec::new();
        while let Ok(line) =
            self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            if line.contains(part) {
                return line;
            }
            seen.push(line);
        }
        panic!("no line with {part:?} in:\n{}", seen.join("\n"));
    }

    /// Waits for its end: the exit code.
    pub(crate) fn ended(&mut self) -> i32 {
        // The stream ends with the process.
        while self.lines.recv_timeout(PATIENCE).is_ok() {}
        self.child.wait().unwrap().code().unwrap()
    }

    pub(crate) fn terminate(&mut self) -> i32 {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        self.ended()
    }
}

/// `ff server` on a store.
pub(crate) struct Site {
    pub(crate) running: Running,
    pub(crate) url: String,
    pub(crate) store: String,
    pub(crate) folder: TempDir,
}

impl Site {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("ff.db").display());
        Self::on(store, folder)
    }

    pub(crate) fn on(store: String, folder: TempDir) -> Self {
        Self::with(store, folder, &[])
    }

    /// With settings of its own.
    pub(crate) fn with(store: String, folder: TempDir, settings: &[&str]) -> Self {
        let serve = ["server", "--store", &store, "--listen-addr", "127.0.0.1:0"];
        let running = Running::start(command(&[&serve, settings].concat()));
        let line = running.line_with("listening on ");
        let url = line.strip_prefix("listening on ").unwrap().to_owned();
        Self { running, url, store, folder }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(arguments);
        command.env("FF_URL", &self.url);
        command
    }

    pub(crate) fn ff(&self, arguments: &[&str]) -> Told {
        Told::of(&self.command(arguments).output().unwrap())
    }

    /// Runs a line as a person pastes it into a shell.
    pub(crate) fn paste(&self, line: &str) -> Told {
        let folder = Path::new(env!("CARGO_BIN_EXE_ff")).parent().unwrap().display();
        let mut shell = Command::new("/bin/sh");
        shell.env_clear().env("FF_URL", &self.url).env("PATH", format!("{folder}:/usr/bin:/bin"));
        Told::of(&shell.args(["-c", line]).output().unwrap())
    }

    /// Submits and gives the id.
    pub(crate) fn submit(&self, arguments: &[&str]) -> String {
        let all = [&["submit", "--lane", "l", "--kind", "k"], arguments].concat();
        self.ff(&all).ok().trim_end().to_owned()
    }

    /// A request as a worker sends it.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        let addr = self.url.strip_prefix("http://").unwrap();
        let path = path.replace('{', "%7B").replace('}', "%7D");
        let body = body.to_string();
        let mut stream = TcpStream::connect(addr).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 20"), "{path}: {text}");
        if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() }
    }

    /// Registers a worker for lane `l` and waits for a task.
    pub(crate) fn claim(&self) -> Task<'_> {
        let worker = json!({
            "worker_id": "w", "worker_instance_id": "w-1", "boot_id": "b", "lanes": ["l"],
        });
        self.post("/v1/workers", &worker);
        let claim = json!({ "worker_id": "w", "worker_instance_id": "w-1", "wait_ms": 30_000 });
        let reply = self.post("/v1/leases", &claim);
        let text = |field: &str| reply["tasks"][0][field].as_str().unwrap().to_owned();
        Task { site: self, id: text("execution_id"), handle: text("handle") }
    }
}

/// A task of a worker.
pub(crate) struct Task<'a> {
    site: &'a Site,
    pub(crate) id: String,
    handle: String,
}

impl Task<'_> {
    pub(crate) fn act(&self, verb: &str, mut body: Value) -> Value {
        body["handle"] = json!(self.handle);
        self.site.post(&format!("/v1/executions/{}/{verb}", self.id), &body)
    }

    pub(crate) fn complete(&self, result: &Value) {
        self.act("complete", json!({ "result_json": result }));
    }

    pub(crate) fn fail(&self) {
        self.act("fail", json!({ "reason": "no luck", "category": "permanent" }));
    }

    pub(crate) fn print(&self, kind: &str, text: &str) {
        let frame = json!({ "type": kind, "payload_json": text });
        self.act("frames", json!({ "frames": [frame] }));
    }

    /// Waits for a person under these keys: the tokens.
    pub(crate) fn suspend(&self, keys: &[&str]) -> Vec<String> {
        let bindings: Vec<Value> =
            keys.iter().map(|key| json!({ "fresh": { "key": key } })).collect();
        let single = |key: &&str| json!({ "single": { "waitpoint_key": key } });
        let all: Vec<Value> = keys.iter().map(single).collect();
        let condition = json!({ "all_of": all });
        let reply = self.act("suspend", json!({ "bindings": bindings, "condition": condition }));
        let waitpoints = reply["waitpoints"].as_array().unwrap();
        waitpoints.iter().map(|it| it["token"].as_str().unwrap().to_owned()).collect()
    }
}
