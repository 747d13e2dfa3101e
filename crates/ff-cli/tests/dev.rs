//! `ff dev` through the built binary: it works, owns its file, stops cleanly and forgets nothing.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where it stopped")]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long a test waits for what must come before it calls it missing.
const PATIENCE: Duration = Duration::from_secs(30);
const STOP_WITHIN: Duration = Duration::from_secs(15);

/// A process that does not outlive its test.
struct Dev {
    child: Child,
    lines: Receiver<String>,
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(store: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ff"));
    let arguments = ["dev", "--demo", "--listen-addr", "127.0.0.1:0", "--store", store];
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn ff(arguments: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_ff")).args(arguments).output().unwrap()
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

impl Dev {
    fn start(store: &str) -> Self {
        Self::of(&mut command(store))
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next line that holds all of `parts`.
    #[track_caller]
    fn line_with(&self, parts: &[&str]) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(deadline - Instant::now()) {
            if parts.iter().all(|part| line.contains(part)) {
                return line;
            }
            seen.push(line);
        }
        panic!("no line with {parts:?} in:\n{}", seen.join("\n"));
    }

    /// Asks it to stop; gives back how it ended and the rest of what it said.
    fn terminate(mut self) -> (ExitStatus, Vec<String>) {
        let asked = Instant::now();
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let mut rest = Vec::new();
        // The stream ends with the process.
        while let Ok(line) = self.lines.recv_timeout(STOP_WITHIN.saturating_sub(asked.elapsed())) {
            rest.push(line);
        }
        assert!(asked.elapsed() < STOP_WITHIN, "it did not stop in time: {rest:?}");
        (self.child.wait().unwrap(), rest)
    }
}

#[test]
fn it_works_stops_cleanly_and_forgets_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ff.db");
    let store = format!("sqlite:{}", file.display());

    let first = Dev::start(&store);
    first.line_with(&["store", file.to_str().unwrap()]);
    first.line_with(&["kept", "0 executions"]);
    first.line_with(&["serving", "http://127.0.0.1:"]);
    first.line_with(&["try", "curl -s http://127.0.0.1:", "/v1/executions -d"]);
    first.line_with(&["try", "ff --url http://127.0.0.1:", "ls"]);
    let approve = first.line_with(&["try", "approve"]);
    let review = approve.split('\'').nth(1).unwrap();
    first.line_with(&["execution.submitted", "demo", "plan"]);
    first.line_with(&["flow.created", "demo"]);
    first.line_with(&["execution.completed", "demo", "plan", "success"]);
    first.line_with(&[review, "execution.suspended"]);
    let url = approve.split(' ').find(|word| word.starts_with("http://")).unwrap();
    let approved = ff(&["--url", url, "approve", review]);
    assert_eq!(approved.status.code(), Some(0), "{approved:?}");
    first.line_with(&[review, "execution.completed", "success"]);
    first.line_with(&["execution.completed", "publish", "success"]);

    let second = command(&store).output().unwrap();
    assert_eq!(second.status.code(), Some(8));
    let told = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(told.contains(&first.child.id().to_string()), "the owner is named: {told}");
    assert!(told.contains("another `ff dev`") && !told.contains("leave --store out"), "{told}");

    let (status, rest) = first.terminate();
    assert_eq!(status.code(), Some(0), "{rest:?}");
    assert!(
        rest.iter().any(|line| line.contains("stopped  6 executions (6 completed)")),
        "{rest:?}"
    );

    let left = ff(&["--store", &store, "worker", "ls", "--quiet"]);
    assert_eq!((left.status.code(), left.stdout.as_slice()), (Some(0), &b""[..]), "{left:?}");
    let again = Dev::start(&store);
    again.line_with(&["kept", "6 executions (6 completed)"]);
    again.line_with(&["execution.completed"]);
    let (status, _) = again.terminate();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn without_a_demonstration_it_is_quiet() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ff"));
    command.args(["dev", "--listen-addr", "127.0.0.1:0", "--store", "sqlite::memory:"]);
    let dev = Dev::of(command.stdout(Stdio::piped()));
    let url = dev.line_with(&["serving"]).replace("serving  ", "");
    dev.line_with(&["stop", "Ctrl-C"]);
    let submit = ["--url", &url, "-q", "submit", "--lane", "l", "--kind", "k"];
    assert!(ff(&submit).status.success());
    let (status, rest) = dev.terminate();
    assert_eq!(status.code(), Some(0));
    let said: Vec<&String> = rest.iter().filter(|line| !line.is_empty()).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("stopped  1 executions (1 waiting)"), "{said:?}");
}

#[test]
fn a_store_that_cannot_be_opened_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("no-store");
    std::fs::write(&file, "this is no database; it is long enough to be told from an empty one")
        .unwrap();
    let cases = [
        (format!("sqlite:{}", file.display()), "not a database"),
        ("sqlite:".to_owned(), "names no file"),
        ("sqlite:ff.db?durability=maybe".to_owned(), "durability"),
    ];
    for (store, told) in cases {
        let output = command(&store).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{store}: {text}");
        assert!(text.contains(told), "{store}: {text}");
    }
}

#[test]
fn an_address_in_use_is_told_before_a_store_is_made() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("ff.db").display());
    for process in ["dev", "server"] {
        let output = ff(&[process, "--store", &store, "--listen-addr", &addr]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{process}: {text}");
        let parts = [addr.as_str(), "--listen-addr", "another `ff dev`"];
        assert!(parts.iter().all(|part| text.contains(part)), "{process}: {text}");
    }
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
}

#[test]
fn the_version_is_told() {
    for argument in ["version", "--version"] {
        let output = Command::new(env!("CARGO_BIN_EXE_ff")).arg(argument).output().unwrap();
        let expected = format!("ff {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ff"))
        .args(["dev", "--demo", "--listen-addr", "127.0.0.1:0"])
        .args(["--store", &format!("sqlite:{}", directory.path().join("ff.db").display())])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Dropped at once: the next line that is printed finds nobody.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
}
