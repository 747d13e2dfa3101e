//! The oracle as a backend.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ff_core::backend::{Backend, Identity, Pending, Upkeep};
use ff_core::content::Content;
use ff_core::cursor;
use ff_core::errand::Errands;
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::event::{Envelope, EventKind};
use ff_core::id::{DocumentId, ExecutionId, Subject};
use ff_core::machine::{Needs, Settings, Step, apply, claim, consult};
use ff_core::operation::{Claim, Claimed, Command, Reconcile, Reconciled, Reply, Trim, Trimmed};
use ff_core::read::{
    Answer, Attempts, Audited, Context, Dues, Events, FlowSnapshot, Follow, Followed, From, Kids,
    Leaf, ListAttempts, Listed, Page, Query, ReadResult, Record, Repaired, Search, SearchPosition,
    StreamRange, Topic, Walk,
};
use ff_core::state::{Execution, ListingPosition, Registration};
use ff_core::tally::Tally;
use ff_core::time::TimestampMs;
use ff_core::turns::{Turn, Turns};
use tokio::sync::watch;

use super::{State, fleet, frames, routes};

const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

/// The pure machine as a backend, with a clock that stands until it is moved.
pub struct Oracle {
    settings: Settings,
    inner: Mutex<(State, TimestampMs)>,
    /// Raised with every step, for those who wait.
    steps: watch::Sender<u64>,
    errands: Errands,
    tally: Tally,
    turns: Turns,
}

impl Oracle {
    pub fn new(settings: Settings, now: TimestampMs) -> Self {
        let state = State::new(settings.clone(), crate::stages::secret());
        Self {
            settings,
            inner: Mutex::new((state, now)),
            steps: watch::Sender::new(0),
            errands: Errands::default(),
            tally: Tally::default(),
            turns: Turns::default(),
        }
    }

    pub fn advance(&self, ms: i64) {
        self.lock().1.0 += ms;
        self.steps.send_modify(|steps| *steps += 1);
    }

    /// A look at everything.
    pub fn look<T>(&self, look: impl FnOnce(&State, TimestampMs) -> T) -> T {
        let inner = self.lock();
        look(&inner.0, inner.1)
    }

    pub fn now(&self) -> TimestampMs {
        self.lock().1
    }

    pub fn apply_now(&self, command: &Command) -> Result<Reply, Refusal> {
        self.step(|state, now| {
            let mut step = apply(state, command, now)?;
            step.number(|_| next(state));
            Ok(step)
        })
    }

    pub fn claim_now(&self, op: &Claim) -> Result<Claimed, Refusal> {
        self.step(|state, now| {
            let mut step = claim(state, op, now)?;
            step.changes.number(|_| next(state));
            Ok(step)
        })
    }

    /// A worker that drains waits for nothing.
    fn drains(&self, claim: &Claim) -> bool {
        let id = DocumentId::worker(&claim.namespace, &claim.worker_instance_id);
        let inner = self.lock();
        let worker = inner.0.documents.get(&id).and_then(|document| document.worker());
        worker.and_then(|worker| worker.registration.as_ref()).is_some_and(Registration::drains)
    }

    fn lock(&self) -> MutexGuard<'_, (State, TimestampMs)> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step<R>(
        &self,
        run: impl FnOnce(&mut State, TimestampMs) -> Result<Step<R>, Needs>,
    ) -> Result<R, Refusal> {
        let mut inner = self.lock();
        let now = inner.1;
        let step = run(&mut inner.0, now)
            .map_err(|needs| Refusal::new(Code::Internal, format!("the oracle lacks {needs:?}")))?;
        inner.0.perform(&step.changes);
        drop(inner);
        self.tally.add([&step.changes]);
        self.errands.note(step.changes.prompt_errands());
        // A claim that found nothing must not wake itself.
        if !step.changes.is_empty() {
            self.steps.send_modify(|steps| *steps += 1);
        }
        step.reply
    }

    /// Tries again with every step until `look` finds something or the time is over.
    async fn wait_for<T>(&self, wait: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + wait.min(LONGEST_WAIT);
        let mut steps = self.steps.subscribe();
        loop {
            steps.borrow_and_update();
            if let Some(found) = look() {
                return Some(found);
            }
            let changed = tokio::time::timeout_at(deadline.into(), steps.changed()).await;
            if !matches!(changed, Ok(Ok(()))) {
                return look();
            }
        }
    }
}

