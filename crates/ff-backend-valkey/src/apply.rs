//! Carries out commands: run the machine over what is known, commit if it is still so, else read
//! and run again.
//!
//! What this process remembers of an execution, and that a new one does not exist yet, is good
//! enough to try a commit, which checks it: one round trip. It is never good enough to answer
//! without one: a refusal, or a reply that changes nothing, rests on a read.
//!
//! What touches a document goes through its line (`combine.rs`), so that callers of one process do
//! not fight for it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use ff_core::error::{Code, EngineError};
use ff_core::id::{DocumentId, ExecutionId, Home, Subject};
use ff_core::machine::{self, DedupKey, DedupScope, Need, Overlay, Step};
use ff_core::operation::{ClaimNext, Command, DeliverSignal, Reply, Tick};
use ff_core::time::TimestampMs;
use tokio::sync::oneshot;

use crate::commit::Committed;
use crate::item::{Bundle, Follower, Times, bundle};
use crate::net::Net;
use crate::read::{Known, read, read_together};
use crate::room::Load;
use crate::store::{Shared, join_all};
use crate::wake::Left;
use crate::{assure, claim, combine, commit, due, keyring, near};

/// How often a command is decided again because others changed what it rests on.
pub(crate) const TRIES_MOST: u32 = 200;

/// And because it arrived too late.
const LATE_MOST: u32 = 20;

pub(crate) type Answer = Result<Reply, EngineError>;

/// A command under way.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) command: Command,
    pub(crate) home: Home,
    pub(crate) known: Known,
    /// The one entry that a tick carries out here.
    due: Option<Subject>,
    /// The document that it is known to touch.
    document: Option<DocumentId>,
    /// What its caller claims afterwards.
    next: Option<ClaimNext>,
    reread: bool,
    /// It has read the keyring itself.
    asked_keyring: bool,
    tries: u32,
}

/// What a job does next.
enum Turn {
    Answer(Answer),
    Read(Vec<Need>),
    /// It is decided together with others that touch the same document.
    Join(DocumentId),
    Commit(Box<(Step, Bundle)>),
}

/// Carries out commands and answers each, in the same order.
pub(crate) async fn apply(shared: &Arc<Shared>, commands: Vec<Command>) -> Vec<Answer> {
    let mut answers: Vec<Option<Answer>> = commands.iter().map(|_| None).collect();
    let mut wave = Wave::default();
    for (at, command) in commands.into_iter().enumerate() {
        if let Err(refusal) = machine::check(&shared.settings, &command) {
            answers[at] = Some(Err(refusal.into()));
            continue;
        }
        if let Command::SeedSecret(_) | Command::RotateSecret(_) = command {
            wave.run(shared, &mut answers).await;
            answers[at] = Some(keyring::apply(shared, &command).await);
            continue;
        }
        if let Command::Tick(tick) = command {
            wave.run(shared, &mut answers).await;
            answers[at] = Some(due::tick(shared, &tick).await.map(Reply::Tick));
            continue;
        }
        if !wave.takes(shared, &command) {
            wave.run(shared, &mut answers).await;
        }
        wave.push(shared, at, command);
    }
    wave.run(shared, &mut answers).await;
    let missing = || Err(EngineError::bug("a command was not answered"));
    answers.into_iter().map(|answer| answer.unwrap_or_else(missing)).collect()
}

/// Commands that touch different things, so that their order does not matter.
#[derive(Default)]
struct Wave {
    jobs: Vec<(usize, Job)>,
    nexts: Vec<(usize, ClaimNext)>,
    executions: HashSet<ExecutionId>,
    dedups: HashSet<DedupKey>,
    /// Whether it is of commands that name a document: these keep their order by its line, and any
    /// other command may turn out to touch the same one.
    of_documents: bool,
}

impl Wave {
    fn takes(&self, shared: &Shared, command: &Command) -> bool {
        let of_document = command.document_id(&shared.settings.partitions).is_some();
        (self.jobs.is_empty() || of_document == self.of_documents)
            && command.execution_id().is_none_or(|id| !self.executions.contains(&id))
            && dedup_key(command).is_none_or(|key| !self.dedups.contains(&key))
    }

    fn push(&mut self, shared: &Shared, at: usize, mut command: Command) {
        self.executions.extend(command.execution_id());
        self.dedups.extend(dedup_key(&command));
        self.of_documents = command.document_id(&shared.settings.partitions).is_some();
        let next = match &mut command {
            Command::Complete(complete) => complete.next.take(),
            _ => None,
        };
        self.nexts.extend(next.clone().map(|next| (at, next)));
        self.jobs.push((at, Job { next, ..Job::new(shared, command) }));
    }

