//! The store: what the rest of the process holds.

use std::collections::HashSet;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ff_core::backend::{Backend, Identity, Pending, Upkeep};
use ff_core::errand::Errands;
use ff_core::error::EngineError;
use ff_core::machine::Settings;
use ff_core::operation::{Claim, Claimed, Command, Reconcile, Reconciled, Reply, Trim, Trimmed};
use ff_core::read::{Answer, Dues, Followed, Query, Repaired, Topic};
use ff_core::tails::Tails;
use ff_core::tally::Tally;
use ff_core::time::TimestampMs;
use ff_core::turns::{Turn, Turns};
use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot, watch};

use crate::clock::SteadyClock;
use crate::error::{OpenError, fault};
use crate::options::SqliteOptions;
use crate::owner::Ownership;
use crate::passed::PassedOver;
use crate::queues::Queues;
use crate::readers::{Readers, closed};
use crate::stats::{Counters, Stats};
use crate::writer::{Message, Shared, Writer};
use crate::{follow, query, schema, statements, writer};

const LABEL: &str = "sqlite";
/// Commands under way at the most; more callers wait their turn.
const COMMANDS_UNDER_WAY: usize = 65_536;

/// FlowFabric's state in one SQLite file, owned by this process.
pub struct SqliteStore {
    shared: Arc<Shared>,
    writer: Sender<Message>,
    readers: Readers,
    room: Semaphore,
    durability: &'static str,
    turns: Turns,
    /// Joined at the end, so that nothing is written by an owner that has given up.
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Given up by a shutdown, so that the next owner can begin.
    ownership: Mutex<Option<Ownership>>,
}

impl SqliteStore {
    /// Opens the store, and makes it if it is not there. A database of another application is refused
    /// before anything is written.
    pub fn open(options: SqliteOptions) -> Result<Self, OpenError> {
        schema::Schema::of(&options)?;
        let path = options.path.clone();
        Self::open_own(options).map_err(|error| error.of_file(path))
    }

    fn open_own(options: SqliteOptions) -> Result<Self, OpenError> {
        if let Some(path) = &options.path {
            make_parent(path)?;
        }
        let durability = options.promise();
        let ownership = options.path.as_deref().map(Ownership::take).transpose()?;
        let mut connection = open_writer(&options)?;
        schema::migrate(&mut connection)?;
        let partitions = schema::settle_partitions(&mut connection, &options)?;
        let settings =
            Settings { retention: options.retention, ..Settings::new(LABEL, partitions) };
        let keyring = schema::settle_keyring(&mut connection, &options)?;
        let queues = Queues::load(&connection)?;
        let (last_event, latest) = newest_event(&connection)?;
        let shared = Arc::new(Shared {
            settings: Arc::new(settings),
            clock: SteadyClock::new(options.clock, latest),
            events: watch::Sender::new(last_event),
            timers: watch::Sender::new(writer::next_due(&connection, &HashSet::new())?),
            passed: PassedOver::default(),
            tails: Tails::default(),
            counters: Counters::default(),
            errands: Errands::default(),
            tally: Tally::default(),
        });
        let readers = Readers::open(options.path.as_deref(), options.readers)?;
        let (sender, inbox) = channel();
        let writer =
            Writer::new(connection, inbox, Arc::clone(&shared), queues, keyring, last_event);
        let thread = std::thread::Builder::new()
            .name("ff-sqlite-writer".to_owned())
            .spawn(move || writer.run())
            .map_err(OpenError::Thread)?;
        Ok(Self {
            shared,
            writer: sender,
            readers,
            room: Semaphore::new(COMMANDS_UNDER_WAY),
            durability,
            turns: Turns::default(),
            thread: Mutex::new(Some(thread)),
            ownership: Mutex::new(ownership),
        })
    }

    /// Opens the store that a URL names.
    pub fn open_url(url: &str) -> Result<Self, OpenError> {
        Self::open(url.parse()?)
    }

    /// Of which form the store is, without opening it.
    pub fn schema(options: &SqliteOptions) -> Result<schema::Schema, OpenError> {
        schema::Schema::of(options)
    }

    /// What it has done since it was opened.
    pub fn stats(&self) -> Stats {
        self.shared.counters.stats()
    }

    /// Bytes of the store, as the file has them once the write-ahead log is checkpointed.
    pub async fn size_bytes(&self) -> Result<u64, EngineError> {
        let size = |connection: &Connection| {
            connection
                .query_row(statements::store_size, [], |row| row.get::<_, i64>(0))
                .map(i64::unsigned_abs)
                .map_err(|error| fault(&error))
        };
        self.read(size).await
    }

    /// When time has something to do next.
    async fn next_due(&self, now: TimestampMs) -> Result<Answer, EngineError> {
        let resting = self.shared.passed.resting(now);
        let next = move |connection: &Connection| {
            writer::next_due(connection, &resting).map_err(|error| fault(&error))
        };
        let items = self.read(next).await?.map(|at| (None, at)).into_iter().collect();
        Ok(Answer::Due(Dues { items, now }))
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, EngineError> {
        self.shared.counters.add_read();
        self.readers.run(&self.writer, read).await
    }

    /// Sends to the writer and waits for its answer.
    async fn request<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<T>) -> Message,
    ) -> Result<T, EngineError> {
        let (answer, answered) = oneshot::channel();
        self.writer.send(message(answer)).map_err(|_| closed())?;
        answered.await.map_err(|_| closed())
    }

    async fn apply_all(&self, commands: Vec<Command>) -> Vec<Result<Reply, EngineError>> {
        let count = commands.len();
        if count == 0 {
            return Vec::new();
        }
        let room = u32::try_from(count.min(COMMANDS_UNDER_WAY)).unwrap_or(u32::MAX);
        let applied = async {
            let _room = self.room.acquire_many(room).await.map_err(|_| closed())?;
            self.request(|answer| Message::Apply { commands, answer }).await
        };
        applied.await.unwrap_or_else(|error| vec![Err(error); count])
    }
}