fn next(state: &mut State) -> u64 {
    state.last_event += 1;
    state.last_event
}

impl Backend for Oracle {
    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>> {
        Box::pin(
            async move { commands.iter().map(|command| Ok(self.apply_now(command)?)).collect() },
        )
    }

    fn take(&self, claim: Claim, wait: Duration) -> Pending<'_, Result<Claimed, EngineError>> {
        Box::pin(async move {
            claim.check_wait(wait)?;
            let found = self
                .wait_for(wait, || match self.claim_now(&claim) {
                    Ok(claimed) if claimed.is_empty() && !self.drains(&claim) => None,
                    answer => Some(answer),
                })
                .await;
            Ok(found.transpose()?.unwrap_or_default())
        })
    }

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>> {
        Box::pin(async move {
            query.check(&self.settings.partitions)?;
            let inner = self.lock();
            answer(&inner.0, &query, inner.1)
        })
    }

    fn follow(&self, topic: Topic, wait: Duration) -> Pending<'_, Result<Followed, EngineError>> {
        Box::pin(async move {
            match topic {
                Topic::Events(follow) => self.follow_events(&follow, wait).await,
                Topic::Timers { known } => {
                    let sooner = self.wait_for(wait, || {
                        let due = self.lock().0.next_due();
                        due.filter(|at| known.is_none_or(|known| *at < known))
                    });
                    Ok(Followed::Timers { sooner: sooner.await })
                }
                Topic::Frames(tail) => {
                    tail.check(wait, &self.settings.partitions)?;
                    self.follow_frames(&tail.range(), wait).await
                }
            }
        })
    }
}

impl Oracle {
    async fn follow_frames(
        &self,
        range: &StreamRange,
        wait: Duration,
    ) -> Result<Followed, EngineError> {
        let look = || self.look(|state, now| frames::page(state, range, now));
        let found = self.wait_for(wait, || match look() {
            Ok(page) if page.frames.is_empty() && page.closed.is_none() => None,
            other => Some(other),
        });
        Ok(Followed::Frames(found.await.unwrap_or_else(look)?))
    }

    async fn follow_events(
        &self,
        follow: &Follow,
        wait: Duration,
    ) -> Result<Followed, EngineError> {
        let scope = follow.filter.scope();
        let after: u64 = match &follow.from {
            From::Now => self.lock().0.last_event,
            From::Start => 0,
            From::Cursor(text) => cursor::decode(&scope, text)?,
        };
        let oldest = self.lock().0.events.keys().next().copied();
        let gap = oldest.is_some_and(|oldest| oldest > after + 1) && follow.from != From::Start;
        follow.check()?;
        let limit = follow.limit as usize;
        let mut seen = after;
        let found = self
            .wait_for(wait, || {
                let inner = self.lock();
                let envelopes =
                    inner.0.events.range(after + 1..).map(|(_, event)| {
                        Envelope::new(event.clone(), inner.0.about(&event.subject))
                    });
                let items: Vec<_> =
                    envelopes.filter(|e| follow.filter.matches(e)).take(limit).collect();
                // Taken under the same lock: what comes later must not be skipped.
                seen = items.last().map_or(inner.0.last_event, |last| last.event.number);
                (!items.is_empty()).then_some(items)
            })
            .await;
        let items = found.unwrap_or_default();
        let numbers = items.iter().map(|item| item.event.number).filter(|_| follow.each);
        let cursors = numbers.map(|number| cursor::encode(&scope, &number)).collect();
        Ok(Followed::Events { items, cursors, cursor: cursor::encode(&scope, &seen), gap })
    }
}

