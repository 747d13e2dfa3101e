//! The store: what its parts share, and the trait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ff_core::backend::{Backend, Identity, Pending, Upkeep};
use ff_core::errand::Errands;
use ff_core::error::EngineError;
use ff_core::id::{DocumentId, ExecutionId, Home, Subject};
use ff_core::machine::Settings;
use ff_core::operation::{Claim, Claimed, Command, Reconcile, Reconciled, Reply, Trim, Trimmed};
use ff_core::read::{Answer, Followed, Query, Repaired, Topic};
use ff_core::state::{Document, QueuePlace};
use ff_core::tally::Tally;
use ff_core::time::TimestampMs;
use ff_core::turns::Turn;
use redis::{Cmd, Value};

use crate::classes::Classes;
use crate::client::{Client, LibraryVersion, Patience, inspect};
use crate::clock::Clock;
use crate::combine::Lines;
use crate::crowd::Crowds;
use crate::emptied::{self, Emptied};
use crate::entries::{Documents, Entries};
use crate::error::{OpenError, without_effect};
use crate::growth::Growth;
use crate::homes::Homes;
use crate::item::{After, Bundle, Item};
use crate::keys::{Keys, class_of};
use crate::library::Library;
use crate::near::Near;
use crate::options::{LibraryClock, ValkeyOptions};
use crate::passed::PassedOver;
use crate::record::Entry;
use crate::room::{Room, Rooms};
use crate::timers::{self, Timers};
use crate::token::{self, Outbox, Token};
use crate::view::{Candidate, Views};
use crate::waiters::Waiters;
use crate::wake;
use crate::{
    apply, follow, keyring, partitions, query, read, reconcile, repair, tails, trim, turn,
};

pub(crate) const LABEL: &str = "valkey";

/// Items of a commit whose executions are remembered together.
const ENDED_MOST: usize = 4;

/// FlowFabric on Valkey. Cheap to clone; all clones share connections and memory.
#[derive(Clone)]
pub struct ValkeyStore {
    pub(crate) shared: Arc<Shared>,
}

/// What the parts of a store share.
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) options: ValkeyOptions,
    pub(crate) keys: Keys,
    pub(crate) settings: Arc<Settings>,
    pub(crate) clock: Clock,
    pub(crate) homes: Homes,
    pub(crate) emptied: Emptied,
    pub(crate) entries: Entries,
    pub(crate) documents: Documents,
    pub(crate) near: Near,
    pub(crate) classes: Classes,
    pub(crate) views: Views,
    pub(crate) waiters: Waiters,
    pub(crate) outbox: Outbox,
    pub(crate) timers: Timers,
    /// What is due and is passed over.
    pub(crate) passed: PassedOver,
    pub(crate) growth: Growth,
    pub(crate) tails: tails::Listening,
    pub(crate) crowds: Crowds,
    pub(crate) rooms: Rooms,
    pub(crate) lines: Lines,
    pub(crate) keyring: keyring::Copy,
    pub(crate) errands: Errands,
    pub(crate) tally: Tally,
    closing: AtomicBool,
}

impl ValkeyStore {
    /// Connects, checks the server, loads the functions, and agrees on the partition counts.
    pub async fn open(options: ValkeyOptions) -> Result<Self, OpenError> {
        let library = Arc::new(Library::assemble(&options));
        let mut patience = Patience::new(&options);
        let client = Client::connect(&options, library, &mut patience).await?;
        let keys = Keys { prefix: options.prefix.clone() };
        let agree = || partitions::agree(&client, &keys, options.partitions);
        let counts = patience.until_answered(agree).await?;
        let settle = || keyring::settle(&client, &keys, options.waitpoint_secret.as_ref());
        let keyring = patience.until_answered(settle).await?;
        let settings = Settings { retention: options.retention, ..Settings::new(LABEL, counts) };
        let clocks = client.is_cluster().then_some(counts);
        let rooms = Rooms::new(client.primaries().len());
        let entries = Entries::new(client.upsets());
        let documents = Documents::new(client.upsets());
        let waiters = Waiters::new(client.is_cluster());
        let shared = Shared {
            clock: Clock::new(options.clock, clocks),
            homes: Homes::new(&counts),
            emptied: Emptied::new(client.upsets()),
            client,
            keys,
            settings: Arc::new(settings),
            entries,
            documents,
            near: Near::new(),
            classes: Classes::new(),
            views: Views::default(),
            waiters,
            outbox: Outbox::default(),
            timers: Timers::new(),
            passed: PassedOver::default(),
            growth: Growth::new(),
            tails: tails::Listening::default(),
            crowds: Crowds::default(),
            rooms,
            lines: Lines::default(),
            keyring: keyring::Copy::new(keyring),
            errands: Errands::default(),
            tally: Tally::default(),
            closing: AtomicBool::new(false),
            options,
        };
        let shared = Arc::new(shared);
        tokio::spawn(emptied::watch(Arc::downgrade(&shared)));
        Ok(Self { shared })
    }

