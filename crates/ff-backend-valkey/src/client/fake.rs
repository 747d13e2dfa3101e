//! A server for tests that answers what it is told to, and remembers what it was asked.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use super::patience::Patience;
use super::router::Client;
use crate::error::OpenError;
use crate::library::Library;
use crate::options::ValkeyOptions;

const INFO: &str = "role:master\r\nvalkey_version:9.0.0\r\nmaxmemory_policy:noeviction\r\n";
const STATS: &str = "%1\r\n$7\r\nengines\r\n%1\r\n$3\r\nLUA\r\n%0\r\n";

pub(super) enum Say {
    /// A reply as it goes over the wire.
    Reply(String),
    /// Closes the connection without an answer.
    Nothing,
    /// To `CLUSTER SLOTS`: that all are here.
    AllSlots,
    /// What a healthy server would say.
    Usual,
}

type Script = dyn Fn(&str, usize) -> Say + Send + Sync;

/// Listens until the test is over.
pub(super) struct Fake {
    pub(super) port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    /// `script` is given each command, and how often the same came before.
    pub(super) fn start(script: impl Fn(&str, usize) -> Say + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (script, asked): (Arc<Script>, _) = (Arc::new(script), Arc::default());
        let fake = Self { port, asked: Arc::clone(&asked) };
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (script, asked) = (Arc::clone(&script), Arc::clone(&asked));
                thread::spawn(move || serve(stream.unwrap(), port, &*script, &asked));
            }
        });
        fake
    }

    pub(super) fn options(&self) -> ValkeyOptions {
        ValkeyOptions::new("127.0.0.1", self.port)
    }

    pub(super) async fn client(&self) -> Client {
        connect(&self.options()).await.unwrap()
    }

    /// Commands with these words in them, in the order in which they came.
    pub(super) fn asked(&self, words: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|command| command.contains(words)).cloned().collect()
    }
}

/// Opens a client as a store does.
pub(super) async fn connect(options: &ValkeyOptions) -> Result<Client, OpenError> {
    Client::connect(options, library(), &mut Patience::new(options)).await
}

/// What the usual answers are right for.
pub(super) fn library() -> Arc<Library> {
    let (code, hash) = ("code".to_owned(), "hash".to_owned());
    Arc::new(Library { name: "flowfabric", code, hash, call_version: 5 })
}

/// A reply that says which library is loaded.
pub(super) fn version(call_version: u32, hash: &str) -> Say {
    Say::Reply(format!("*2\r\n:{call_version}\r\n{}", bulk(hash)))
}

pub(super) fn error(line: &str) -> Say {
    Say::Reply(format!("-{line}\r\n"))
}

/// The answer to `CLUSTER SLOTS` when one node has them all.
pub(super) fn all_slots(port: u16) -> String {
    let node = format!("*2\r\n{}:{port}\r\n", bulk("127.0.0.1"));
    format!("*1\r\n*3\r\n:0\r\n:16383\r\n{node}")
}

pub(super) fn cluster_info() -> Say {
    Say::Reply(bulk(&format!("{INFO}cluster_enabled:1\r\n")))
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn usual(command: &str) -> String {
    match command.split(' ').next().unwrap_or_default() {
        "INFO" => bulk(INFO),
        "FCALL_RO" => "*2\r\n:5\r\n$4\r\nhash\r\n".to_owned(),
        "FUNCTION" => STATS.to_owned(),
        _ => "+OK\r\n".to_owned(),
    }
}

/// Ends with the connection.
fn serve(mut stream: TcpStream, port: u16, script: &Script, asked: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(command) = command(&mut reader) {
        let before = {
            let mut asked = asked.lock().unwrap();
            let before = asked.iter().filter(|it| **it == command).count();
            asked.push(command.clone());
            before
        };
        let reply = match script(&command, before) {
            Say::Reply(reply) => reply,
            Say::Nothing => return,
            Say::AllSlots => all_slots(port),
            Say::Usual => usual(&command),
        };
        if stream.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

/// The words of the next command; none at the end of the connection.
fn command(reader: &mut impl BufRead) -> Option<String> {
    let words = number(reader)?;
    let word = |_| {
        let mut bytes = vec![0; number(reader)? + 2];
        reader.read_exact(&mut bytes).ok()?;
        bytes.truncate(bytes.len() - 2);
        String::from_utf8(bytes).ok()
    };
    let words: Option<Vec<String>> = (0..words).map(word).collect();
    words.map(|words| words.join(" "))
}

/// The number in a line like `*3` or `$12`.
fn number(reader: &mut impl BufRead) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.get(1..)?.trim_end().parse().ok()
}
