//! Commands that touch the same document, carried out together.
//!
//! Members of one flow change through the flow's record, so commits of concurrent callers would keep
//! hindering each other. In one process they stand in a line instead: whoever comes first starts a
//! leader, which takes all that wait, runs them one after another, each over what the ones before
//! left, and commits the net change of every execution and document as one group. What comes
//! meanwhile goes with the next group. Other processes are met by the commit, as everywhere.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ff_core::error::EngineError;
use ff_core::id::{DocumentId, Home, Subject};
use ff_core::limits;
use ff_core::machine::{Changes, Need, Overlay, Step};
use ff_core::time::TimestampMs;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::apply::{Done, Job, TRIES_MOST, load, number};
use crate::assure;
use crate::commit::{self, Committed};
use crate::item::{Bundle, Times, bundle};
use crate::net::Net;
use crate::read::{Known, read, read_more};
use crate::store::Shared;
use crate::wake::{Left, Token};

/// Times that a party reads because its commands ask for more. Each asks for a few things at most.
const READS_MOST: u32 = 1000;

/// Records after which a party takes no further command: as many as one step of a flow touches.
const RECORDS_MANY: usize = limits::FLOW_STEP as usize;

/// Records of a party: beside a large step there is room for small ones. A larger one goes alone.
const RECORDS_MOST: usize = RECORDS_MANY + RECORDS_MANY / 2;

/// Events of one item after which a party takes no further command; one command adds a few at most.
const EVENTS_MOST: usize = 128;

type Answer = Result<Done, EngineError>;

/// What became ready, and the number of the command whose caller it is left to.
type LeftTo = Vec<(usize, Token)>;

/// A line for each document that somebody waits for; it has a leader as long as it is here.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<HashMap<DocumentId, VecDeque<Waiting>>>);

struct Waiting {
    job: Job,
    since: Instant,
    answer: oneshot::Sender<Answer>,
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Waiting").field(&self.job.command.name()).finish()
    }
}

impl Lines {
    fn lock(&self) -> MutexGuard<'_, HashMap<DocumentId, VecDeque<Waiting>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The commands that go next: those of one kind, freeing or not, from the front. None: nobody
    /// waits, and the line is gone.
    fn take(&self, id: &DocumentId, patience: Duration) -> Option<Vec<Waiting>> {
        let mut lines = self.lock();
        let line = lines.get_mut(id)?;
        let mut party: Vec<Waiting> = Vec::new();
        while let Some(waiting) = line.pop_front() {
            let fits = party.len() < RECORDS_MANY
                && party.first().is_none_or(|p| p.job.is_freeing() == waiting.job.is_freeing());
            if !fits {
                line.push_front(waiting);
                break;
            }
            if waiting.since.elapsed() > patience {
                let late = EngineError::unavailable("too many calls wait for the same document");
                let _ = waiting.answer.send(Err(late));
            } else if !waiting.answer.is_closed() {
                party.push(waiting);
            }
        }
        if party.is_empty() {
            lines.remove(id);
            return None;
        }
        Some(party)
    }

    /// Puts commands back that the last group did not hold.
    fn put_back(&self, id: &DocumentId, left: Vec<Waiting>) {
        let mut lines = self.lock();
        let line = lines.entry(id.clone()).or_default();
        left.into_iter().rev().for_each(|waiting| line.push_front(waiting));
    }
}

/// Lets a command stand in the line of a document. It is carried out even if nobody waits any more
/// once it has begun.
pub(crate) fn join(shared: &Arc<Shared>, id: DocumentId, job: Job) -> oneshot::Receiver<Answer> {
    let (answer, answered) = oneshot::channel();
    let waiting = Waiting { job, since: Instant::now(), answer };
    let mut lines = shared.lines.lock();
    match lines.get_mut(&id) {
        Some(line) => line.push_back(waiting),
        None => {
            lines.insert(id.clone(), VecDeque::from([waiting]));
            // A runtime that shuts down drops the leader at once, and that takes the lock.
            drop(lines);
            let leader = Leader { shared: Arc::clone(shared), id, done: false };
            tokio::spawn(leader.lead());
        }
    }
    answered
}

/// Serves a line until nobody waits in it.
struct Leader {
    shared: Arc<Shared>,
    id: DocumentId,
    /// The line is gone, and may have a new leader already.
    done: bool,
}

impl Drop for Leader {
    /// Ends the line of a leader that did not get to its end: who waits there learns of it.
    fn drop(&mut self) {
        if !self.done {
            self.shared.lines.lock().remove(&self.id);
        }
    }
}

impl Leader {
    async fn lead(mut self) {
        while let Some(waiting) = self.shared.lines.take(&self.id, self.shared.options.call_timeout)
        {
            let left = Party::new(&self.shared, &self.id, waiting).serve().await;
            self.shared.lines.put_back(&self.id, left);
        }
        self.done = true;
    }
}