    async fn run(&mut self, shared: &Arc<Shared>, answers: &mut [Option<Answer>]) {
        let wave = std::mem::take(self);
        let (places, jobs): (Vec<_>, Vec<_>) = wave.jobs.into_iter().unzip();
        let held: Vec<_> = wave.nexts.iter().map(|(at, _)| *at).collect();
        for (at, done) in places.into_iter().zip(run(shared, jobs).await) {
            answers[at] = Some(match done {
                Ok(done) if held.contains(&at) => {
                    let next = wave.nexts.iter().find(|(n, _)| *n == at).map(|(_, next)| next);
                    Ok(with_next(shared, done, next).await)
                }
                Ok(done) => Ok(done.reply),
                Err(error) => Err(error),
            });
        }
    }
}

/// A completion, and the next tasks of its worker. The claim is an act of its own: should it fail,
/// the completion stands and brings no tasks.
async fn with_next(shared: &Arc<Shared>, done: Done, next: Option<&ClaimNext>) -> Reply {
    let Done { mut reply, before, left } = done;
    if let (Reply::Complete(completed), Some(next), Some(before)) = (&mut reply, next, before)
        && !completed.replayed
        && let Some(claim) = next.as_claim(&before)
    {
        match claim::claim_free(shared, &claim).await {
            Ok(tasks) => {
                completed.tasks = tasks;
                left.into_iter().for_each(|left| left.claimed());
            }
            Err(error) => tracing::warn!(%error, "a completion could not claim its next tasks"),
        }
    }
    reply
}

/// A job that was answered, and the execution before it.
pub(crate) struct Done {
    pub(crate) reply: Reply,
    pub(crate) before: Option<Arc<ff_core::state::Execution>>,
    /// What became ready and is left to its caller, should that one claim next.
    pub(crate) left: Option<Box<Left>>,
}

/// Runs jobs that touch different things until each is answered. Those of different nodes go their own
/// ways: one that does not answer holds up nothing of the others.
pub(crate) async fn run(shared: &Arc<Shared>, jobs: Vec<Job>) -> Vec<Result<Done, EngineError>> {
    if !shared.client.is_cluster() || jobs.len() <= 1 {
        return run_on_node(shared, jobs).await;
    }
    let mut nodes: BTreeMap<usize, (Vec<usize>, Vec<Job>)> = BTreeMap::new();
    for (at, job) in jobs.into_iter().enumerate() {
        let (places, own) = nodes.entry(shared.node_of(&job.home)).or_default();
        places.push(at);
        own.push(job);
    }
    let running = nodes.into_values().map(|(places, jobs)| async move {
        places.into_iter().zip(run_on_node(shared, jobs).await).collect::<Vec<_>>()
    });
    let mut done: Vec<_> = join_all(running).await.into_iter().flatten().collect();
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, done)| done).collect()
}

/// Runs jobs of one node.
async fn run_on_node(shared: &Arc<Shared>, jobs: Vec<Job>) -> Vec<Result<Done, EngineError>> {
    let mut done: Vec<Option<Result<Done, EngineError>>> = jobs.iter().map(|_| None).collect();
    let mut open: Vec<(usize, Job)> = jobs.into_iter().enumerate().collect();
    while !open.is_empty() {
        let (mut reads, mut commits, mut joined) = (Vec::new(), Vec::new(), Vec::new());
        let (mut answered, mut later) = (Vec::new(), Vec::new());
        let load = load(open.iter().map(|(_, job)| job));
        let room = shared.room_of(&open[0].1.home);
        let room = match room.enter(load, shared.options.call_timeout).await {
            Ok(room) => room,
            Err(error) => {
                open.iter().for_each(|(at, _)| done[*at] = Some(Err(error.clone())));
                break;
            }
        };
        for (at, job) in open {
            match job.turn(shared) {
                Turn::Answer(Ok(reply)) => answered.push((at, job, reply)),
                Turn::Answer(Err(error)) => done[at] = Some(Err(error)),
                Turn::Read(needs) => reads.push((at, job, needs)),
                // Time does things in their order: what comes before may be of the same flow.
                Turn::Join(_) if job.due.is_some() && !reads.is_empty() => later.push((at, job)),
                Turn::Join(id) => joined.push((at, combine::join(shared, id, job))),
                Turn::Commit(step) => commits.push((at, job, *step)),
            }
        }
        open = Vec::new();
        // Nobody holds room while a line decides, which takes room itself.
        let room = (!commits.is_empty()).then_some(room);
        let (assured, read, committed, joined) = tokio::join!(
            assure_all(shared, answered),
            read_all(shared, reads),
            async {
                let committed = commit_all(shared, commits).await;
                drop(room);
                committed
            },
            join_all(joined.into_iter().map(answer_of)),
        );
        for (at, result) in read {
            match result {
                Ok(job) => open.push((at, job)),
                Err(error) => done[at] = Some(Err(error)),
            }
        }
        for (at, answer) in joined.into_iter().chain(assured) {
            done[at] = Some(answer);
        }
        for (at, outcome) in committed {
            match outcome {
                Outcome::Done(answer) => done[at] = Some(answer),
                Outcome::Again(job) => open.push((at, *job)),
            }
        }
        open.append(&mut later);
        open.sort_unstable_by_key(|(at, _)| *at);
    }
    let missing = || Err(EngineError::bug("a job was not answered"));
    done.into_iter().map(|answer| answer.unwrap_or_else(missing)).collect()
}