impl Upkeep for Oracle {
    fn backend_label(&self) -> &'static str {
        self.settings.store
    }

    fn identity(&self) -> Identity {
        Identity {
            backend: self.settings.store,
            version: "oracle".to_owned(),
            durability: "none".to_owned(),
        }
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn errands(&self) -> &Errands {
        &self.errands
    }

    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn ping(&self) -> Pending<'_, Result<(), EngineError>> {
        Box::pin(async { Ok(()) })
    }

    fn server_time_ms(&self) -> Pending<'_, Result<TimestampMs, EngineError>> {
        Box::pin(async { Ok(self.now()) })
    }

    fn trim(&self, trim: Trim) -> Pending<'_, Result<Trimmed, EngineError>> {
        Box::pin(async move {
            let mut inner = self.lock();
            let now = inner.1;
            let state = &mut inner.0;
            if let Some(swept) = state.keyring.swept(now) {
                state.keyring = swept.into();
            }
            let records = state.dedups.len();
            state.dedups.retain(|_, record| record.expires_at > now);
            let events = state.events.len();
            // SQL stores keep the newest for its number; Valkey counts apart from its log.
            let newest = (self.settings.store != "valkey").then_some(state.last_event);
            state.events.retain(|number, event| {
                Some(*number) == newest || event.time >= trim.events_before
            });
            Ok(Trimmed {
                dedup_records: (records - state.dedups.len()) as u32,
                events: (events - state.events.len()) as u32,
                frames: 0,
                more: false,
            })
        })
    }

    fn repair(&self) -> Pending<'_, Result<Repaired, EngineError>> {
        Box::pin(async { Ok(Repaired::default()) })
    }

    /// What lists a record here is derived whenever it is asked for.
    fn reconcile(&self, page: Reconcile) -> Pending<'_, Result<Reconciled, EngineError>> {
        Box::pin(async move {
            page.check()?;
            Ok(Reconciled::default())
        })
    }

    fn take_turn(&self, turn: Turn) -> Pending<'_, Result<bool, EngineError>> {
        Box::pin(async move { Ok(self.turns.take(&turn, self.now())) })
    }

    fn shutdown_prepare(&self, _grace: Duration) -> Pending<'_, Result<(), EngineError>> {
        Box::pin(async { Ok(()) })
    }
}

pub(super) fn existing(state: &State, id: ExecutionId) -> Result<&Execution, EngineError> {
    let found = state.executions.get(&id).map(AsRef::as_ref);
    found.ok_or_else(|| Refusal::new(Code::ExecutionNotFound, format!("no execution {id}")).into())
}

