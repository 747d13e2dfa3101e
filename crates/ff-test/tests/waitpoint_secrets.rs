//! Where tokens and secrets stand, and what a boot makes of a configured secret, on the stores that
//! outlive a process.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ff_backend_sqlite::{SqliteOptions, SqliteStore};
use ff_backend_valkey::{ValkeyOptions, ValkeyStore};
use ff_core::backend::{Backend, BackendExt};
use ff_core::content::Content;
use ff_core::error::{Code, Refusal};
use ff_core::id::{ExecutionId, Kid, WaitpointId};
use ff_core::operation::{
    Command, CreatePendingWaitpoint, DeliverSignal, IssuedWaitpoint, Message, RotateSecret,
    SeedSecret, Settled, Submit, Task,
};
use ff_core::read::{ListKids, WaitingFilter};
use ff_core::token::{Secret, WaitpointToken};
use ff_test::servers::{Server, ServerOptions};
use ff_test::signalling::{
    approval, close, issue, message, pending, remint, rotate, secret_of, signal, signal_key,
    suspend,
};
use ff_test::stages::InItsTime;
use ff_test::world::World;
use tempfile::TempDir;
use uuid::Uuid;

/// Stands in a signal, so that a search which finds nothing else proves that it looks.
const MARK: &str = "this text is no secret";

const CONFIGURED: &[u8] = b"configured secret of 40 printable bytes.";
const ROTATED: &[u8] = b"another secret, rotated to, 40 bytes too";

/// A place that outlives its stores.
enum Place {
    Directory(TempDir),
    Server(Box<Server>),
}

impl Place {
    fn both() -> [Self; 2] {
        let server = Server::start(ServerOptions::default());
        [Self::Directory(tempfile::tempdir().unwrap()), Self::Server(Box::new(server))]
    }

    /// Opens the store, or tells the refusal.
    async fn open(&self, waitpoint_secret: Option<Secret>) -> Result<World, Refusal> {
        let backend: Arc<dyn Backend> = match self {
            Self::Directory(directory) => {
                let options = SqliteOptions::file(directory.path().join("ff.db"));
                match SqliteStore::open(SqliteOptions { waitpoint_secret, ..options }) {
                    Ok(store) => Arc::new(store),
                    Err(ff_backend_sqlite::OpenError::Refused(refusal)) => return Err(refusal),
                    Err(other) => panic!("{other}"),
                }
            }
            Self::Server(server) => {
                let options: ValkeyOptions = server.url().parse().unwrap();
                match ValkeyStore::open(ValkeyOptions { waitpoint_secret, ..options }).await {
                    Ok(store) => Arc::new(store),
                    Err(ff_backend_valkey::OpenError::Refused(refusal)) => return Err(refusal),
                    Err(other) => panic!("{other}"),
                }
            }
        };
        Ok(World::new(InItsTime(backend)))
    }
}

async fn shut(world: World) {
    world.backend.shutdown_prepare(Duration::from_secs(10)).await.unwrap();
}

fn secret(bytes: &[u8]) -> Secret {
    Secret::from_bytes(bytes.to_vec()).unwrap()
}

fn kid(text: &str) -> Kid {
    Kid::new(text).unwrap()
}

