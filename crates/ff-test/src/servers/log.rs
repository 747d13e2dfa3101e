//! What a server says: when it is ready, and its last lines for whoever wonders why it is not.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

const LINES_MAX: usize = 200;

/// Said once, when the data is loaded and clients are served.
const READY: &str = "Ready to accept connections";

/// The log of one process, filled by a thread of its own until the process ends.
pub(super) struct Log {
    said: Mutex<Said>,
    changed: Condvar,
}

#[derive(Default)]
struct Said {
    lines: VecDeque<String>,
    ready_pid: Option<u32>,
    ended: bool,
}

impl Log {
    /// Reads to the end, whether anybody looks or not: a full pipe would stop the server.
    pub(super) fn follow(source: impl Read + Send + 'static) -> Arc<Self> {
        let log = Arc::new(Self { said: Mutex::default(), changed: Condvar::new() });
        let filled = Arc::clone(&log);
        thread::spawn(move || {
            let lines = BufReader::new(source).split(b'\n').map_while(Result::ok);
            lines.for_each(|line| filled.add(&String::from_utf8_lossy(&line)));
            filled.said.lock().unwrap().ended = true;
            filled.changed.notify_all();
        });
        log
    }

    fn add(&self, line: &str) {
        let mut said = self.said.lock().unwrap();
        if said.lines.len() == LINES_MAX {
            said.lines.pop_front();
        }
        said.lines.push_back(line.to_owned());
        if line.contains(READY) {
            said.ready_pid = pid_of(line);
            self.changed.notify_all();
        }
    }

    /// The process id of the server once it is ready, or `None` if it ended before that or is not
    /// ready within `within`.
    pub(super) fn wait_until_ready(&self, within: Duration) -> Option<u32> {
        let waits = |said: &mut Said| said.ready_pid.is_none() && !said.ended;
        let said = self.said.lock().unwrap();
        let (said, _) = self.changed.wait_timeout_while(said, within, waits).unwrap();
        said.ready_pid
    }

    /// The last lines, as one text.
    pub(super) fn tail(&self) -> String {
        let mut said = self.said.lock().unwrap();
        said.lines.make_contiguous().join("\n")
    }
}

/// Every line begins with the id of the process that wrote it: `1234:M 15 Nov 2026 …`.
fn pid_of(line: &str) -> Option<u32> {
    line.split(':').next()?.parse().ok()
}