fn answer(state: &State, query: &Query, now: TimestampMs) -> Result<Answer, EngineError> {
    let find = |id: &ExecutionId| state.executions.get(id);
    Ok(match query {
        Query::ReadResult(q) => Answer::ReadResult(result(state, q)?),
        Query::ReadContext(q) => {
            Answer::ReadContext(find(&q.execution_id).map(|e| context(state, e)))
        }
        Query::ListAttempts(q) => Answer::ListAttempts(attempts(state, q)?),
        Query::ListEvents(q) => {
            let found = existing(state, q.execution_id)?;
            let about = (Subject::from(found.id), found.event_seq, EventKind::Submitted);
            Answer::ListEvents(events(state, &about, (q.after_seq, q.limit)))
        }
        Query::Search(q) => Answer::Search(search(state, q, now)?),
        Query::ListPendingWaitpoints(q) => Answer::ListPendingWaitpoints(walk(state, q, now)?),
        Query::ListSuspended(q) => Answer::ListSuspended(walk(state, q, now)?),
        Query::DescribeFlow(q) => {
            let id = DocumentId::flow(q.flow_id, &state.settings.partitions);
            let counts = state.member_counts(&id);
            let found = state.documents.get(&id);
            let flow = found.and_then(|found| FlowSnapshot::of(found, &counts));
            Answer::DescribeFlow(flow.map(Box::new))
        }
        Query::ListFlowEvents(q) => {
            let id = DocumentId::flow(q.flow_id, &state.settings.partitions);
            let found = state.documents.get(&id).ok_or_else(|| q.not_found())?;
            let about = (Subject::from(id), found.event_seq, EventKind::FlowCreated);
            Answer::ListFlowEvents(events(state, &about, (q.after_seq, q.limit)))
        }
        Query::ListFlows(q) => Answer::ListFlows(walk_documents(state, q, now)?),
        Query::ListBudgets(q) => Answer::ListBudgets(walk_documents(state, q, now)?),
        Query::ListQuotaPolicies(q) => Answer::ListQuotaPolicies(walk_documents(state, q, now)?),
        Query::ListBlocked(q) => Answer::ListBlocked(walk(state, q, now)?),
        Query::ListLimited(q) => Answer::ListLimited(walk(state, q, now)?),
        Query::ListKeys(q) => Answer::ListKeys(walk_documents(state, q, now)?),
        Query::ListBulks(q) => Answer::ListBulks(walk_documents(state, q, now)?),
        Query::ListUnrouted(q) => Answer::ListUnrouted(walk(state, q, now)?),
        Query::ListOffers(q) => Answer::ListOffers(walk_documents(state, q, now)?),
        Query::ListRoutes(_)
        | Query::ListQueued(_)
        | Query::ListFleets(_)
        | Query::ListNamespaces(_) => routes::answer(state, query)?,
        Query::ListCancelBacklog(q) => Answer::ListCancelBacklog(walk_documents(state, q, now)?),
        Query::DescribeWorker(_)
        | Query::ListWorkers(_)
        | Query::LeasesOf(_)
        | Query::ListExpiredLeases(_)
        | Query::DescribeLane(_)
        | Query::ListLanes(_) => fleet::answer(state, query, now)?,
        Query::ListKids(_) => Answer::ListKids(Kids::from(&*state.keyring)),
        Query::ReadStream(q) => Answer::ReadStream(frames::page(state, &q.range(), now)?),
        Query::ReadSummary(q) => Answer::ReadSummary(frames::summary(state, q, now)?),
        Query::Due(_) => {
            let items = state.next_due().map(|at| (None, at)).into_iter().collect();
            Answer::Due(Dues { items, now })
        }
        Query::Audit(_) => Answer::Audit(Audited {
            checked: state.executions.len() as u64,
            violations: Vec::new(),
        }),
        other => {
            let nobody = || EngineError::bug(format!("nobody answers {}", other.name()));
            at_hand(consult(state, other, now))?.ok_or_else(nobody)?
        }
    })
}

fn result(state: &State, query: &ReadResult) -> Result<Content, EngineError> {
    let (id, asked) = (query.execution_id, query.attempt_of(existing(state, query.execution_id)?));
    let of_this = state.results.range((id, 0)..=(id, u32::MAX));
    let mut wanted =
        of_this.filter(|((_, attempt), _)| asked.is_none_or(|index| index == *attempt));
    let newest = wanted.next_back().map(|(_, result)| result.clone());
    newest.ok_or_else(|| Refusal::new(Code::ResultNotFound, "no result").into())
}

fn context(state: &State, execution: &Execution) -> Context {
    Context {
        payload: state.payloads.get(&execution.id).cloned().unwrap_or_default(),
        content_type: execution.about.content_type.clone(),
        kind: execution.about.kind.clone(),
        tags: execution.tags.clone(),
    }
}

/// The oracle lacks nothing.
fn at_hand<T>(answer: Result<Result<T, Refusal>, Needs>) -> Result<T, EngineError> {
    let lacking = |needs| EngineError::bug(format!("the oracle lacks {needs:?}"));
    Ok(answer.map_err(lacking)??)
}

fn attempts(state: &State, query: &ListAttempts) -> Result<Attempts, EngineError> {
    let execution = existing(state, query.execution_id)?;
    let id = query.execution_id;
    let archived = state.attempts.range((id, 0)..=(id, u32::MAX)).map(|(_, attempt)| attempt);
    let all = archived.chain(&execution.attempt);
    let mut items: Vec<_> = all
        .filter(|attempt| query.after.is_none_or(|after| attempt.index > after))
        .cloned()
        .collect();
    let limit = query.limit as usize;
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|attempt| attempt.index);
    Ok(Attempts { items, next })
}

