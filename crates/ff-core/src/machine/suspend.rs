//! The rules of suspend and resume.

use std::sync::Arc;

use super::Facts;
use super::claim::handle_of;
use super::draft::{Draft, Halt, existing};
use super::fence::{Passage, not_active, pass};
use super::flow;
use super::rows::{Family, RowChange, RowKey, find};
use super::step::Step;
use super::waits::{Found, GoingOn, reissue, waitpoint_not_found};
use crate::error::{Code, Refusal};
use crate::event::{EventData, EventKind};
use crate::id::{Authority, ExecutionId, Handle, HandleKind, WaitpointId};
use crate::limits;
use crate::operation::{
    Binding, IssuedWaitpoint, Resume, ResumedNow, Suspend, SuspendTimeout, Suspended, WaitpointRef,
};
use crate::state::{
    AttemptState, CancelSource, Cancellation, CloseReason, Execution, Heard, LeaseEnd,
    LeaseEndReply, Matched, MetadataNote, Phase, Signal, SuspendMemory, SuspendNote, Suspension,
    SuspensionTimeout, Tally, Waitpoint, WaitpointState, Weight,
};
use crate::time::TimestampMs;
use crate::token::Keyring;

pub(super) fn suspend(
    facts: &impl Facts,
    op: &Suspend,
    now: TimestampMs,
) -> Result<Step<Suspended>, Halt> {
    let execution = existing(facts, op.execution_id)?;
    if let Some(note) = remembered(&execution, op, now) {
        return repeat(facts, op.execution_id, note.number, now);
    }
    let authority = Authority::Fence(op.fence);
    let mut draft = match pass(facts, op.execution_id, authority, LeaseEnd::Suspend, now)? {
        Passage::Repeated(LeaseEndReply::Suspended { number }) => {
            return repeat(facts, op.execution_id, number, now);
        }
        Passage::Repeated(other) => return Err(other.misremembered().into()),
        Passage::Open(draft) => draft,
    };
    let keyring = facts.keyring()?;
    let timeout = timeout_of(&draft.execution, op, now)?;
    let waitpoints = draft.bind(facts, op, &keyring)?;
    let suspension = draft.listen(facts, op, timeout)?;
    if !suspension.condition.is_met(&suspension.tally)
        && let Some(reason) = flow::stops(facts, &execution)?
    {
        return Err(end_instead(facts, execution, reason, now));
    }
    let handle = handle_of(&draft.execution, facts.settings().store);
    let handle = handle.ok_or_else(|| not_active(&draft.execution))?;
    let reply = draft.stop(op, suspension, waitpoints, handle);
    Ok(Step::done(reply, draft.finish().into()))
}

/// A cancelled flow ends whoever gives its lease back. Nothing waits then: waitpoints and tokens that
/// could never be used are not handed out.
fn end_instead(
    facts: &impl Facts,
    execution: Arc<Execution>,
    reason: String,
    now: TimestampMs,
) -> Halt {
    let (from, source) = (execution.public_state(), CancelSource::FlowCascade);
    let mut draft = Draft::of(execution, now);
    draft.cancel(Cancellation { reason, source, from, by_group: false }, facts.settings());
    let refusal = not_active(&draft.execution);
    draft.refuse(refusal)
}

pub(super) fn resume(
    facts: &impl Facts,
    op: &Resume,
    now: TimestampMs,
) -> Result<Step<ResumedNow>, Halt> {
    let execution = existing(facts, op.execution_id)?;
    if execution.phase.suspension().is_none() {
        let detail = format!("the execution is {}", execution.public_state().as_str());
        return Err(Refusal::new(Code::ExecutionNotSuspended, detail).into());
    }
    let mut draft = Draft::of(execution, now);
    // What an operator does is not what the signals did.
    if let Phase::Suspended(suspension) = &mut draft.execution.phase {
        suspension.matched = Matched::default();
    }
    let trigger = if op.trigger.is_empty() { "operator" } else { &op.trigger };
    let public_state = draft.go_on(&GoingOn {
        delay_ms: op.delay_ms,
        closes_all: true,
        ..GoingOn::because(trigger)
    });
    Ok(Step::done(ResumedNow { public_state }, draft.finish().into()))
}

/// The suspend that this one repeats, by its key or its id.
fn remembered<'a>(
    execution: &'a Execution,
    op: &Suspend,
    now: TimestampMs,
) -> Option<&'a SuspendNote> {
    let is_it = |note: &&SuspendNote| {
        note.suspension_id == op.suspension_id
            || (op.idempotency_key.is_some()
                && note.key == op.idempotency_key
                && now < note.expires_at)
    };
    execution.waits.remembered.iter().rev().find(is_it)
}