/// How much room these jobs take.
pub(crate) fn load<'a>(jobs: impl Iterator<Item = &'a Job>) -> Load {
    jobs.fold(Load::default(), |load, job| Load {
        items: load.items + job.items(),
        freeing: load.freeing || job.is_freeing(),
    })
}

/// What a line answered; it always does, unless the whole process is about to end.
async fn answer_of(
    (at, answered): (usize, oneshot::Receiver<Result<Done, EngineError>>),
) -> (usize, Result<Done, EngineError>) {
    let gone = |_| EngineError::unavailable("the store was closed before it carried this out");
    (at, answered.await.map_err(gone).flatten())
}

/// Gives answers that wrote nothing, once what they rest on is durable.
async fn assure_all(
    shared: &Arc<Shared>,
    answered: Vec<(usize, Job, Reply)>,
) -> Vec<(usize, Result<Done, EngineError>)> {
    let homes: BTreeSet<Home> = answered.iter().map(|(_, job, _)| job.home.clone()).collect();
    let assuring = homes.iter().map(|home| assure::assure(shared, home));
    let assured = join_all(assuring).await;
    let assured: BTreeMap<Home, _> = homes.iter().cloned().zip(assured).collect();
    let answer = |(at, job, reply): (usize, Job, Reply)| {
        let assured = assured.get(&job.home).cloned().unwrap_or(Ok(()));
        (at, assured.map(|()| Done { reply, before: None, left: None }))
    };
    answered.into_iter().map(answer).collect()
}

/// A job, where it stands among its wave, and what it needs.
type Asking = (usize, Job, Vec<Need>);

/// Jobs whose needs one call reads.
const READ_TOGETHER: usize = 64;

async fn read_all(
    shared: &Arc<Shared>,
    reads: Vec<Asking>,
) -> Vec<(usize, Result<Job, EngineError>)> {
    let mut homes: BTreeMap<Home, Vec<Asking>> = BTreeMap::new();
    for asking in reads {
        homes.entry(asking.1.home.clone()).or_default().push(asking);
    }
    let mut calls = Vec::new();
    for (home, mut asking) in homes {
        while !asking.is_empty() {
            let rest = asking.split_off(asking.len().min(READ_TOGETHER));
            calls.push(read_for(shared, home.clone(), std::mem::replace(&mut asking, rest)));
        }
    }
    let mut results: Vec<_> = join_all(calls).await.into_iter().flatten().collect();
    results.sort_unstable_by_key(|(at, _)| *at);
    results
}

/// Reads for jobs of one home. A record that cannot be read is its own job's affair.
async fn read_for(
    shared: &Arc<Shared>,
    home: Home,
    asking: Vec<Asking>,
) -> Vec<(usize, Result<Job, EngineError>)> {
    let asked: Vec<_> = asking.iter().map(|(_, job, needs)| (&job.known, &needs[..])).collect();
    let known: Vec<_> = match read_together(shared, &home, &asked).await {
        Ok(known) => known.into_iter().map(Ok).collect(),
        Err(error) if error.code() != Code::Corruption => {
            asked.iter().map(|_| Err(error.clone())).collect()
        }
        Err(_) => {
            let alone = asked.iter().map(|(known, needs)| read(shared, &home, known, needs));
            join_all(alone).await
        }
    };
    let read = asking.into_iter().zip(known).map(|((at, job, needs), known)| {
        let asked_keyring = job.asked_keyring || needs.contains(&Need::Keyring);
        (at, known.map(|known| Job { known, reread: false, asked_keyring, ..job }))
    });
    read.collect()
}

