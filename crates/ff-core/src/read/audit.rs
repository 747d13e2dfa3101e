//! What a check of the invariants found.

use std::collections::HashMap;

use serde::Serialize;
use uuid::Uuid;

use super::stream::is_gone;
use crate::event::{Event, EventKind};
use crate::id::Subject;
use crate::state::{
    Attempt, AttemptState, Budget, Document, Execution, Flow, FrameId, FrameMode, GrantKind,
    GroupState, Listing, MemberCounts, Next, Phase, PublicState, QuotaPolicy, WaitpointState,
};
use crate::time::TimestampMs;

/// Outcome of an audit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Audited {
    /// Records that were looked at.
    pub checked: u64,
    /// The first violations, at most 1000.
    pub violations: Vec<Violation>,
}

/// Something that must never be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Which invariant, as `I9`.
    pub invariant: &'static str,
    /// Execution or document.
    pub subject: Option<String>,
    pub detail: String,
}

/// The log of a store, followed from its oldest kept event on, subject by subject.
#[derive(Debug, Default)]
pub struct LogCheck(HashMap<Subject, Newest>);

/// The newest event of a subject so far.
#[derive(Debug, Clone, Copy)]
struct Newest {
    seq: u64,
    number: u64,
    epoch: u64,
}

impl LogCheck {
    /// Takes the next event of a partition's log.
    pub fn note(&mut self, audited: &mut Audited, event: &Event) {
        let id = &event.subject;
        // An id that was removed may be given again: that is another history.
        let begins = event.seq == 1;
        let before = self.0.remove(id).filter(|_| !begins);
        let epoch = event.lease_epoch.unwrap_or(0);
        if before.is_some_and(|before| event.seq != before.seq + 1) {
            audited.report("I31", Some(id), format!("its events have a hole before {}", event.seq));
        }
        let claimed = event.kind == EventKind::Claimed;
        if before.is_some_and(|before| claimed && epoch <= before.epoch) {
            audited.report("I3", Some(id), format!("lease epoch {epoch} was given before"));
        }
        if event.kind != EventKind::Deleted {
            self.0.insert(id.clone(), Newest { seq: event.seq, number: event.number, epoch });
        }
    }

    /// Compares a record with the newest event that the log has of it, if it has one.
    pub fn check(&self, audited: &mut Audited, execution: &Execution) {
        let known = (execution.event_seq, execution.last_event);
        self.compare(audited, &execution.id.into(), known);
    }

    /// As [`LogCheck::check`], for a document.
    pub fn check_document(&self, audited: &mut Audited, document: &Document) {
        // One that was removed and made again may have no event of its own yet.
        if document.event_seq == 0 {
            return;
        }
        let known = (document.event_seq, document.last_event);
        self.compare(audited, &(&document.id).into(), known);
    }

    fn compare(&self, audited: &mut Audited, id: &Subject, known: (u64, u64)) {
        let Some(newest) = self.0.get(id) else { return };
        if known != (newest.seq, newest.number) {
            let found = (newest.seq, newest.number);
            let detail = format!("the log ends with event {found:?}, the record with {known:?}");
            audited.report("I31", Some(id), detail);
        }
    }
}

/// What a repair did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Repaired {
    pub found: Audited,
    /// As it is now: what a repair cannot decide is still there.
    pub left: Audited,
}

impl Repaired {
    /// How many violations are gone. On a store that is at work more may be wrong afterwards than
    /// before.
    pub fn mended(&self) -> u64 {
        let (found, left) = (self.found.violations.len(), self.left.violations.len());
        found.saturating_sub(left) as u64
    }
}

/// List, namespace, instant and name of an entry as a store has it.
pub type ListEntry = (u8, String, i64, Uuid);

impl Audited {
    const VIOLATIONS_MAX: usize = 1000;

    pub fn report(
        &mut self,
        invariant: &'static str,
        of: Option<impl ToString>,
        detail: impl Into<String>,
    ) {
        if self.violations.len() < Self::VIOLATIONS_MAX {
            let subject = of.map(|of| of.to_string());
            self.violations.push(Violation { invariant, subject, detail: detail.into() });
        }
    }

    /// A member waits for its edges only while its group has not decided.
    fn check_member(&mut self, execution: &Execution) {
        let Phase::Runnable(runnable) = &execution.phase else { return };
        let state = execution.member.as_ref().map(|member| member.group.state);
        if runnable.causes.edges && state != Some(GroupState::Pending) {
            let detail = format!("it waits for its edges, and its group is {state:?}");
            self.report("I24", Some(execution.id), detail);
        }
    }