    /// Which function library the servers of a store have, without opening it: nothing is changed.
    pub async fn library(options: &ValkeyOptions) -> Result<LibraryVersion, OpenError> {
        inspect(options, Library::assemble(options)).await
    }

    /// Whether there is a store under the prefix, without opening it: nothing is changed.
    pub async fn exists(options: &ValkeyOptions) -> Result<bool, OpenError> {
        let version = Self::library(options).await?;
        let Some(found) = version.found else { return Ok(false) };
        let mut library = Library::assemble(options);
        if version.is_old {
            // A library serves the version before its own: nothing is loaded in its place.
            library.call_version = found.saturating_sub(1);
        }
        let patience = &mut Patience::new(options);
        let client = Client::connect(options, Arc::new(library), patience).await?;
        let keys = Keys { prefix: options.prefix.clone() };
        let is_there = partitions::are_agreed(&client, &keys).await;
        client.close(options.call_timeout).await;
        is_there
    }

    /// Moves the clock of a store whose library has a settable one.
    pub async fn set_clock(&self, now: TimestampMs) -> Result<(), EngineError> {
        let shared = &self.shared;
        if shared.options.clock != LibraryClock::Settable {
            return Err(EngineError::bug("the clock of this store is the server's"));
        }
        let mut set = shared.read_function("ff_set_clock");
        set.arg(0).arg(&shared.keys.prefix).arg(now.0);
        for primary in shared.client.primaries() {
            shared.client.send_to(&primary, &set).await?;
        }
        Ok(())
    }
}

/// Waits for all of them.
pub(crate) async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    futures_util::future::join_all(futures).await
}

impl Shared {
    /// A call of a function; keys and arguments follow.
    pub(crate) fn function(&self, name: &str) -> Cmd {
        let mut call = redis::cmd("FCALL");
        call.arg(name);
        call
    }

    /// A call of a function that writes nothing, so that no replica has to be waited for.
    pub(crate) fn read_function(&self, name: &str) -> Cmd {
        let mut call = redis::cmd("FCALL_RO");
        call.arg(name);
        call
    }

    /// The arguments with which every function begins.
    pub(crate) fn begin<'a>(&self, call: &'a mut Cmd) -> &'a mut Cmd {
        call.arg(self.client.call_version()).arg(&self.keys.prefix)
    }

    /// The number of the node that has a home.
    pub(crate) fn node_of(&self, home: &Home) -> usize {
        match self.client.is_cluster() {
            true => self.client.owner_number(self.keys.slot_of(home)),
            false => 0,
        }
    }

    /// How much may be decided at a time for a home.
    pub(crate) fn room_of(&self, home: &Home) -> &Room {
        self.rooms.of(self.node_of(home))
    }

    pub(crate) async fn send(&self, partition: u16, call: &Cmd) -> Result<Value, EngineError> {
        self.client.send(self.keys.slot(partition), call).await
    }

    pub(crate) async fn send_home(&self, home: &Home, call: &Cmd) -> Result<Value, EngineError> {
        self.client.send(self.keys.slot_of(home), call).await
    }

    /// To the node of a slot, without waiting for replicas: for what costs little when it is lost.
    pub(crate) async fn send_lightly(&self, slot: u16, call: &Cmd) -> Result<Value, EngineError> {
        let owner = self.client.primaries().into_iter().find(|primary| primary.owns(slot));
        let sent = match owner {
            Some(owner) => self.client.send_to(&owner, call).await,
            None => return self.client.send(slot, call).await,
        };
        match sent {
            // The slot has moved.
            Err(EngineError::Transport { outcome_unknown: false, .. }) => {
                self.client.send(slot, call).await
            }
            sent => sent,
        }
    }

    /// What follows from items that were committed; `numbers` are those of their last events.
    pub(crate) fn committed(self: &Arc<Self>, bundle: Bundle, numbers: &[u64]) {
        let settle = |(mut item, number): (Item, &u64)| {
            let written = item.settle(*number);
            (item, written)
        };
        let items: Vec<_> = bundle.items.into_iter().zip(numbers).map(settle).collect();
        let ended = ended_among(&items);
        for (item, written) in items {
            if let Some(due) = item.due {
                timers::note(self, &item.subject.home(), due);
            }
            match written {
                Some(After::Execution(entry)) => {
                    // It is remembered before anybody is told of it, and may claim it.
                    self.entries.keep(&entry, item.since, item.rows, &ended);
                    if let (Some(queue), Some(place)) = (item.ready, entry.execution.queue_place())
                    {
                        self.became_ready(&queue.into(), entry.execution.id, &place);
                    }
                }
                Some(After::Document(document, rows)) => {
                    self.near.keep(&document.id, Some(&document), Instant::now());
                    self.tell_waiting(&document.id, Some(&document));
                    self.documents.keep(document, rows);
                }
                None => {
                    self.forget_one(&item.subject);
                    if let Subject::Document(id) = &item.subject {
                        self.tell_waiting(id, None);
                    }
                }
            }
        }
    }

    /// Lets claims that wait look again whether they are let in.
    fn tell_waiting(&self, id: &DocumentId, document: Option<&Document>) {
        let Home::Namespace(namespace) = &id.home else { return };
        let registration = document.and_then(Document::worker).map(|it| it.registration.as_ref());
        // A worker that says that it lives changes nothing.
        if !matches!(registration, Some(Some(registration)) if !registration.drains()) {
            self.waiters.wake_all_in(namespace);
        }
    }

    /// What is remembered of these may be wrong.
    pub(crate) fn forget(&self, bundle: &Bundle) {
        bundle.items.iter().for_each(|item| self.forget_one(&item.subject));
    }

    fn forget_one(&self, subject: &Subject) {
        match subject {
            Subject::Execution(id) => self.entries.forget(*id),
            Subject::Document(id) => {
                self.near.forget(id);
                self.documents.forget(id);
            }
        }
    }

    fn became_ready(self: &Arc<Self>, queue: &Arc<str>, id: ExecutionId, place: &QueuePlace<'_>) {
        let required = place.class;
        if !required.is_empty() && self.classes.learn(&class_of(required), required) {
            wake::interrupt(self, place.namespace);
        }
        let candidate = Candidate { score: place.score, id, expired: false };
        self.views.note_ready(queue, required, candidate);
        if self.client.is_cluster() {
            let (namespace, queue) = (place.namespace.clone(), queue.to_string());
            token::push(self, &Token { namespace, queue, partition: id.partition() });
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    fn check_open(&self) -> Result<(), EngineError> {
        if self.is_closing() {
            return Err(EngineError::unavailable("the store is shutting down"));
        }
        self.emptied.check()
    }
}

impl Backend for ValkeyStore {
    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>> {
        Box::pin(async move {
            match self.shared.check_open() {
                Ok(()) => apply::apply(&self.shared, commands).await,
                Err(error) => commands.iter().map(|_| Err(error.clone())).collect(),
            }
        })
    }

    fn take(&self, claim: Claim, wait: Duration) -> Pending<'_, Result<Claimed, EngineError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            wake::claim_or_wait(&self.shared, claim, wait).await
        })
    }

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            query.check(&self.shared.settings.partitions)?;
            query::answer(&self.shared, query).await.map_err(without_effect)
        })
    }

    fn follow(&self, topic: Topic, wait: Duration) -> Pending<'_, Result<Followed, EngineError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            let followed = match topic {
                Topic::Events(events) => {
                    events.check()?;
                    follow::events(&self.shared, &events, wait).await
                }
                Topic::Timers { known } => timers::sooner(&self.shared, known, wait).await,
                Topic::Frames(tail) => {
                    tail.check(wait, &self.shared.settings.partitions)?;
                    tails::frames(&self.shared, &tail.range(), wait).await
                }
            };
            followed.map_err(without_effect)
        })
    }
}