/// The first reply again, its tokens signed anew.
fn repeat(
    facts: &impl Facts,
    id: ExecutionId,
    number: u32,
    now: TimestampMs,
) -> Result<Step<Suspended>, Halt> {
    let memory: Option<SuspendMemory> = find(facts, id, &memory_row(number))?;
    // Later suspends take the place of earlier ones.
    let Some(memory) = memory.filter(|memory| memory.number == number) else {
        let detail = "it was suspended with this lease, too long ago to say more";
        return Err(Refusal::new(Code::StaleLease, detail).into());
    };
    let keyring = facts.keyring()?;
    let again =
        |(waitpoint, key, stamp): &(_, _, _)| reissue(&keyring, id, (*waitpoint, key, stamp), now);
    let waitpoints = memory.waitpoints.iter().map(again).collect::<Result<_, Refusal>>()?;
    Ok(Step::unchanged(Suspended {
        already_satisfied: memory.already_satisfied,
        suspension_id: memory.suspension_id,
        waitpoints,
        handle: memory.handle,
        replayed: true,
    }))
}

#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
fn memory_row(number: u32) -> RowKey {
    RowKey::numbered(Family::Suspend, number % limits::SUSPENDS_REMEMBERED as u32)
}

fn timeout_of(
    execution: &Execution,
    op: &Suspend,
    now: TimestampMs,
) -> Result<Option<SuspensionTimeout>, Refusal> {
    let policy = execution.policy().suspension;
    let given = op.timeout.map(|timeout| match timeout {
        SuspendTimeout::At(at) => at,
        SuspendTimeout::For(ms) => now.after(ms),
    });
    let at = given.or(policy.default_timeout_ms.map(|ms| now.after(ms)));
    if at.is_some_and(|at| now.since(at) > limits::SUSPEND_TIMEOUT_PAST_MS) {
        let detail = "timeout_in_past: it lies more than 600 s in the past";
        return Err(Refusal::invalid("timeout_at", detail));
    }
    if at.is_none() && op.condition.needs_timeout() {
        let detail = "timeout_only_without_deadline: only time ends it, so say when";
        return Err(Refusal::invalid("timeout_at", detail));
    }
    let behavior = op.timeout_behavior.unwrap_or(policy.timeout_behavior);
    Ok(at.map(|at| SuspensionTimeout { at, behavior }))
}

impl Draft {
    /// Makes the fresh waitpoints, finds the pending ones, and opens them all.
    fn bind(
        &mut self,
        facts: &impl Facts,
        op: &Suspend,
        keyring: &Arc<Keyring>,
    ) -> Result<Vec<IssuedWaitpoint>, Halt> {
        let mut issued = Vec::with_capacity(op.bindings.len());
        for binding in &op.bindings {
            issued.push(match binding {
                Binding::Fresh { waitpoint_id, key, token_ttl_ms } => {
                    self.open_waitpoint(keyring, (*waitpoint_id, key), *token_ttl_ms, None)?
                }
                Binding::UsePending { waitpoint_id } => {
                    let pending = self.pending(facts, *waitpoint_id)?;
                    let stamped = (pending.id, &pending.key, &pending.token);
                    reissue(keyring, op.execution_id, stamped, self.now)?
                }
            });
        }
        let keys: Vec<_> = issued.iter().map(|issued| &issued.key).collect();
        op.check_keys(&keys)?;
        for waitpoint in &mut self.execution.waits.open {
            if op.bindings.iter().any(|binding| binding.waitpoint_id() == waitpoint.id) {
                waitpoint.state = WaitpointState::Open;
                // It is used from here on: should it become pending again, nothing closes it.
                waitpoint.expires_at = None;
            }
        }
        Ok(issued)
    }

    fn pending(&self, facts: &impl Facts, id: WaitpointId) -> Result<Waitpoint, Halt> {
        let expired = || Refusal::at(Code::PendingWaitpointExpired, "bindings", "its time is over");
        match self.find_waitpoint(facts, &WaitpointRef::Id(id))? {
            None => Err(waitpoint_not_found().into()),
            Some(Found::Open(waitpoint)) => Ok(waitpoint),
            Some(Found::Closed(closed)) => {
                if closed.reason == CloseReason::NeverCommitted.as_str() {
                    return Err(expired().into());
                }
                let detail = format!("it is closed: {}", closed.reason);
                Err(Refusal::at(Code::WaitpointNotPending, "bindings", detail).into())
            }
        }
    }

    /// The suspension with all that its waitpoints have kept counted in.
    fn listen(
        &self,
        facts: &impl Facts,
        op: &Suspend,
        timeout: Option<SuspensionTimeout>,
    ) -> Result<Suspension, Halt> {
        let mut suspension = Suspension {
            id: op.suspension_id,
            condition: op.condition.clone(),
            tally: Tally::default(),
            matched: Matched::default(),
            heard: Vec::new(),
            resume: op.resume_policy,
            reason: op.reason.clone(),
            requester: op.requester.clone(),
            timeout,
            escalated: false,
            since: self.now,
        };
        for signal in self.buffered(facts)? {
            let heard = Heard {
                id: signal.id,
                waitpoint: &signal.waitpoint_key,
                name: &signal.name,
                source_type: &signal.source_type,
                source_identity: &signal.source_identity,
            };
            suspension.note_heard(&signal.name);
            let weight = suspension.condition.weigh(&mut suspension.tally, &heard);
            if weight == Weight::Counted {
                suspension.matched.add(signal.number, signal.bytes as usize);
            }
        }
        Ok(suspension)
    }

