//! The rules of waitpoints: made before a suspend, closed, and their tokens.

use super::Facts;
use super::draft::{Draft, Halt, existing};
use super::fence::live;
use super::step::Step;
use super::waits::{
    Found, issue as sign, reissue, token_expiry, waitpoint_closed, waitpoint_not_found,
};
use crate::error::{Code, Refusal};
use crate::event::{EventData, EventKind};
use crate::operation::{
    CloseWaitpoint, CreatePendingWaitpoint, IssueToken, IssuedWaitpoint, Settled,
};
use crate::time::TimestampMs;

pub(super) fn create(
    facts: &impl Facts,
    op: &CreatePendingWaitpoint,
    now: TimestampMs,
) -> Result<Step<IssuedWaitpoint>, Halt> {
    let mut draft = live(facts, op.execution_id, &op.fence, now)?;
    let keyring = facts.keyring()?;
    let same = |waitpoint: &&crate::state::Waitpoint| {
        waitpoint.id == op.waitpoint_id && waitpoint.key == op.key
    };
    if let Some(first) = draft.execution.waits.open.iter().find(same) {
        let stamped = (first.id, &first.key, &first.token);
        let issued = reissue(&keyring, op.execution_id, stamped, now)?;
        return Ok(Step::unchanged(IssuedWaitpoint { replayed: true, ..issued }));
    }
    let place = (op.waitpoint_id, &op.key);
    let issued = draft.open_waitpoint(&keyring, place, op.token_ttl_ms, op.expires_at)?;
    Ok(Step::done(issued, draft.finish().into()))
}

pub(super) fn close(
    facts: &impl Facts,
    op: &CloseWaitpoint,
    now: TimestampMs,
) -> Result<Step<Settled>, Halt> {
    let mut draft = Draft::of(existing(facts, op.execution_id)?, now);
    let waitpoint = match draft.find_waitpoint(facts, &op.waitpoint)? {
        None => return Err(waitpoint_not_found().into()),
        Some(Found::Closed(_)) => return Ok(Step::unchanged(Settled::AlreadySatisfied)),
        Some(Found::Open(waitpoint)) => waitpoint,
    };
    draft.close_waitpoints(|other| other.id == waitpoint.id, &op.reason);
    Ok(Step::done(Settled::Done, draft.finish().into()))
}

pub(super) fn issue(
    facts: &impl Facts,
    op: &IssueToken,
    now: TimestampMs,
) -> Result<Step<IssuedWaitpoint>, Halt> {
    let mut draft = Draft::of(existing(facts, op.execution_id)?, now);
    let waitpoint = match draft.find_waitpoint(facts, &op.waitpoint)? {
        None => return Err(waitpoint_not_found().into()),
        Some(Found::Closed(closed)) => return Err(waitpoint_closed(&closed).into()),
        Some(Found::Open(waitpoint)) => waitpoint,
    };
    let keyring = facts.keyring()?;
    let (id, key, stamp) = (waitpoint.id, &waitpoint.key, &waitpoint.token);
    let issued = match op.remint {
        None if stamp.expires_at.is_some_and(|at| at <= now) => {
            let detail = "the token has expired; make a new one";
            return Err(Refusal::at(Code::TokenExpired, "token", detail).into());
        }
        None => reissue(&keyring, op.execution_id, (id, key, stamp), now)?,
        Some(remint) => {
            let expires_at = token_expiry(remint.token_ttl_ms, now);
            let (stamp, token) =
                sign(&keyring, op.execution_id, id, stamp.issue.saturating_add(1), expires_at);
            let open = draft.execution.waits.open.iter_mut();
            for waitpoint in open.filter(|other| other.id == id) {
                waitpoint.token = stamp.clone();
            }
            IssuedWaitpoint { waitpoint_id: id, key: key.clone(), token, replayed: false }
        }
    };
    let data = EventData::from([
        ("waitpoint_id".to_owned(), id.to_string().as_str().into()),
        ("reminted".to_owned(), u32::from(op.remint.is_some()).into()),
    ]);
    draft.event_with(EventKind::TokenIssued, data);
    Ok(Step::done(issued, draft.finish().into()))
}
