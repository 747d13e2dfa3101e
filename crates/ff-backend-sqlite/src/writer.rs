//! The one writer: a thread that takes whatever is waiting as one batch and one transaction.
//!
//! Alone, a command goes at once; in a crowd commands group themselves, because a batch is what
//! arrived while the one before was written. Claims that found nothing stay with the writer, and
//! the commit that makes work for them puts them into the next batch.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use ff_core::capability::Capabilities;
use ff_core::errand::Errands;
use ff_core::error::EngineError;
use ff_core::id::{DocumentId, Subject};
use ff_core::machine::Settings;
use ff_core::operation::{Claim, Claimed, Command, Reconcile, Reconciled, Reply, Trim, Trimmed};
use ff_core::read::Repaired;
use ff_core::state::Registration;
use ff_core::tails::Tails;
use ff_core::tally::Tally;
use ff_core::time::TimestampMs;
use ff_core::token::Keyring;
use ff_relational::{Answer, Batch, Job, Outcome, Waiter, Waiting, Writes, encode_keyring};
use rusqlite::{Connection, params};
use tokio::sync::{oneshot, watch};

use crate::clock::SteadyClock;
use crate::error::{commit_fault, fault};
use crate::passed::PassedOver;
use crate::queues::Queues;
use crate::records::Records;
use crate::stats::Counters;
use crate::{load, reconcile, repair, statements, trim, write};

/// Commands of one transaction, unless a single caller brings more at once.
const BATCH_COMMANDS: usize = 256;

/// How long a batch that is small for its crowd waits for one more.
const LINGER: Duration = Duration::from_micros(50);

pub(crate) type Replies = Vec<Result<Reply, EngineError>>;
pub(crate) type Tasks = Result<Claimed, EngineError>;

/// What the writer may be asked for.
pub(crate) enum Message {
    Apply {
        commands: Vec<Command>,
        answer: oneshot::Sender<Replies>,
    },
    Claim {
        claim: Claim,
        until: Instant,
        answer: oneshot::Sender<Tasks>,
    },
    Trim {
        trim: Trim,
        answer: oneshot::Sender<Result<Trimmed, EngineError>>,
    },
    Reconcile {
        page: Reconcile,
        answer: oneshot::Sender<Result<Reconciled, EngineError>>,
    },
    Repair {
        answer: oneshot::Sender<Result<Repaired, EngineError>>,
    },
    /// A read that must run on this connection: a store in memory has no other.
    Read(Box<dyn FnOnce(&Connection) + Send>),
    Stop {
        answer: oneshot::Sender<()>,
    },
}

/// What the writer shows to the rest of the process.
pub(crate) struct Shared {
    pub(crate) settings: Arc<Settings>,
    pub(crate) clock: SteadyClock,
    /// Number of the newest committed event.
    pub(crate) events: watch::Sender<u64>,
    /// The earliest timer.
    pub(crate) timers: watch::Sender<Option<TimestampMs>>,
    /// What is due and is passed over.
    pub(crate) passed: PassedOver,
    /// Who waits for output.
    pub(crate) tails: Tails,
    pub(crate) counters: Counters,
    pub(crate) errands: Errands,
    pub(crate) tally: Tally,
}

pub(crate) struct Writer {
    connection: Connection,
    inbox: Receiver<Message>,
    shared: Arc<Shared>,
    queues: Queues,
    records: Records,
    keyring: Arc<Keyring>,
    waiting: Waiting<oneshot::Sender<Tasks>>,
    /// Woken, to be tried again in the next batch.
    woken: Vec<Waiter<oneshot::Sender<Tasks>>>,
    /// Commands and claims of the last batch.
    crowd: usize,
    last_event: u64,
}

/// Who gets the answers of a stretch of a batch.
enum Asker {
    Commands { count: usize, answer: oneshot::Sender<Replies> },
    Claim(Waiter<oneshot::Sender<Tasks>>),
}

/// What came in while the writer was busy.
#[derive(Default)]
struct Intake {
    askers: Vec<Asker>,
    jobs: Vec<Job>,
    others: Vec<Message>,
}

impl Writer {
    pub(crate) fn new(
        connection: Connection,
        inbox: Receiver<Message>,
        shared: Arc<Shared>,
        queues: Queues,
        keyring: Keyring,
        last_event: u64,
    ) -> Self {
        Self {
            connection,
            inbox,
            shared,
            queues,
            records: Records::default(),
            keyring: Arc::new(keyring),
            waiting: Waiting::default(),
            woken: Vec::new(),
            crowd: 0,
            last_event,
        }
    }

