//! What was not admitted is let go once there is room for it.
//!
//! Limits let go by sets: who stands behind which limit is a list, so a limit with room is walked, and
//! one that is used up costs one look, however many it keeps back. Whoever is let go for nothing is
//! kept back again by the next claim.

use crate::backend::{Backend, BackendExt};
use crate::each::{Each, each};
use crate::error::EngineError;
use crate::id::{ExecutionId, Namespace};
use crate::limits;
use crate::operation::{Command, Reply, Unblock};
use crate::read::{Limited, ListLimited, Page, Question};
use crate::state::{AdmissionReason, LimitId};

/// Lets go whom a limit keeps back, longest first, until there are `most`. Whom `passes` names stays.
pub async fn let_go<B: Backend + ?Sized>(
    backend: &B,
    namespace: &Namespace,
    by: LimitId,
    most: u32,
    passes: impl Fn(ExecutionId) -> bool + Send,
) -> Result<Each, EngineError> {
    let (mut all, mut cursor) = (Each::default(), None);
    while all.done < most {
        let limit = limits::PAGE_MAX.min(most - all.done);
        let (namespace, by_it) = (namespace.clone(), Some(by));
        let question = ListLimited { namespace, by: by_it, behind: None, cursor, limit };
        let page = backend.ask(question).await?;
        let ids = page.items.iter().map(|it| it.execution_id).filter(|id| !passes(*id));
        all.add(unblock(backend, ids, by.reason()).await?);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok(all)
}

/// Who has been kept back longest by the next limit behind this one.
pub async fn next_limited<B: Backend + ?Sized>(
    backend: &B,
    namespace: &Namespace,
    behind: Option<LimitId>,
) -> Result<Option<Limited>, EngineError> {
    let question = |cursor| {
        let namespace = namespace.clone();
        ListLimited { namespace, by: None, behind, cursor, limit: 1 }
    };
    Ok(first_items(backend, question).await?.pop())
}

/// The first items that there are: a page may be empty and not the last.
pub(crate) async fn first_items<B: Backend + ?Sized, Q: Question<Answer = Page<T>>, T>(
    backend: &B,
    question: impl Fn(Option<String>) -> Q + Send,
) -> Result<Vec<T>, EngineError> {
    let mut cursor = None;
    loop {
        let page = backend.ask(question(cursor)).await?;
        if !page.items.is_empty() || page.next_cursor.is_none() {
            return Ok(page.items);
        }
        cursor = page.next_cursor;
    }
}

/// Lets these go, of whom some may have been already.
pub(crate) async fn unblock<B: Backend + ?Sized>(
    backend: &B,
    ids: impl Iterator<Item = ExecutionId>,
    reason: AdmissionReason,
) -> Result<Each, EngineError> {
    let expected = reason.blocking_reason();
    let commands = ids.map(|execution_id| Command::from(Unblock { execution_id, expected }));
    each(backend, commands.collect(), |reply| matches!(reply, Reply::Unblock(_))).await
}