impl Upkeep for ValkeyStore {
    fn backend_label(&self) -> &'static str {
        LABEL
    }

    fn identity(&self) -> Identity {
        Identity {
            backend: LABEL,
            version: self.shared.client.server_version(),
            durability: self.shared.options.durability.as_str().to_owned(),
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
            self.shared.emptied.check()?;
            self.shared.client.ping().await
        })
    }

    fn server_time_ms(&self) -> Pending<'_, Result<TimestampMs, EngineError>> {
        Box::pin(async { Ok(read::read_keys(&self.shared, 0, Vec::new()).await?.0) })
    }

    fn trim(&self, trim: Trim) -> Pending<'_, Result<Trimmed, EngineError>> {
        Box::pin(async move { trim::trim(&self.shared, &trim).await })
    }

    fn repair(&self) -> Pending<'_, Result<Repaired, EngineError>> {
        Box::pin(async move { repair::repair(&self.shared).await })
    }

    fn reconcile(&self, page: Reconcile) -> Pending<'_, Result<Reconciled, EngineError>> {
        Box::pin(async move { reconcile::reconcile(&self.shared, &page).await })
    }

    fn take_turn(&self, turn: Turn) -> Pending<'_, Result<bool, EngineError>> {
        Box::pin(async move { turn::take(&self.shared, &turn).await })
    }

    fn shutdown_prepare(&self, grace: Duration) -> Pending<'_, Result<(), EngineError>> {
        Box::pin(async move {
            self.shared.closing.store(true, Ordering::Relaxed);
            self.shared.waiters.wake_all();
            self.shared.tails.end();
            self.shared.growth.end();
            self.shared.client.close(grace).await;
            Ok(())
        })
    }
}

/// The executions of a small commit that have ended: those that others of it may have waited for.
fn ended_among(items: &[(Item, Option<After>)]) -> Vec<Arc<Entry>> {
    if items.len() > ENDED_MOST {
        return Vec::new();
    }
    let executions = items.iter().filter_map(|(_, written)| match written {
        Some(After::Execution(entry)) => Some(entry),
        _ => None,
    });
    executions.filter(|entry| entry.execution.is_terminal()).cloned().collect()
}