/// What came of trying to commit a job.
enum Outcome {
    Done(Result<Done, EngineError>),
    Again(Box<Job>),
}

async fn commit_all(
    shared: &Arc<Shared>,
    commits: Vec<(usize, Job, (Step, Bundle))>,
) -> Vec<(usize, Outcome)> {
    if commits.is_empty() {
        return Vec::new();
    }
    let mut outcomes: Vec<Option<Result<Committed, EngineError>>> =
        commits.iter().map(|_| None).collect();
    for freeing in [true, false] {
        let groups = commits.iter().enumerate();
        let groups = groups.filter(|(_, (_, job, _))| job.is_freeing() == freeing);
        let groups = groups.map(|(n, (_, _, (_, bundle)))| (n, Arc::clone(&bundle.group)));
        let calls = commit::calls(shared.client.is_cluster(), groups.collect());
        let sending = calls.into_iter().map(|call| async move {
            let (places, groups): (Vec<_>, Vec<_>) = call.into_iter().unzip();
            (places, commit::send(shared, groups, freeing).await)
        });
        for (places, result) in join_all(sending).await {
            for (k, n) in places.into_iter().enumerate() {
                outcomes[n] = Some(match &result {
                    Ok(committed) => Ok(committed[k].clone()),
                    Err(error) => Err(error.clone()),
                });
            }
        }
    }
    let settled = commits.into_iter().zip(outcomes);
    settled.map(|((at, job, step), outcome)| (at, job.settle(shared, step, outcome))).collect()
}

impl Job {
    pub(crate) fn new(shared: &Shared, command: Command) -> Self {
        let document = command.document_id(&shared.settings.partitions);
        let home = match (command.execution_id(), &document) {
            (Some(id), _) => Home::partition(id.partition()),
            (None, Some(id)) => id.home.clone(),
            (None, None) => Home::partition(0),
        };
        let mut known = Known::default();
        if let Some(id) = command.execution_id() {
            if let Command::Submit(_) = command {
                known.entries.insert(id, None);
                known.dedups.extend(dedup_key(&command).map(|key| (key, None)));
            } else if let Some(entry) = shared.entries.get(id) {
                known.entries.insert(id, Some(entry));
            }
        }
        if let (Command::SubmitFlow(submit), Some(id)) = (&command, &document) {
            known.documents.insert(id.clone(), None);
            let ids = submit.members.iter().map(|member| member.submit.execution_id);
            let here = ids.filter(|id| Home::partition(id.partition()) == home);
            known.entries.extend(here.map(|id| (id, None)));
        }
        let (due, next, reread, asked_keyring) = (None, None, false, false);
        Self { command, home, known, due, document, next, reread, asked_keyring, tries: 0 }
    }

    /// The part of a tick that carries out what is due of one execution or document, if the record
    /// says so.
    pub(crate) fn due(subject: &Subject) -> Self {
        let mut known = Known::default();
        let mut document = None;
        match subject {
            Subject::Execution(id) => {
                known.entries.insert(*id, None);
            }
            Subject::Document(id) => document = Some(id.clone()),
        }
        Self {
            command: Command::Tick(Tick { home: None, most: 1 }),
            home: subject.home(),
            known,
            due: Some(subject.clone()),
            document,
            next: None,
            reread: true,
            asked_keyring: false,
            tries: 0,
        }
    }

    /// How many records it writes, as far as can be told before it is decided.
    fn items(&self) -> usize {
        match &self.command {
            Command::SubmitFlow(submit) => 1 + submit.members.len(),
            _ => 1,
        }
    }

    fn turn(&self, shared: &Shared) -> Turn {
        self.decide(shared).unwrap_or_else(|error| Turn::Answer(Err(error)))
    }