    /// Signals that were kept for the waitpoints that are open now, in order.
    fn buffered(&self, facts: &impl Facts) -> Result<Vec<Signal>, Halt> {
        let waits = &self.execution.waits;
        let is_kept = |w: &&Waitpoint| w.state == WaitpointState::Open && w.has_buffered;
        let kept: Vec<_> = waits.open.iter().filter(is_kept).collect();
        let Some(from) = kept.iter().map(|waitpoint| waitpoint.evaluate_from).min() else {
            return Ok(Vec::new());
        };
        let id = self.execution.id;
        let key = |number| RowKey::numbered(Family::Signal, number);
        let keys: Vec<_> = (from..waits.signals).map(key).collect();
        facts.want_rows(&id.into(), &keys)?;
        let mut signals = Vec::new();
        for key in keys {
            let signal: Option<Signal> = find(facts, id, &key)?;
            signals.extend(signal.filter(|s| kept.iter().any(|waitpoint| waitpoint.is_live(s))));
        }
        Ok(signals)
    }

    /// Stops, or goes on at once when the condition is met already.
    fn stop(
        &mut self,
        op: &Suspend,
        suspension: Suspension,
        waitpoints: Vec<IssuedWaitpoint>,
        lease: Handle,
    ) -> Suspended {
        let already_satisfied = suspension.condition.is_met(&suspension.tally);
        let kind = if already_satisfied { lease.kind } else { HandleKind::Suspended };
        let handle = Handle { kind, ..lease };
        self.leave_metadata(op);
        self.remember_suspend(op, &suspension, already_satisfied, &handle);
        if already_satisfied {
            self.settle_waitpoints(&suspension);
            self.note_resumed(suspension.matched, None);
        } else {
            self.end_lease();
            if let Some(attempt) = &mut self.execution.attempt {
                attempt.state = AttemptState::Suspended;
            }
            let data = EventData::from([
                ("suspension_id".to_owned(), suspension.id.to_string().as_str().into()),
                ("reason".to_owned(), suspension.reason.0.as_str().into()),
            ]);
            self.execution.waits.resumed = None;
            self.execution.phase = Phase::Suspended(Box::new(suspension));
            self.event_with(EventKind::Suspended, data);
        }
        let (suspension_id, replayed) = (op.suspension_id, false);
        Suspended { already_satisfied, suspension_id, waitpoints, handle, replayed }
    }

    fn leave_metadata(&mut self, op: &Suspend) {
        let key = RowKey::named(Family::Metadata, "");
        let attempt = self.execution.attempt.as_ref();
        let left = attempt.zip(op.metadata.as_ref()).map(|(attempt, metadata)| MetadataNote {
            attempt_index: attempt.index,
            bytes: metadata.len() as u64,
        });
        let had = std::mem::replace(&mut self.execution.waits.metadata, left);
        if op.metadata.is_some() || had.is_some() {
            self.row(RowChange { key, bytes: op.metadata.clone() });
        }
    }

    fn remember_suspend(
        &mut self,
        op: &Suspend,
        suspension: &Suspension,
        already_satisfied: bool,
        handle: &Handle,
    ) {
        let waits = &self.execution.waits;
        let bound = |binding: &Binding| {
            let waitpoint = waits.open.iter().find(|w| w.id == binding.waitpoint_id())?;
            Some((waitpoint.id, waitpoint.key.clone(), waitpoint.token.clone()))
        };
        let number = waits.suspends;
        let memory = SuspendMemory {
            number,
            suspension_id: op.suspension_id,
            already_satisfied,
            waitpoints: op.bindings.iter().filter_map(bound).collect(),
            handle: handle.clone(),
        };
        let left = suspension.timeout.map_or(u64::MAX, |timeout| timeout.at.since(self.now));
        let window = left.saturating_add(limits::SUSPEND_DEDUP_EXTRA_MS);
        let expires_at = self.now.after(window.min(limits::SUSPEND_DEDUP_MAX_MS));
        let note = SuspendNote {
            number,
            suspension_id: op.suspension_id,
            key: op.idempotency_key.clone(),
            expires_at,
        };
        let waits = &mut self.execution.waits;
        waits.suspends += 1;
        waits.remembered.push(note);
        if waits.remembered.len() > limits::SUSPENDS_REMEMBERED {
            waits.remembered.remove(0);
        }
        self.row(RowChange::put(memory_row(number), &memory));
        if !already_satisfied {
            self.remember(Some(op.fence), LeaseEndReply::Suspended { number });
        }
    }
}