/// Commands that are carried out as one group.
struct Party<'a> {
    shared: &'a Arc<Shared>,
    home: Home,
    waiting: Vec<Waiting>,
    known: Known,
    asked_keyring: bool,
}

/// What running the commands came to.
enum Played {
    Lacks(Vec<Need>),
    /// The steps of the first commands; those behind them wait for the next group. Without a
    /// bundle they change nothing.
    Decided(Vec<Step>, Option<Bundle>),
}

impl<'a> Party<'a> {
    fn new(shared: &'a Arc<Shared>, id: &DocumentId, mut waiting: Vec<Waiting>) -> Self {
        let mut known = Known::default();
        for waiting in &mut waiting {
            known.extend(std::mem::take(&mut waiting.job.known));
        }
        if let Some(document) = shared.documents.get(id) {
            let mut remembered = Known::default();
            remembered.documents.insert(id.clone(), Some(document));
            known.extend(remembered);
        }
        known.read_at = None;
        Self { shared, home: id.home.clone(), waiting, known, asked_keyring: false }
    }

    /// Carries the commands out and answers them; gives those back that did not fit.
    async fn serve(mut self) -> Vec<Waiting> {
        match self.run().await {
            Ok((steps, mut left_to)) => {
                let left = self.waiting.split_off(steps.len());
                for (n, (waiting, step)) in self.waiting.into_iter().zip(steps).enumerate() {
                    let own = left_to.extract_if(.., |(caller, _)| *caller == n);
                    let own: Vec<_> = own.map(|(_, token)| token).collect();
                    let released = (!own.is_empty()).then(|| Box::new(Left::new(self.shared, own)));
                    let id = waiting.job.command.execution_id();
                    let before = id.and_then(|id| self.known.entry(id));
                    let before = before.map(|entry| Arc::clone(&entry.execution));
                    let reply = step.reply.map_err(EngineError::from);
                    let done = reply.map(|reply| Done { reply, before, left: released });
                    let _ = waiting.answer.send(done);
                }
                left
            }
            Err(error) => {
                for waiting in self.waiting {
                    let _ = waiting.answer.send(Err(error.clone()));
                }
                Vec::new()
            }
        }
    }

    /// The steps of the first commands, written, and what became ready and is left to which caller. It
    /// begins with what is remembered; whatever hinders the commit, all is read again.
    async fn run(&mut self) -> Result<(Vec<Step>, LeftTo), EngineError> {
        let (mut needs, mut tries, mut reads) = (None::<Vec<Need>>, 0, 0);
        while tries <= TRIES_MOST && reads <= READS_MOST {
            if let Some(needs) = needs.take() {
                reads += 1;
                self.asked_keyring |= needs.contains(&Need::Keyring);
                // Facts that the commands ask for one after another are added to what is there; only
                // where that did not do is everything read at once.
                if tries == 0 && !needs.is_empty() {
                    read_more(self.shared, &self.home, &mut self.known, &needs).await?;
                } else {
                    self.known = read(self.shared, &self.home, &self.known, &needs).await?;
                }
            }
            let load = load(self.waiting.iter().map(|waiting| &waiting.job));
            let room = self.shared.room_of(&self.home);
            let room = room.enter(load, self.shared.options.call_timeout).await?;
            let (mut steps, mut bundle) = match self.play()? {
                Played::Decided(steps, Some(bundle)) => (steps, bundle),
                Played::Decided(steps, None) => {
                    drop(room);
                    if steps.iter().any(|step| step.reply.is_ok()) {
                        assure::assure(self.shared, &self.home).await?;
                    }
                    return Ok((steps, Vec::new()));
                }
                Played::Lacks(lacking) => {
                    needs = if tries == 0 { self.recall(lacking) } else { Some(lacking) };
                    continue;
                }
            };
            let committed = self.commit(&bundle).await?;
            drop(room);
            if let Committed::Done(numbers) = committed {
                number(&mut steps, &bundle, &numbers);
                let left_to = std::mem::take(&mut bundle.left_to);
                let absent = self.known.entries.iter().filter(|(_, entry)| entry.is_none());
                self.shared.entries.note_absent(absent.map(|(id, _)| *id));
                self.shared.committed(bundle, &numbers);
                self.shared.tally.add(steps.iter().map(|step| &step.changes));
                for step in &steps {
                    self.shared.errands.note(step.changes.prompt_errands());
                }
                return Ok((steps, left_to));
            }
            self.forget();
            needs = Some(Vec::new());
            tries += 1;
        }
        Err(self.waiting[0].job.tried_enough())
    }

    /// Adds facts from memory, which the commit checks. Gives those that must be read; none when all
    /// that was asked for is there.
    fn recall(&mut self, mut needs: Vec<Need>) -> Option<Vec<Need>> {
        let asked = needs.len();
        needs.retain(|need| !self.known.recall(self.shared, &self.home, need));
        if needs.len() < asked {
            self.known.read_at = None;
        }
        (asked == 0 || !needs.is_empty()).then_some(needs)
    }