    /// Works until it is told to stop or nobody is left who could ask.
    pub(crate) fn run(mut self) {
        while let Some(intake) = self.take_in() {
            if !intake.jobs.is_empty() {
                self.carry_out(intake.askers, intake.jobs);
            }
            for message in intake.others {
                if let Some(answer) = self.carry_out_other(message) {
                    self.stop(answer);
                    return;
                }
            }
            self.end_waits(Instant::now());
        }
    }

    /// What is waiting now; blocks until there is something. None when all askers are gone.
    fn take_in(&mut self) -> Option<Intake> {
        let mut intake = Intake::default();
        for waiter in std::mem::take(&mut self.woken) {
            intake.claim(waiter);
        }
        if intake.jobs.is_empty() {
            match self.receive() {
                Ok(message) => intake.take(message),
                Err(RecvTimeoutError::Timeout) => return Some(intake),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        self.gather(&mut intake);
        self.crowd = intake.jobs.len();
        Some(intake)
    }

    /// Takes along whoever comes now. Callers that were answered just now are likely to ask again
    /// at once, and a commit that takes them along is worth a moment; without a crowd nobody
    /// waits. The moment is spent looking, not asleep: waking up would cost as much.
    fn gather(&self, intake: &mut Intake) {
        let mut until: Option<Instant> = None;
        while intake.has_room() {
            match self.inbox.try_recv() {
                Ok(message) => {
                    intake.take(message);
                    until = None;
                }
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {
                    let until = *until.get_or_insert_with(|| Instant::now() + LINGER);
                    if intake.jobs.len() >= self.crowd || Instant::now() >= until {
                        break;
                    }
                    std::thread::yield_now();
                }
            }
        }
    }

    fn receive(&self) -> Result<Message, RecvTimeoutError> {
        match self.waiting.next_deadline() {
            None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(deadline) => {
                let wait = deadline.saturating_duration_since(Instant::now());
                self.inbox.recv_timeout(wait.max(Duration::from_micros(100)))
            }
        }
    }

    fn carry_out(&mut self, askers: Vec<Asker>, jobs: Vec<Job>) {
        self.shared.counters.add_batch(jobs.len());
        match self.transact(jobs) {
            Ok(outcome) => {
                // Whoever is answered finds its own events behind a cursor taken now.
                if !outcome.writes.events.is_empty() {
                    self.shared.events.send_replace(self.last_event);
                }
                // Who ticked asks next what is due.
                if !outcome.passed.is_empty() {
                    self.shared.passed.note(outcome.passed, self.shared.clock.now());
                    self.look_at_timers();
                }
                self.answer(askers, outcome.answers);
                self.publish(&outcome.writes);
            }
            Err(error) => {
                tracing::error!(%error, "a batch was not written");
                refuse(askers, &error);
            }
        }
    }

    /// Loads, runs, writes and commits. On an error nothing was written, unless the commit itself
    /// failed, which the error then says.
    fn transact(&mut self, jobs: Vec<Job>) -> Result<Outcome, EngineError> {
        self.run_plain("BEGIN IMMEDIATE").map_err(|error| fault(&error))?;
        let result = self.run_batch(jobs).and_then(|(outcome, last_event)| {
            self.run_plain("COMMIT")
                .map_err(|error| commit_fault(&error))
                .map(|()| (outcome, last_event))
        });
        match result {
            Ok((mut outcome, last_event)) => {
                self.last_event = last_event;
                self.queues.committed();
                self.records.committed(&outcome.writes);
                self.shared.errands.note(std::mem::take(&mut outcome.errands));
                self.shared.tally.merge(std::mem::take(&mut outcome.counts));
                if let Some(keyring) = &outcome.writes.keyring {
                    self.keyring = Arc::clone(keyring);
                }
                Ok(outcome)
            }
            Err(error) => {
                self.queues.rolled_back();
                if !self.connection.is_autocommit()
                    && let Err(error) = self.run_plain("ROLLBACK")
                {
                    tracing::error!(%error, "rollback failed");
                }
                Err(error)
            }
        }
    }

    fn run_plain(&self, statement: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(statement)?.execute([]).map(|_| ())
    }

    fn run_batch(&mut self, jobs: Vec<Job>) -> Result<(Outcome, u64), EngineError> {
        let now = self.shared.clock.now();
        let resting = self.shared.passed.resting(now);
        let mut batch = Batch::new(Arc::clone(&self.shared.settings), jobs);
        let mut needs = batch.first_needs();
        loop {
            let kept = (&mut self.queues, &mut self.records);
            batch.overlay().supply_keyring(Arc::clone(&self.keyring));
            load::load(&self.connection, kept, &resting, &needs, batch.overlay())?;
            let mut last_event = self.last_event;
            let outcome = batch.run(now, || {
                last_event += 1;
                last_event
            });
            match outcome {
                Ok(outcome) => {
                    write::write(&self.connection, &mut self.queues, &outcome.writes)?;
                    return Ok((outcome, last_event));
                }
                Err(lacking) => needs = lacking,
            }
        }
    }

    fn answer(&mut self, askers: Vec<Asker>, answers: Vec<Answer>) {
        let mut answers = answers.into_iter();
        for asker in askers {
            match asker {
                Asker::Commands { count, answer } => {
                    let replies = answers.by_ref().take(count).map(as_reply).collect();
                    let _ = answer.send(replies);
                }
                Asker::Claim(waiter) => match answers.next().map(as_tasks) {
                    Some(Ok(tasks))
                        if tasks.is_empty()
                            && waiter.until > Instant::now()
                            && !self.drains(&waiter.claim) =>
                    {
                        self.waiting.park(waiter);
                    }
                    tasks => {
                        let _ = waiter.answer.send(tasks.unwrap_or_else(|| Ok(Claimed::default())));
                    }
                },
            }
        }
    }

    /// Tells those who wait for time or for work.
    fn publish(&mut self, writes: &Writes) {
        if writes.moves_timers() {
            self.look_at_timers();
        }
        if !self.shared.tails.is_empty() {
            writes.output().for_each(|id| self.shared.tails.tell(id));
        }
        self.wake_claims(writes);
        self.wake_lanes(writes);
    }

    /// Tells when time has something to do next.
    fn look_at_timers(&self) {
        let resting = self.shared.passed.resting(self.shared.clock.now());
        match next_due(&self.connection, &resting) {
            Ok(due) => {
                self.shared.timers.send_if_modified(|known| std::mem::replace(known, due) != due);
            }
            Err(error) => tracing::warn!(%error, "the next timer could not be read"),
        }
    }

    /// A worker that drains waits for nothing.
    fn drains(&mut self, claim: &Claim) -> bool {
        let id = DocumentId::worker(&claim.namespace, &claim.worker_instance_id);
        let document = self.records.document(&id).flatten();
        let worker = document.as_ref().and_then(|document| document.worker());
        worker.and_then(|worker| worker.registration.as_ref()).is_some_and(Registration::drains)
    }

    /// What a change of lanes and workers means for claims that wait: those of a lane that opens
    /// look again, and so does a worker that is to get nothing more: it must not be woken for work.
    fn wake_lanes(&mut self, writes: &Writes) {
        for lane in writes.opened_lanes() {
            let anything = Capabilities::default();
            while let Some(waiter) = self.waiting.wake(&lane.namespace, &lane.name, &anything) {
                self.woken.push(waiter);
            }
        }
        for worker in writes.stopped_workers() {
            let (namespace, instance) = (&worker.namespace, &worker.worker_instance_id);
            while let Some(waiter) = self.waiting.of_instance(namespace, instance) {
                self.woken.push(waiter);
            }
        }
    }

    /// Wakes about as many waiting claims as there is new work, never all of them.
    fn wake_claims(&mut self, writes: &Writes) {
        if self.waiting.is_empty() {
            return;
        }
        let mut spare = 0;
        let mut last: Option<Waiter<oneshot::Sender<Tasks>>> = None;
        for (namespace, lane, class) in writes.became_ready() {
            let fits = |waiter: &Waiter<_>| {
                waiter.claim.namespace == *namespace
                    && waiter.claim.lanes.iter().any(|share| share.lane == *lane)
                    && waiter.claim.capabilities.covers(class)
            };
            if spare > 0 && last.as_ref().is_some_and(fits) {
                spare -= 1;
                continue;
            }
            while let Some(waiter) = self.waiting.wake(namespace, lane, class) {
                // A caller that has gone away would take the work with it.
                if !waiter.answer.is_closed() {
                    spare = waiter.claim.max - 1;
                    self.woken.extend(last.replace(waiter));
                    break;
                }
            }
        }
        self.woken.extend(last);
    }

    fn end_waits(&mut self, now: Instant) {
        while let Some(waiter) = self.waiting.expired(now) {
            let _ = waiter.answer.send(Ok(Claimed::default()));
        }
    }

    /// Gives back the answer channel of a request to stop.
    fn carry_out_other(&mut self, message: Message) -> Option<oneshot::Sender<()>> {
        match message {
            Message::Trim { trim, answer } => {
                self.shared.counters.add_batch(1);
                let _ = answer.send(self.trim(&trim));
            }
            Message::Reconcile { page, answer } => {
                self.shared.counters.add_batch(1);
                let _ = answer.send(self.reconcile(&page));
            }
            Message::Repair { answer } => {
                let _ = answer.send(self.repair());
            }
            Message::Read(read) => read(&self.connection),
            Message::Stop { answer } => return Some(answer),
            Message::Apply { .. } | Message::Claim { .. } => {}
        }
        None
    }

    fn trim(&mut self, trim: &Trim) -> Result<Trimmed, EngineError> {
        let now = self.shared.clock.now();
        let trimmed = trim::trim(&mut self.connection, trim, now).map_err(|error| fault(&error))?;
        if let Some(swept) = self.keyring.swept(now) {
            let record = encode_keyring(&swept)?;
            let put = self.connection.execute(statements::put_keyring, params![record]);
            put.map_err(|error| fault(&error))?;
            self.keyring = Arc::new(swept);
        }
        Ok(trimmed)
    }

    fn repair(&mut self) -> Result<Repaired, EngineError> {
        let now = self.shared.clock.now();
        let repaired = repair::repair(&mut self.connection, &mut self.queues, now);
        self.relisted(repaired.is_ok());
        repaired
    }

    fn reconcile(&mut self, page: &Reconcile) -> Result<Reconciled, EngineError> {
        page.check()?;
        let (settings, now) = (Arc::clone(&self.shared.settings), self.shared.clock.now());
        let connection = &mut self.connection;
        let done = reconcile::reconcile(connection, &mut self.queues, (&settings, now), page);
        match &done {
            Ok(done) if done.mended == 0 => self.queues.committed(),
            done => self.relisted(done.is_ok()),
        }
        done
    }

    /// Queues and timers were changed past the rules: all that was derived from them is looked at anew.
    fn relisted(&mut self, is_written: bool) {
        if is_written {
            self.queues.committed();
        } else {
            self.queues.rolled_back();
        }
        self.shared.passed.forget();
        if let Ok(due) = next_due(&self.connection, &HashSet::new()) {
            self.shared.timers.send_replace(due);
        }
        while let Some(waiter) = self.waiting.pop() {
            self.woken.push(waiter);
        }
    }

    /// Ends all waits and leaves a file that needs no recovery.
    fn stop(mut self, answer: oneshot::Sender<()>) {
        for waiter in std::mem::take(&mut self.woken) {
            let _ = waiter.answer.send(Ok(Claimed::default()));
        }
        while let Some(waiter) = self.waiting.pop() {
            let _ = waiter.answer.send(Ok(Claimed::default()));
        }
        if let Err(error) = self.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)") {
            tracing::warn!(%error, "checkpoint at shutdown failed; the next start replays the log");
        }
        self.connection.flush_prepared_statement_cache();
        drop(self.connection);
        let _ = answer.send(());
    }
}