    fn decide(&self, shared: &Shared) -> Result<Turn, EngineError> {
        let known = &self.known;
        if let Some(id) = &self.document {
            return Ok(Turn::Join(id.clone()));
        }
        if self.reread {
            return Ok(Turn::Read(Vec::new()));
        }
        let Some(now) = known.read_at.or_else(|| shared.clock.estimate(&self.home)) else {
            return Ok(Turn::Read(Vec::new()));
        };
        let mut overlay = Overlay::new(Arc::clone(&shared.settings));
        known.supply(&mut overlay)?;
        if let Some(keyring) = shared.keyring.fresh().filter(|_| self.has_kid(shared)) {
            overlay.supply_keyring(keyring);
        }
        let mut used = Vec::new();
        let step = match self.step(shared, &mut overlay, now, &mut used) {
            Ok(step) => step,
            Err(needs) => {
                let document = needs.iter().find_map(|need| match need {
                    Need::Document(id) if id.home == self.home => Some(id.clone()),
                    _ => None,
                });
                return Ok(document.map_or(Turn::Read(needs), Turn::Join));
            }
        };
        if let Some(changed) = step.changes.documents.first() {
            return Ok(Turn::Join(changed.id.clone()));
        }
        if step.changes.executions.is_empty() {
            return Ok(match known.read_at {
                Some(_) if used.is_empty() => Turn::Answer(step.reply.map_err(EngineError::from)),
                _ => Turn::Read(used),
            });
        }
        let times = Times { now, until: self.until(known, now) };
        let net = Net::of(&step.changes);
        let bundle = bundle(shared, &self.home, &net, known, times, Vec::new())?;
        Ok(Turn::Commit(Box::new((step, bundle))))
    }

    /// Lets the machine decide. Facts of other homes that were seen a moment ago are noted in `used`.
    pub(crate) fn step(
        &self,
        shared: &Shared,
        overlay: &mut Overlay,
        now: TimestampMs,
        used: &mut Vec<Need>,
    ) -> Result<Step, Vec<Need>> {
        if let (Some(due), Command::Tick(tick)) = (&self.due, &self.command) {
            overlay.supply_due(tick.home.clone(), vec![due.clone()], true);
        }
        loop {
            let needs = match machine::apply(overlay, &self.command, now) {
                Ok(step) => return Ok(step),
                Err(needs) => needs.0,
            };
            // What is kept back rests on what its limits are now, and not a moment ago.
            let keeps_back = matches!(self.command, Command::BlockForAdmission(_));
            if keeps_back || !near::recall(shared, &self.home, &needs, overlay, used) {
                return Err(needs);
            }
        }
    }

    /// Whether the keyring of this process is good enough for the command: another may have rotated.
    pub(crate) fn has_kid(&self, shared: &Shared) -> bool {
        match &self.command {
            Command::DeliverSignal(DeliverSignal { token: Some(token), .. }) => {
                self.asked_keyring || shared.keyring.knows(token.kid())
            }
            _ => true,
        }
    }

    /// Its caller, the one with this number, if that one claims afterwards.
    pub(crate) fn follower<'a>(&'a self, caller: usize, known: &'a Known) -> Option<Follower<'a>> {
        let next = self.next.as_ref()?;
        let execution = &known.entry(self.command.execution_id()?)?.execution;
        let namespace = &execution.about.namespace;
        Some(Follower { caller, namespace, next, wanted: next.max })
    }

    /// The end of the lease or grant that a command rests on: the store looks at its clock too.
    pub(crate) fn until(&self, known: &Known, now: TimestampMs) -> Option<TimestampMs> {
        let phase = &known.entry(self.command.execution_id()?)?.execution.phase;
        if self.is_by_holder() {
            let lease = phase.lease()?;
            (!lease.is_over(now)).then_some(lease.expires_at)
        } else if self.uses_grant() {
            let grant = phase.grant()?;
            (!grant.is_over(now)).then_some(grant.expires_at)
        } else {
            None
        }
    }

    fn is_by_holder(&self) -> bool {
        match &self.command {
            Command::Renew(_)
            | Command::UpdateProgress(_)
            | Command::AppendFrames(_)
            | Command::Complete(_)
            | Command::Fail(_)
            | Command::CreatePendingWaitpoint(_)
            | Command::Suspend(_)
            | Command::WaitChildren(_)
            | Command::Delay(_) => true,
            Command::Cancel(cancel) => cancel.fence.is_some(),
            _ => false,
        }
    }

    fn uses_grant(&self) -> bool {
        matches!(
            self.command,
            Command::ClaimExecution(_)
                | Command::ClaimResumedExecution(_)
                | Command::ReclaimExecution(_)
                | Command::ClaimAdmitted(_)
                | Command::GrantAdmitted(_)
        )
    }