    /// Counters within the policy, a lease only with an attempt, a grant only where it is good for
    /// something, and edges that are waited for only while they are undecided.
    pub fn check_counts(&mut self, execution: &Execution) {
        let policy = execution.policy();
        let counts = execution.counts;
        let within = counts.retries <= policy.retry.max_retries
            && counts.reclaims <= policy.timeout.max_reclaim_count
            && counts.replays <= policy.max_replay_count;
        if !within {
            self.report("I13", Some(execution.id), format!("{counts:?} beyond the policy"));
        }
        if execution.phase.lease().is_some() && execution.live_fence().is_none() {
            self.report("I2", Some(execution.id), "a lease without an attempt");
        }
        if let Phase::Runnable(runnable) = &execution.phase
            && let Some(grant) = &runnable.grant
        {
            let is_lost = matches!(runnable.next, Next::Reclaim(_));
            if !runnable.causes.is_empty() || (grant.kind == GrantKind::Reclaim && !is_lost) {
                let detail = format!("{:?} has {grant:?}", runnable.next);
                self.report("I10", Some(execution.id), detail);
            }
        }
        self.check_member(execution);
    }

    /// Due times and entries in lists that the store has of a document, and the counts that it
    /// keeps of the document's executions against those that a scan found.
    pub fn check_document(
        &mut self,
        document: &Document,
        (due, listings): (&[i64], &[ListEntry]),
        (kept, scanned): (&MemberCounts, &MemberCounts),
    ) {
        let expected: Vec<_> = document.due().map(|due| due.at.0).into_iter().collect();
        if due != expected {
            self.report("I9", Some(&document.id), format!("timers {due:?}, due is {expected:?}"));
        }
        self.compare_lists(&document.id, document.listings(), listings.to_vec());
        if kept != scanned {
            let detail = format!("counts say {kept:?}, a scan {scanned:?}");
            self.report("I11", Some(&document.id), detail);
        }
        if let Some(flow) = document.flow() {
            self.check_flow(flow, scanned);
        }
        if let Some(budget) = document.budget() {
            self.check_budget(budget);
        }
        if let Some(policy) = document.quota_policy() {
            self.check_quota_policy(policy);
        }
    }

    /// What of the pages beside it the record itself tells. Usage is compared with ledgers by
    /// [`crate::operation::RecountBudget`].
    fn check_budget(&mut self, budget: &Budget) {
        let (ledgers, keys) = (&budget.ledgers, &budget.keys);
        let is_sound = ledgers.first <= ledgers.current
            && ledgers.current <= ledgers.next
            && keys.first <= keys.next
            && keys.until.is_some() == (keys.first < keys.next);
        if !is_sound {
            self.report("I10", Some(budget.id), format!("pages {ledgers:?}, {keys:?}"));
        }
    }

    /// What of the slots the record itself tells. How many there may be is not told by the cap: it
    /// may have been lowered.
    fn check_quota_policy(&mut self, policy: &QuotaPolicy) {
        let pending = &policy.pending;
        if policy.overdue.len() > policy.slots as usize
            || pending.until.is_some() != (pending.first < pending.next)
        {
            let detail =
                format!("{} slots, {} overdue, {pending:?}", policy.slots, policy.overdue.len());
            self.report("I19", Some(policy.id), detail);
        }
    }

    /// Its state is what its members say.
    fn check_flow(&mut self, flow: &Flow, members: &MemberCounts) {
        let ended: u32 = PublicState::ENDED.iter().map(|state| members.of(*state)).sum();
        let total: u32 = PublicState::ALL.iter().map(|state| members.of(*state)).sum();
        let rests = flow.work.is_empty();
        if rests && total - ended != flow.live {
            let detail = format!("{} members live, it says {}", total - ended, flow.live);
            self.report("I11", Some(flow.id), detail);
        }
        // One whose id went to another flow before it was made is lacking.
        if rests && total > flow.node_count() {
            let detail = format!("{total} members, it says {}", flow.node_count());
            self.report("I11", Some(flow.id), detail);
        }
        // Members of an ended flow may have been removed.
        let over = flow.members > 0 && flow.live == 0;
        if rests && over != flow.end.is_some() && !flow.is_cancelled() {
            let detail = format!("{} of {total} members live, end is {:?}", flow.live, flow.end);
            self.report("I23", Some(flow.id), detail);
        }
    }