    /// Forgets all that the commands rested on: some of it has changed.
    fn forget(&self) {
        self.known.entries.keys().for_each(|id| self.shared.entries.forget(*id));
        self.known.documents.keys().for_each(|id| self.shared.documents.forget(id));
    }

    async fn commit(&self, bundle: &Bundle) -> Result<Committed, EngineError> {
        let freeing = self.waiting[0].job.is_freeing();
        let sent = commit::send(self.shared, vec![Arc::clone(&bundle.group)], freeing).await;
        if sent.is_err() {
            self.forget();
        }
        sent?.pop().ok_or_else(|| EngineError::bug("a group was not answered"))
    }

    /// Runs the commands one after another over what is known. Where facts are missing, the ones
    /// behind run all the same, to learn what they lack.
    fn play(&self) -> Result<Played, EngineError> {
        let estimate = || self.shared.clock.estimate(&self.home);
        let Some(now) = self.known.read_at.or_else(estimate) else {
            return Ok(Played::Lacks(Vec::new()));
        };
        let mut overlay = Overlay::new(Arc::clone(&self.shared.settings));
        self.known.supply(&mut overlay)?;
        let knows_kids = || self.waiting.iter().all(|w| w.job.has_kid(self.shared));
        let keyring = self.shared.keyring.fresh().filter(|_| self.asked_keyring || knows_kids());
        if let Some(keyring) = keyring {
            overlay.supply_keyring(keyring);
        }
        let (mut steps, mut lacking, mut used) = (Vec::new(), Vec::new(), Vec::new());
        let mut extent = Extent::default();
        for waiting in &self.waiting {
            match waiting.job.step(self.shared, &mut overlay, now, &mut used) {
                Err(needs) => lacking.extend(needs),
                Ok(step) if !extent.has_room_for(&step.changes) => break,
                Ok(step) => {
                    overlay.absorb(&step.changes);
                    extent.take(&step.changes);
                    steps.push(step);
                }
            }
            if extent.is_full() {
                break;
            }
        }
        if !lacking.is_empty() {
            return Ok(Played::Lacks(lacking));
        }
        // What is refused is so by what other homes say now.
        if !used.is_empty() && steps.iter().any(|step| step.reply.is_err()) {
            return Ok(Played::Lacks(used));
        }
        let bundle = self.bundle(&steps, now)?;
        // What changes nothing is answered over a read only.
        if bundle.is_none() && self.known.read_at.is_none() {
            return Ok(Played::Lacks(Vec::new()));
        }
        Ok(Played::Decided(steps, bundle))
    }

    fn bundle(&self, steps: &[Step], now: TimestampMs) -> Result<Option<Bundle>, EngineError> {
        let mut net = Net::default();
        steps.iter().for_each(|step| net.take(&step.changes));
        if net.len() == 0 {
            return Ok(None);
        }
        // What one command rests on must hold for all: they are written together.
        let jobs = self.waiting.iter().take(steps.len()).map(|waiting| &waiting.job);
        let until = jobs.clone().filter_map(|job| job.until(&self.known, now)).min();
        let followers = jobs.enumerate().filter_map(|(n, job)| job.follower(n, &self.known));
        let (followers, times) = (followers.collect(), Times { now, until });
        bundle(self.shared, &self.home, &net, &self.known, times, followers).map(Some)
    }
}

/// How much the steps so far change.
#[derive(Default)]
struct Extent {
    /// Events of each record that is touched.
    events: HashMap<Subject, usize>,
    gone: HashSet<Subject>,
}

impl Extent {
    fn take(&mut self, changes: &Changes) {
        for (subject, events, gone) in touched(changes) {
            *self.events.entry(subject.clone()).or_default() += events;
            if gone {
                self.gone.insert(subject);
            }
        }
    }

    fn is_full(&self) -> bool {
        self.events.len() >= RECORDS_MANY || self.events.values().any(|count| *count >= EVENTS_MOST)
    }

    /// A large step goes alone, and what touches what an earlier one removed takes a commit between them.
    fn has_room_for(&self, changes: &Changes) -> bool {
        let subjects = || touched(changes).map(|(subject, ..)| subject);
        let new = subjects().filter(|subject| !self.events.contains_key(subject)).count();
        let fits = self.events.is_empty() || self.events.len() + new <= RECORDS_MOST;
        fits && !subjects().any(|subject| self.gone.contains(&subject))
    }
}

/// Each record that a step touches, how many events it gets, and whether it is removed.
fn touched(changes: &Changes) -> impl Iterator<Item = (Subject, usize, bool)> {
    let executions = changes.executions.iter();
    let executions = executions
        .map(|changed| (changed.id.into(), changed.events.len(), changed.after.is_none()));
    let documents = changes.documents.iter();
    let documents = documents
        .map(|changed| ((&changed.id).into(), changed.events.len(), changed.after.is_none()));
    executions.chain(documents)
}
