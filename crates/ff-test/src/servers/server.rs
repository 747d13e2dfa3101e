//! One private server.

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

use super::options::ServerOptions;
use super::ports::free_port;
use super::process::Process;
use super::resp::Connection;

/// How often a start is tried with other ports, when somebody else was faster.
const STARTS_MAX: usize = 10;

const CONFIGURATION: &str = "server.conf";

/// A server of its own for a test. It ends when this is dropped, and when the test process ends.
pub struct Server {
    options: ServerOptions,
    port: u16,
    bus_port: u16,
    // Dropped before its directory.
    process: Mutex<Option<Process>>,
    directory: TempDir,
}

impl Server {
    /// Starts a server and returns when it serves clients.
    ///
    /// # Panics
    /// With the server's last words when it does not start.
    pub fn start(options: ServerOptions) -> Self {
        let mut last_words = String::new();
        for _ in 0..STARTS_MAX {
            let directory = tempfile::Builder::new().prefix("ff-server-").tempdir().unwrap();
            let (port, bus_port) = (free_port(), free_port());
            let configuration = options.configuration(port, bus_port);
            fs::write(directory.path().join(CONFIGURATION), configuration).unwrap();
            match Process::start(directory.path(), CONFIGURATION) {
                Ok(process) => {
                    let process = Mutex::new(Some(process));
                    return Self { options, port, bus_port, process, directory };
                }
                Err(said) => last_words = said,
            }
            if !last_words.contains("Address already in use") {
                break;
            }
        }
        panic!("the server did not start; it said:\n{last_words}");
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where nodes of a cluster reach this one.
    pub(super) fn bus_port(&self) -> u16 {
        self.bus_port
    }

    pub fn password(&self) -> Option<&str> {
        self.options.password.as_deref()
    }

    /// The URL for a client, with the password if there is one.
    pub fn url(&self) -> String {
        let user = self.password().map(|password| format!(":{password}@")).unwrap_or_default();
        format!("valkey://{user}127.0.0.1:{}", self.port)
    }

    /// The number of the server's process.
    ///
    /// # Panics
    /// When the server was killed or stopped.
    pub fn pid(&self) -> u32 {
        self.process().as_ref().expect("a running server").pid()
    }

    /// The last lines that the server wrote since it was last started, for messages.
    pub fn log(&self) -> String {
        self.process().as_ref().map(Process::log).unwrap_or_default()
    }

    /// Whether it runs and is not paused: whether commands are answered.
    pub fn is_up(&self) -> bool {
        let mut process = self.process();
        process.as_mut().is_some_and(|process| !process.paused && !process.has_ended())
    }

    /// Ends the server without giving it time for anything, as a crash does. Its directory stays.
    pub fn kill(&self) {
        if let Some(mut process) = self.process().take() {
            process.signal("KILL");
            process.wait_for_end();
        }
    }

    /// Asks the server to end, and waits until it has. Its directory stays.
    pub fn stop(&self) {
        if let Some(mut process) = self.process().take() {
            process.signal("TERM");
            // One that is paused hears it only when it goes on.
            process.signal("CONT");
            process.wait_for_end();
        }
    }

    /// Halts the server: its connections stay open and nothing is answered until
    /// [`Server::resume`].
    pub fn pause(&self) {
        self.set_paused(true);
    }

    pub fn resume(&self) {
        self.set_paused(false);
    }

    fn set_paused(&self, paused: bool) {
        let mut process = self.process();
        let process = process.as_mut().expect("a running server");
        process.signal(if paused { "STOP" } else { "CONT" });
        process.paused = paused;
    }

    /// Starts the server again, on the same port and with what it kept, and returns when it serves
    /// clients. One that still runs is killed first.
    ///
    /// # Panics
    /// With the server's last words when it does not start.
    pub fn restart(&self) {
        self.kill();
        let started = Process::start(self.directory.path(), CONFIGURATION);
        let started = started
            .unwrap_or_else(|said| panic!("the server did not start again; it said:\n{said}"));
        *self.process() = Some(started);
    }

    /// Sends one command over a connection of its own. Numbers and text come as they are, nothing
    /// as the empty text, a list as one line for each item. The error is the server's or the
    /// network's.
    ///
    /// What a server remembers of a connection is forgotten after it: `WAIT` waits for the writes
    /// of its own connection, so it belongs with them in one [`Server::commands`].
    pub fn command(&self, words: &[&str]) -> Result<String, String> {
        self.connect()?.call_for_text(words)
    }

    /// Sends commands over one connection, one after the other, and stops at the first error. The
    /// replies are in the same order.
    pub fn commands(&self, commands: &[&[&str]]) -> Result<Vec<String>, String> {
        let mut connection = self.connect()?;
        commands.iter().map(|words| connection.call_for_text(words)).collect()
    }

    /// Sends one command of bytes; every text of the reply comes as its bytes.
    pub fn pieces(&self, words: &[&[u8]]) -> Result<Vec<Vec<u8>>, String> {
        Ok(self.connect()?.call(words)?.into_pieces())
    }

    pub(super) fn connect(&self) -> Result<Connection, String> {
        Connection::open(self.port, self.password())
    }

    /// A command that must succeed.
    pub(super) fn must(&self, words: &[&str]) -> String {
        let reply = self.command(words);
        reply.unwrap_or_else(|error| panic!("{words:?}: {error}; log:\n{}", self.log()))
    }

    /// A test that failed while it held the lock left nothing half done that matters to another.
    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