    /// The frames of an attempt, of which the store has `found` of each mode: how many, and the
    /// newest.
    pub fn check_stream(
        &mut self,
        execution: &Execution,
        attempt: &Attempt,
        found: &[(FrameMode, u64, FrameId)],
        now: TimestampMs,
    ) {
        let stream = attempt.stream.as_deref().cloned().unwrap_or_default();
        let gone = is_gone(attempt, &execution.policy().stream, now);
        let mut ever = 0;
        for mode in FrameMode::ALL {
            let shelf = stream.shelf(mode);
            let stored = found.iter().find(|(of, ..)| *of == mode);
            let (stored, newest) = stored.map_or((0, None), |(_, n, id)| (*n, Some(*id)));
            let faded = mode == FrameMode::BestEffort && stream.best_effort_until <= now;
            let kept = u64::from(shelf.kept);
            let sound = if gone || faded { stored <= kept } else { stored == kept };
            if !sound || newest.is_some_and(|newest| newest > stream.last) {
                let detail = format!(
                    "attempt {} has {stored} frames of {} up to {newest:?}, its record says {kept} up to {}",
                    attempt.index,
                    mode.as_str(),
                    stream.last
                );
                self.report("I30", Some(execution.id), detail);
            }
            ever += kept + shelf.dropped;
        }
        if ever != stream.count {
            let detail = format!(
                "attempt {}: {ever} frames by mode, {} in all",
                attempt.index, stream.count
            );
            self.report("I30", Some(execution.id), detail);
        }
    }

    /// Lists: `found` are its entries.
    pub fn check_listings(&mut self, execution: &Execution, found: Vec<ListEntry>) {
        self.compare_lists(execution.id, execution.listings(), found);
    }

    /// Stores keep lists apart, and name them in any order.
    fn compare_lists<'a>(
        &mut self,
        subject: impl ToString,
        listings: impl Iterator<Item = Listing<'a>>,
        mut found: Vec<ListEntry>,
    ) {
        let entry = |it: Listing<'_>| (it.list.code(), it.namespace.to_string(), it.at.0, it.name);
        let mut expected: Vec<ListEntry> = listings.map(entry).collect();
        found.sort_unstable();
        expected.sort_unstable();
        if found != expected {
            let detail = format!("in lists {found:?}, its record says {expected:?}");
            self.report("I9", Some(subject), detail);
        }
    }

    /// A suspension has its attempt, and something that may end it; a waitpoint is open with a
    /// suspension only, and never both open and closed.
    pub fn check_waits(&mut self, execution: &Execution) {
        let waits = &execution.waits;
        let is_open = waits.open.iter().any(|w| w.state == WaitpointState::Open);
        let problem = match &execution.phase {
            Phase::Suspended(suspension) => {
                let attempt = execution.attempt.as_ref().map(|attempt| attempt.state);
                let timed = suspension.timeout.is_some() || suspension.escalated;
                if attempt != Some(AttemptState::Suspended) {
                    Some("suspended without a suspended attempt")
                } else if suspension.condition.is_met(&suspension.tally) {
                    Some("its condition is met and it is suspended")
                } else if suspension.condition.needs_timeout() && !timed {
                    Some("only time ends it, and it has no timeout")
                } else {
                    None
                }
            }
            _ => is_open.then_some("a waitpoint is open without a suspension"),
        };
        let again = waits.closed.iter().any(|closed| waits.open.iter().any(|w| w.id == closed.id));
        for problem in problem.into_iter().chain(again.then_some("a closed waitpoint is open")) {
            self.report("I28", Some(execution.id), problem);
        }
    }

    /// Attempts without holes: `earlier` ones are kept beside the record, the highest index among
    /// them being `highest`.
    pub fn check_attempts(&mut self, execution: &Execution, earlier: u32, highest: Option<u32>) {
        let total = execution.counts.attempts;
        let current = execution.attempt.as_ref().map(|attempt| attempt.index);
        let sound = earlier == total.saturating_sub(1)
            && highest == earlier.checked_sub(1)
            && current == total.checked_sub(1);
        if !sound {
            let detail =
                format!("{total} attempts, {earlier} kept up to {highest:?}, now {current:?}");
            self.report("I12", Some(execution.id), detail);
        }
    }
}