    /// Whether it ends work, removes it or hands it out, and must therefore go on when memory is short: a
    /// full server empties only by work that ends. What a claim of work that is there adds is bounded: a
    /// lease or grant in its record, a slot and a place in line with each quota policy.
    pub(crate) fn is_freeing(&self) -> bool {
        !matches!(
            self.command,
            Command::Submit(_)
                | Command::Replay(_)
                | Command::SetTags(_)
                | Command::AppendFrames(_)
                | Command::CreatePendingWaitpoint(_)
                | Command::DeliverSignal(_)
                | Command::SubmitFlow(_)
                | Command::CreateFlow(_)
                | Command::AddToFlow(_)
                | Command::StageEdge(_)
                | Command::ApplyEdge(_)
                | Command::SetFlowTags(_)
                | Command::ReplayFlow(_)
                | Command::CreateBudget(_)
                | Command::UpdateBudget(_)
                | Command::ReportUsage(_)
                | Command::ReportUsageAdmin(_)
                | Command::RecordSpend(_)
                | Command::CreateQuotaPolicy(_)
                | Command::UpdateQuotaPolicy(_)
        )
    }

    fn settle(
        self,
        shared: &Arc<Shared>,
        (step, bundle): (Step, Bundle),
        outcome: Option<Result<Committed, EngineError>>,
    ) -> Outcome {
        match outcome {
            Some(Ok(Committed::Done(numbers))) => {
                let mut steps = [step];
                number(&mut steps, &bundle, &numbers);
                let [step] = steps;
                let before = self.command.execution_id().and_then(|id| self.known.entry(id));
                let before = before.map(|entry| Arc::clone(&entry.execution));
                shared.committed(bundle, &numbers);
                shared.tally.add([&step.changes]);
                shared.errands.note(step.changes.prompt_errands());
                let reply = step.reply.map_err(EngineError::from);
                Outcome::Done(reply.map(|reply| Done { reply, before, left: None }))
            }
            Some(Ok(Committed::Changed)) => {
                shared.forget(&bundle);
                self.again(true)
            }
            Some(Ok(Committed::TimeOff)) => self.again(false),
            Some(Err(error)) => {
                shared.forget(&bundle);
                Outcome::Done(Err(error))
            }
            None => Outcome::Done(Err(EngineError::bug("a group was not answered"))),
        }
    }

    fn too_late(&self) -> EngineError {
        let name = self.command.name();
        EngineError::unavailable(format!("{name}: the store answers too slowly; try again"))
    }

    pub(crate) fn tried_enough(&self) -> EngineError {
        let detail = format!("{}: others keep changing it; try again", self.command.name());
        EngineError::unavailable(detail)
    }

    /// To be decided again; `reread`: what it rests on is no longer so. Else it came too late, which soon
    /// gets no better.
    fn again(mut self, reread: bool) -> Outcome {
        self.tries += if reread { 1 } else { TRIES_MOST / LATE_MOST };
        if self.tries > TRIES_MOST {
            let error = if reread { self.tried_enough() } else { self.too_late() };
            return Outcome::Done(Err(error));
        }
        self.known.read_at = None;
        self.reread = reread;
        Outcome::Again(Box::new(self))
    }
}

/// Gives the events of steps the numbers that the store gave them: each item has those of one
/// execution or document, in the order of the steps.
pub(crate) fn number(steps: &mut [Step], bundle: &Bundle, numbers: &[u64]) {
    let mut next: HashMap<&Subject, u64> = HashMap::with_capacity(numbers.len());
    for (item, last) in bundle.items.iter().zip(numbers) {
        next.insert(&item.subject, (last + 1).saturating_sub(item.events as u64));
    }
    for step in steps {
        let executions = step.changes.executions.iter();
        let executions =
            executions.map(|changed| (Subject::from(changed.id), changed.events.len()));
        let documents = step.changes.documents.iter();
        let documents = documents.map(|changed| ((&changed.id).into(), changed.events.len()));
        let mut given = Vec::new();
        for (subject, events) in executions.chain(documents) {
            let Some(next) = next.get_mut(&subject) else { continue };
            given.extend(*next..*next + events as u64);
            *next += events as u64;
        }
        let mut given = given.into_iter();
        step.number(|_| given.next().unwrap_or_default());
    }
}

fn dedup_key(command: &Command) -> Option<DedupKey> {
    let Command::Submit(submit) = command else { return None };
    let key = submit.idempotency_key.clone()?;
    Some(DedupKey {
        partition: submit.execution_id.partition(),
        scope: match &submit.within {
            Some(within) => DedupScope::Flow(within.flow_id),
            None => DedupScope::Namespace(submit.namespace.clone()),
        },
        key,
    })
}