/// Events of a subject with so many of them, of which the first is of this kind.
fn events(
    state: &State,
    (subject, event_seq, first): &(Subject, u64, EventKind),
    (after_seq, limit): (u64, u32),
) -> Events {
    let of_this = || state.events.values().filter(|event| event.subject == *subject);
    // An id that was removed and given again begins a new history.
    let born = of_this().rfind(|event| event.kind == *first);
    let born = born.map_or(0, |event| event.number);
    let kept: Vec<_> = of_this().filter(|e| e.number >= born && e.seq > after_seq).collect();
    let gap = kept.first().map_or(*event_seq > after_seq, |first| first.seq > after_seq + 1);
    let limit = limit as usize;
    let next = if kept.len() > limit { Some(kept[limit - 1].seq) } else { None };
    let items = kept
        .into_iter()
        .take(limit)
        .map(|event| Envelope::new(event.clone(), state.about(subject)))
        .collect();
    Events { items, next, gap }
}

fn search(state: &State, query: &Search, now: TimestampMs) -> Result<Page<Record>, EngineError> {
    let begin = query.position()?;
    let mut found: Vec<_> = state
        .executions
        .values()
        .map(|execution| {
            let created_at = execution.about.created_at;
            (SearchPosition { created_at, execution_id: execution.id }, execution)
        })
        .filter(|(position, execution)| {
            begin.is_none_or(|begin| *position < begin) && query.filter.matches(execution)
        })
        .collect();
    found.sort_unstable_by_key(|(position, _)| std::cmp::Reverse(*position));
    let limit = query.limit as usize;
    let next_cursor = (found.len() > limit).then(|| query.cursor_after(found[limit - 1].0));
    let items = found.iter().take(limit).map(|(_, e)| fleet::record(state, e, now)).collect();
    Ok(Page { items, next_cursor })
}

fn walk<W: Walk>(state: &State, query: &W, now: TimestampMs) -> Result<Page<W::Item>, EngineError> {
    let behind = query.behind()?;
    let mut entries = Vec::new();
    for execution in state.executions.values() {
        let listed = execution
            .listings()
            .filter(|entry| entry.list == W::LIST && *entry.namespace == *query.namespace());
        entries.extend(listed.map(|entry| {
            let (at, name) = (entry.at, entry.name);
            (ListingPosition { at, name, subject: execution.id.into() }, execution)
        }));
    }
    entries.retain(|(position, _)| behind.as_ref().is_none_or(|behind| position > behind));
    entries.sort_unstable_by_key(|(position, _)| position.clone());
    let mut leaf = Leaf::new(query.limit());
    for (position, execution) in entries {
        let see = || query.see(&position, Listed::Execution(execution), now);
        if leaf.look(position.clone(), see).is_break() {
            break;
        }
    }
    Ok(leaf.finish(|last| query.cursor_after(last)))
}

pub(super) fn walk_documents<W: Walk>(
    state: &State,
    query: &W,
    now: TimestampMs,
) -> Result<Page<W::Item>, EngineError> {
    let behind = query.behind()?;
    let mut entries = Vec::new();
    for document in state.documents.values() {
        let listed = document
            .listings()
            .filter(|entry| entry.list == W::LIST && *entry.namespace == *query.namespace());
        entries.extend(listed.map(|entry| {
            let (at, name) = (entry.at, entry.name);
            (ListingPosition { at, name, subject: (&document.id).into() }, document)
        }));
    }
    entries.retain(|(position, _)| behind.as_ref().is_none_or(|behind| position > behind));
    entries.sort_unstable_by_key(|(position, _)| position.clone());
    let mut leaf = Leaf::new(query.limit());
    for (position, document) in entries {
        let counts = state.member_counts(&document.id);
        let see = || query.see(&position, Listed::Document(document, &counts), now);
        if leaf.look(position.clone(), see).is_break() {
            break;
        }
    }
    Ok(leaf.finish(|last| query.cursor_after(last)))
}
