//! A program under way: its lines as it prints them.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest that an example may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// An example that runs. It is killed with the test that started it.
pub(crate) struct Program {
    child: Child,
    deadline: Instant,
    lines: Receiver<String>,
    said: Vec<String>,
    complaints: Option<JoinHandle<String>>,
}

impl Program {
    pub(crate) fn start(program: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .env_remove("FF_URL")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut errors = child.stderr.take().unwrap();
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let complaints = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = errors.read_to_string(&mut text);
            text
        });
        let deadline = Instant::now() + PATIENCE;
        Self { child, deadline, lines, said: Vec::new(), complaints: Some(complaints) }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line that begins so.
    pub(crate) fn line(&mut self, beginning: &str) -> String {
        loop {
            match self.next() {
                Some(line) if line.starts_with(beginning) => return line,
                Some(_) => {}
                None => panic!("{beginning:?} was not said: {:#?}", self.said),
            }
        }
    }

    /// Waits until it has ended well: all that it has said.
    pub(crate) fn end(mut self) -> String {
        let (status, complaints) = self.finish();
        assert!(status.success(), "{status}: {:#?}\n{complaints}", self.said);
        self.said.join("\n")
    }

    /// Waits until it has ended badly: what it complains about.
    pub(crate) fn refusal(mut self) -> String {
        let (status, complaints) = self.finish();
        assert!(!status.success(), "it ended well: {:#?}", self.said);
        complaints
    }

    fn finish(&mut self) -> (ExitStatus, String) {
        while self.next().is_some() {}
        let status = self.child.wait().unwrap();
        (status, self.complaints.take().unwrap().join().unwrap())
    }

    fn next(&mut self) -> Option<String> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => {
                self.said.push(line.clone());
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("it takes too long: {:#?}", self.said),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