/// A waitpoint with fixed ids: its token tells secrets apart.
async fn first_token(world: &World) -> (Task, IssuedWaitpoint) {
    let id = ExecutionId::solo(Uuid::from_u128(5), &world.backend.settings().partitions);
    let task = world.start(Submit { execution_id: id, ..world.work() }).await;
    let waitpoint_id = WaitpointId::new(Uuid::from_u128(6));
    let issued =
        world.act(CreatePendingWaitpoint { waitpoint_id, ..pending(&task, "first") }).await;
    assert_eq!(issued.token.kid(), &Kid::first());
    (task, issued)
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_configured_secret_every_store_makes_its_own() {
    let mut tokens = Vec::new();
    for place in Place::both().into_iter().chain(Place::both()) {
        let world = place.open(None).await.unwrap();
        let token = first_token(&world).await.1.token.expose().to_owned();
        assert!(!tokens.contains(&token), "two stores sign alike");
        tokens.push(token);
        shut(world).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configured_secret_is_the_first_key() {
    let mut tokens = Vec::new();
    for place in Place::both() {
        let world = place.open(Some(secret(CONFIGURED))).await.unwrap();
        tokens.push(first_token(&world).await.1.token);
        let seed = SeedSecret { kid: Kid::first(), secret: secret(CONFIGURED) };
        assert_eq!(world.act(seed).await, Settled::AlreadySatisfied);
        shut(world).await;
    }
    assert_eq!(tokens[0], tokens[1], "one secret signs alike in every store");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_configured_secret_refuses_the_boot() {
    for (first, then) in [(None, CONFIGURED), (Some(secret(CONFIGURED)), ROTATED)] {
        for place in Place::both() {
            shut(place.open(first.clone()).await.unwrap()).await;
            let Err(refusal) = place.open(Some(secret(then))).await else { panic!("opened") };
            assert_eq!(refusal.code, Code::RotationConflict);
            assert_eq!(secrets_in(format!("{refusal:?} {refusal}").as_bytes(), &[]), [""; 0]);
            // The stored one, or none, opens it all the same.
            for again in [first.clone(), None] {
                shut(place.open(again).await.unwrap()).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_rotation_the_configured_secret_is_ignored() {
    for place in Place::both() {
        let world = place.open(Some(secret(CONFIGURED))).await.unwrap();
        world.act(rotate("k2", 2, 0)).await;
        shut(world).await;
        for configured in [Some(secret(CONFIGURED)), Some(secret(ROTATED)), None] {
            let world = place.open(configured).await.unwrap();
            let kids = world.backend.ask(ListKids).await.unwrap();
            assert_eq!(kids.current_kid, kid("k2"));
            shut(world).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_tokens_and_keys() {
    for place in Place::both() {
        let world = place.open(None).await.unwrap();
        let (task, of_first_key) = first_token(&world).await;
        world.act(rotate("k2", 2, 600_000)).await;
        let of_second_key = world.act(pending(&task, "second")).await;
        let kids = world.backend.ask(ListKids).await.unwrap();
        shut(world).await;
        let world = place.open(None).await.unwrap();
        assert_eq!(world.backend.ask(ListKids).await.unwrap(), kids);
        for issued in [of_first_key, of_second_key] {
            let again = world.act(issue(task.execution_id, issued.key.as_str())).await;
            assert_eq!(again, issued);
            world.deliver(signal(task.execution_id, &issued, "x")).await;
        }
        shut(world).await;
    }
}

/// Everything that was given out or set, and everything that was said.
#[derive(Default)]
struct Trail {
    tokens: Vec<WaitpointToken>,
    said: String,
}

impl Trail {
    fn keep(&mut self, issued: &IssuedWaitpoint) {
        self.tokens.push(issued.token.clone());
        self.say(&issued);
    }

    fn say(&mut self, what: &impl std::fmt::Debug) {
        self.said.push_str(&format!("{what:?}\n"));
    }

    /// Carries out what must be refused, and keeps the words.
    async fn refused(&mut self, world: &World, operation: impl Into<Command>, code: Code) {
        let command = operation.into();
        self.say(&command);
        let error = world.command(command).await.expect_err("a refusal");
        assert_eq!(error.code(), code);
        self.say(&error);
        self.said.push_str(&error.to_string());
    }
}

/// Suspends, signals, remints, rotates, and is refused.
async fn eventful(world: &World) -> Trail {
    let mut trail = Trail::default();
    let (task, first) = world.start_with("first").await;
    let id = task.execution_id;
    let second = world.act(remint(id, "first")).await;
    let suspended = world.act(suspend(&task, "second")).await;
    for issued in [&first, &second, &suspended.waitpoints[0]] {
        trail.keep(issued);
    }
    let content = Content::new(MARK.as_bytes());
    let marked = DeliverSignal {
        signal: Message { content, idempotency_key: signal_key("once"), ..message("marked") },
        ..signal(id, &second, "x")
    };
    trail.say(&marked);
    trail.say(&world.act(marked).await);
    trail.refused(world, signal(id, &first, "x"), Code::InvalidToken).await;
    let mixed = IssuedWaitpoint { token: second.token.clone(), ..suspended.waitpoints[0].clone() };
    trail.refused(world, signal(id, &mixed, "x"), Code::InvalidToken).await;
    let rotation = |secret| RotateSecret { kid: kid("k2"), secret, grace_ms: 60_000 };
    trail.say(&world.act(rotation(secret(ROTATED))).await);
    trail.refused(world, rotation(secret_of(b'x')), Code::RotationConflict).await;
    let seed = SeedSecret { kid: Kid::first(), secret: secret_of(b'x') };
    trail.refused(world, seed, Code::RotationConflict).await;
    trail.keep(&world.act(issue(id, "first")).await);
    let third = world.act(remint(id, "second")).await;
    trail.keep(&third);
    let waiting = WaitingFilter::default();
    let (inbox, suspended) =
        (world.inbox(&waiting, 10).await, world.all_suspended(&waiting, 10).await);
    assert_eq!((inbox.len(), suspended.len()), (2, 1));
    trail.say(&(inbox, suspended));
    trail.say(&world.act(signal(id, &third, "go")).await);
    trail.refused(world, issue(id, "second"), Code::WaitpointClosed).await;
    trail.say(&world.claim_one().await);
    trail.say(&world.act(approval(id, "first")).await);
    trail.say(&world.act(close(id, "first")).await);
    trail.refused(world, signal(id, &second, "x"), Code::TargetNotSignalable).await;
    trail.say(&world.shown(id).await);
    trail.say(&world.log().await);
    trail.say(&world.backend.ask(ListKids).await.unwrap());
    trail
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What of the tokens stands in the bytes: their signatures, as text or as bytes. A token holds
/// its signature, so it need not be looked for itself.
fn tokens_in(bytes: &[u8], tokens: &[WaitpointToken]) -> Vec<String> {
    let mut found = Vec::new();
    for token in tokens {
        let text = token.expose().rsplit(':').next().unwrap();
        let raw: Vec<u8> = (0..text.len() / 2)
            .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        let forms = [text.as_bytes().to_vec(), text.to_uppercase().into_bytes(), raw];
        if forms.iter().any(|form| contains(bytes, form)) {
            found.push(format!("a token of {}", token.kid()));
        }
    }
    found
}

/// What of tokens and secrets stands in the bytes, the secrets as bytes, hex or a list of numbers.
fn secrets_in(bytes: &[u8], tokens: &[WaitpointToken]) -> Vec<String> {
    let mut found = tokens_in(bytes, tokens);
    for secret in [CONFIGURED, ROTATED, &[b'x'; 32]] {
        let listed = format!("{secret:?}");
        let listed = &listed.as_bytes()[1..listed.len() - 1];
        let hex = hex(secret);
        let forms =
            [secret, hex.as_bytes(), hex.to_uppercase().as_bytes(), listed].map(<[u8]>::to_vec);
        if forms.iter().any(|form| contains(bytes, form)) {
            found.push(String::from_utf8_lossy(secret).into_owned());
        }
    }
    found
}

fn assert_clean(what: &str, bytes: &[u8], tokens: &[WaitpointToken]) {
    assert_eq!(secrets_in(bytes, tokens), [""; 0], "in {what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_reply_event_or_error_shows_a_token_or_a_secret() {
    for place in Place::both() {
        let world = place.open(Some(secret(CONFIGURED))).await.unwrap();
        let trail = eventful(&world).await;
        assert!(trail.tokens.len() >= 5 && trail.said.len() > 1_000);
        assert_clean("what was said", trail.said.as_bytes(), &trail.tokens);
        shut(world).await;
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The store's content without its keyring, in a new file.
fn without_keyring(directory: &Path) -> Vec<u8> {
    let (source, copy) = (directory.join("ff.db"), directory.join("copy.db"));
    let connection = rusqlite::Connection::open(source).unwrap();
    let keyrings = connection.execute("DELETE FROM keyring", []).unwrap();
    assert_eq!(keyrings, 1, "the one record");
    connection.execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
    fs::read(copy).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_secrets_in_its_keyring_alone_and_tokens_nowhere() {
    let place = Place::Directory(tempfile::tempdir().unwrap());
    let Place::Directory(directory) = &place else { unreachable!() };
    let world = place.open(Some(secret(CONFIGURED))).await.unwrap();
    let trail = eventful(&world).await;
    // With the store still open, so that its journal is looked at too.
    let mut all = Vec::new();
    for path in files(directory.path()) {
        let bytes = fs::read(&path).unwrap();
        assert_eq!(tokens_in(&bytes, &trail.tokens), [""; 0], "in {}", path.display());
        all.extend(bytes);
    }
    assert!(contains(&all, MARK.as_bytes()) && contains(&all, CONFIGURED), "it looks");
    shut(world).await;
    let rest = without_keyring(directory.path());
    assert!(contains(&rest, MARK.as_bytes()), "it looks");
    assert_clean("the file without its keyring", &rest, &trail.tokens);
}

/// Every key of a server with all that stands under it.
fn content_of(server: &Server) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for key in server.pieces(&[b"KEYS", b"*"]).unwrap() {
        let kind = server.pieces(&[b"TYPE", &key]).unwrap().concat();
        let read: &[&[u8]] = match kind.as_slice() {
            b"string" => &[b"GET", &key],
            b"hash" => &[b"HGETALL", &key],
            b"list" => &[b"LRANGE", &key, b"0", b"-1"],
            b"set" => &[b"SMEMBERS", &key],
            b"zset" => &[b"ZRANGE", &key, b"0", b"-1", b"WITHSCORES"],
            b"stream" => &[b"XRANGE", &key, b"-", b"+"],
            other => panic!("a key of type {}", String::from_utf8_lossy(other)),
        };
        let mut bytes = key.clone();
        for piece in server.pieces(read).unwrap() {
            bytes.push(b'\n');
            bytes.extend(piece);
        }
        found.push((String::from_utf8_lossy(&key).into_owned(), bytes));
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn valkey_keeps_secrets_in_its_keyring_alone_and_tokens_nowhere() {
    let place = Place::Server(Box::new(Server::start(ServerOptions::default())));
    let Place::Server(server) = &place else { unreachable!() };
    let world = place.open(Some(secret(CONFIGURED))).await.unwrap();
    let trail = eventful(&world).await;
    let (keyring, rest): (Vec<_>, Vec<_>) =
        content_of(server).into_iter().partition(|(key, _)| key == "ff:keyring:{g}");
    let [(_, record)] = keyring.as_slice() else { panic!("{} keyrings", keyring.len()) };
    assert!(contains(record, CONFIGURED) && contains(record, ROTATED), "it looks");
    assert_eq!(tokens_in(record, &trail.tokens), [""; 0], "in the keyring");
    assert!(rest.iter().any(|(_, bytes)| contains(bytes, MARK.as_bytes())), "it looks");
    for (key, bytes) in &rest {
        assert_clean(key, bytes, &trail.tokens);
    }
    shut(world).await;
}