impl SqliteStore {
    /// Waits for the writer, which has been told to stop, and frees the file.
    fn give_up(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the writer ended in a panic");
        }
        self.ownership.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        let (answer, _) = oneshot::channel();
        let _ = self.writer.send(Message::Stop { answer });
        self.give_up();
    }
}

impl Backend for SqliteStore {
    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>> {
        Box::pin(self.apply_all(commands))
    }

    fn take(&self, claim: Claim, wait: Duration) -> Pending<'_, Result<Claimed, EngineError>> {
        let begun = Instant::now();
        Box::pin(async move {
            claim.check_wait(wait)?;
            let until = begun + wait;
            self.request(|answer| Message::Claim { claim, until, answer }).await?
        })
    }

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>> {
        Box::pin(async move {
            query.check(&self.shared.settings.partitions)?;
            let now = self.shared.clock.now();
            if matches!(query, Query::Due(_)) {
                return self.next_due(now).await;
            }
            let settings = Arc::clone(&self.shared.settings);
            self.read(move |connection| query::answer(connection, &settings, &query, now)).await
        })
    }

    fn follow(&self, topic: Topic, wait: Duration) -> Pending<'_, Result<Followed, EngineError>> {
        Box::pin(async move {
            match topic {
                Topic::Events(follow) => {
                    follow.check()?;
                    follow::events(self, follow, wait).await
                }
                Topic::Timers { known } => follow::timers(self, known, wait).await,
                Topic::Frames(tail) => {
                    tail.check(wait, &self.shared.settings.partitions)?;
                    follow::frames(self, tail.range(), wait).await
                }
            }
        })
    }
}

impl Upkeep for SqliteStore {
    fn backend_label(&self) -> &'static str {
        LABEL
    }

    fn identity(&self) -> Identity {
        Identity {
            backend: LABEL,
            version: rusqlite::version().to_owned(),
            durability: self.durability.to_owned(),
        }
    }

    fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    fn errands(&self) -> &Errands {
        &self.shared.errands
    }

    fn tally(&self) -> &Tally {
        &self.shared.tally
    }

    fn ping(&self) -> Pending<'_, Result<(), EngineError>> {
        Box::pin(async {
            let (answer, answered) = oneshot::channel();
            let message = Message::Read(Box::new(move |_| {
                let _ = answer.send(());
            }));
            self.writer.send(message).map_err(|_| closed())?;
            answered.await.map_err(|_| closed())
        })
    }

    fn server_time_ms(&self) -> Pending<'_, Result<TimestampMs, EngineError>> {
        Box::pin(async { Ok(self.shared.clock.now()) })
    }

    fn trim(&self, trim: Trim) -> Pending<'_, Result<Trimmed, EngineError>> {
        Box::pin(async move { self.request(|answer| Message::Trim { trim, answer }).await? })
    }

    fn repair(&self) -> Pending<'_, Result<Repaired, EngineError>> {
        Box::pin(async move { self.request(|answer| Message::Repair { answer }).await? })
    }

    fn reconcile(&self, page: Reconcile) -> Pending<'_, Result<Reconciled, EngineError>> {
        Box::pin(async move { self.request(|answer| Message::Reconcile { page, answer }).await? })
    }

    fn take_turn(&self, turn: Turn) -> Pending<'_, Result<bool, EngineError>> {
        Box::pin(async move { Ok(self.turns.take(&turn, self.shared.clock.now())) })
    }

    fn shutdown_prepare(&self, grace: Duration) -> Pending<'_, Result<(), EngineError>> {
        Box::pin(async move {
            self.readers.close();
            self.shared.tails.tell_all();
            let stopped = self.request(|answer| Message::Stop { answer });
            match tokio::time::timeout(grace, stopped).await {
                // A writer that has stopped before is as good as one that stops now.
                Ok(_) => {
                    self.give_up();
                    Ok(())
                }
                Err(_) => Err(EngineError::Timeout {
                    detail: "the writer did not end in time".to_owned(),
                }),
            }
        })
    }
}

/// The connection that writes, set up as the options say.
pub(crate) fn open_writer(options: &SqliteOptions) -> Result<Connection, OpenError> {
    let connection = match &options.path {
        None => {
            let connection = Connection::open_in_memory()?;
            // A commit in memory may walk all pages: few large ones keep it short.
            connection.pragma_update(None, "page_size", 32_768)?;
            connection
        }
        Some(path) => Connection::open(path)?,
    };
    connection.set_prepared_statement_cache_capacity(64);
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", options.durability.synchronous())?;
    connection.pragma_update(None, "cache_size", -64_000)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

fn make_parent(path: &Path) -> Result<(), OpenError> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => std::fs::create_dir_all(parent)
            .map_err(|source| OpenError::File { path: path.to_owned(), source }),
        _ => Ok(()),
    }
}

/// Number and time of the newest event: where both go on.
fn newest_event(connection: &Connection) -> Result<(u64, TimestampMs), OpenError> {
    let (number, time): (Option<i64>, Option<i64>) =
        connection.query_row(statements::event_bounds, [], |row| Ok((row.get(1)?, row.get(2)?)))?;
    Ok((number.unwrap_or(0).unsigned_abs(), TimestampMs(time.unwrap_or(0))))
}