impl Intake {
    fn has_room(&self) -> bool {
        self.jobs.len() < BATCH_COMMANDS && self.others.is_empty()
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Apply { commands, answer } => {
                self.askers.push(Asker::Commands { count: commands.len(), answer });
                self.jobs.extend(commands.into_iter().map(Job::Command));
            }
            Message::Claim { claim, until, answer } => {
                self.claim(Waiter::new(claim, until, answer));
            }
            other => self.others.push(other),
        }
    }

    fn claim(&mut self, waiter: Waiter<oneshot::Sender<Tasks>>) {
        if !waiter.answer.is_closed() {
            self.jobs.push(Job::Claim(waiter.claim.clone()));
            self.askers.push(Asker::Claim(waiter));
        }
    }
}

fn as_reply(answer: Answer) -> Result<Reply, EngineError> {
    match answer {
        Answer::Reply(reply) => reply,
        Answer::Claimed(_) => Err(EngineError::bug("tasks for a command")),
    }
}

fn as_tasks(answer: Answer) -> Tasks {
    match answer {
        Answer::Claimed(claimed) => claimed,
        Answer::Reply(_) => Err(EngineError::bug("a reply for a claim")),
    }
}

fn refuse(askers: Vec<Asker>, error: &EngineError) {
    for asker in askers {
        match asker {
            Asker::Commands { count, answer } => {
                let _ = answer.send(vec![Err(error.clone()); count]);
            }
            Asker::Claim(waiter) => {
                let _ = waiter.answer.send(Err(error.clone()));
            }
        }
    }
}

/// The earliest timer of what does not rest.
pub(crate) fn next_due(
    connection: &Connection,
    resting: &HashSet<Subject>,
) -> rusqlite::Result<Option<TimestampMs>> {
    if !resting.is_empty() {
        let ever = (TimestampMs(i64::MAX), 0);
        let due = load::due(connection, None, ever, resting)?;
        return Ok(due.first().map(|(at, _)| TimestampMs(*at)));
    }
    let mut statement = connection.prepare_cached(statements::next_due)?;
    let due = statement.query_row([], |row| row.get::<_, Option<i64>>(0))?;
    Ok(due.map(TimestampMs))
}
