//! The process of a server, bound to the life of the process that started it.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use super::binary::server_binary;
use super::log::Log;
use super::wait::wait_until;
use crate::world::PATIENCE;

/// Runs the server and watches over it: ends when the server ends, and ends the server when the
/// standard input ends. The only writer of that input is the test process, and the kernel closes
/// it however that process ends, so no server outlives it. In that case the directory goes too.
///
/// Hanging up is ignored because the kernel sends it when the test process is gone while a server
/// is paused, and the watcher must live to end that server. The shell ends the watcher as soon as
/// the server is gone: the number it would kill may soon belong to a stranger.
const GUARD: &str = r#"
trap '' HUP
directory=$1
shift
exec 3<&0
"$@" </dev/null 2>&1 3<&- &
server=$!
(read -r _ <&3; trap '' TERM; kill -9 "$server") >/dev/null 2>&1 &
watcher=$!
exec </dev/null >/dev/null 2>&1 3<&-
wait "$server"
kill "$watcher"
wait "$watcher" && rm -rf "$directory"
"#;

/// A running server. Dropping it kills the server and removes its directory.
pub(super) struct Process {
    guard: Child,
    log: Arc<Log>,
    pid: u32,
    pub(super) paused: bool,
}

impl Process {
    /// Starts a server in `directory` with the file `configuration` that is there, and returns when
    /// it serves clients. The error is what the server said instead.
    pub(super) fn start(directory: &Path, configuration: &str) -> Result<Self, String> {
        // A group of its own, so that what a terminal sends to the tests does not reach the guard.
        let mut guard = Command::new("sh")
            .args(["-c", GUARD, "server-guard"])
            .arg(directory)
            .arg(server_binary())
            .arg(configuration)
            .current_dir(directory)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let log = Log::follow(guard.stdout.take().unwrap());
        match log.wait_until_ready(PATIENCE) {
            Some(pid) => Ok(Self { guard, log, pid, paused: false }),
            None => {
                let said = log.tail();
                end(&mut guard);
                Err(said)
            }
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn log(&self) -> String {
        self.log.tail()
    }

    pub(super) fn has_ended(&mut self) -> bool {
        self.guard.try_wait().unwrap().is_some()
    }

    /// Sends a signal, named without `SIG`, unless the server has ended.
    pub(super) fn signal(&mut self, name: &str) {
        if self.has_ended() {
            return;
        }
        let pid = self.pid.to_string();
        let sent = Command::new("sh").args(["-c", r#"kill -s "$0" "$1""#, name, &pid]).status();
        if !sent.unwrap().success() {
            // There is no such process any more: its guard is about to notice.
            wait_until(&format!("the end of {pid}, which takes no {name}"), PATIENCE, || {
                self.has_ended()
            });
        }
    }

    /// Waits for the end of a server that was told to end. Its directory stays.
    pub(super) fn wait_for_end(&mut self) {
        let what = format!("the end of server {}, which said:\n{}", self.pid, self.log());
        wait_until(&what, PATIENCE, || self.has_ended());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        end(&mut self.guard);
    }
}

/// Closes the guard's input, which makes it kill the server, and waits until it has done so.
fn end(guard: &mut Child) {
    drop(guard.stdin.take());
    let _ = guard.wait();
}
