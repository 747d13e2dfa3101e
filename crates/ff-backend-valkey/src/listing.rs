//! Lists over all executions or documents of a namespace: a sorted set in each home, merged, in
//! the order of their entries.

use std::sync::Arc;

use ff_core::error::EngineError;
use ff_core::id::{Home, Namespace, Subject};
use ff_core::read::{self, Page, Seen};
use ff_core::state::{List, Listing, ListingPosition};
use ff_core::time::TimestampMs;
use redis::Cmd;
use uuid::Uuid;

use crate::record::int;
use crate::store::Shared;
use crate::subject;
use crate::walk::{self, Course};

/// With which the names of all lists of a home begin.
pub(crate) const LISTS: &str = "list:";

/// Before every instant, as the store says it.
const BEGINNING: &str = "-inf";

/// The end of a list's key.
pub(crate) fn list_name(list: List, namespace: &Namespace) -> String {
    name_of(list.code(), namespace)
}

pub(crate) fn name_of(code: u8, namespace: &str) -> String {
    format!("{LISTS}{code}:{namespace}")
}

/// Code and namespace of a list by the end of its key.
pub(crate) fn parse_name(name: &str) -> Option<(u8, &str)> {
    let (code, namespace) = name.strip_prefix(LISTS)?.split_once(':')?;
    Some((code.parse().ok()?, namespace))
}

/// The member of an entry: its name, then what it lists. They sort as the list does.
pub(crate) fn member(listed: &Subject, name: Uuid) -> Vec<u8> {
    let mut member = name.as_bytes().to_vec();
    member.extend(subject::short(listed));
    member
}

/// Name of a member, and what it lists.
pub(crate) fn parse_member(home: &Home, member: &[u8]) -> Option<(Uuid, Subject)> {
    let (name, listed) = member.split_at_checked(16)?;
    Some((Uuid::from_slice(name).ok()?, subject::parse(home, listed)?))
}

/// Whether two entries have one member.
pub(crate) fn is_same_member(a: &Listing<'_>, b: &Listing<'_>) -> bool {
    Listing { at: b.at, ..*a } == *b
}

pub(crate) async fn walk<W: read::Walk>(
    shared: &Arc<Shared>,
    query: &W,
) -> Result<Page<W::Item>, EngineError> {
    walk::page(shared, &Listed(query), query.behind()?).await
}

/// All that a walk leads to, page after page. `question` is given the cursor of each.
pub(crate) async fn walk_all<W: read::Walk>(
    shared: &Arc<Shared>,
    question: impl Fn(Option<String>) -> W,
) -> Result<Vec<W::Item>, EngineError> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let page = walk(shared, &question(cursor)).await?;
        all.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(all);
        }
    }
}

struct Listed<'a, W>(&'a W);

impl<W: read::Walk> Course for Listed<'_, W> {
    type Position = ListingPosition;

    type Item = W::Item;

    const FUNCTION: &'static str = "ff_listed";

    fn homes(&self, shared: &Shared) -> Vec<Home> {
        W::LIST.family().homes(&shared.settings.partitions, self.0.namespace())
    }

    fn arguments(&self, call: &mut Cmd, behind: Option<ListingPosition>, most: usize) {
        call.arg(list_name(W::LIST, self.0.namespace()));
        match behind {
            // The member itself may stand in a later home.
            Some(at) => call.arg(at.at.0).arg(member(&at.subject, at.name)),
            None => call.arg(BEGINNING).arg(""),
        };
        call.arg(most);
    }

    fn position(home: &Home, entry: &[u8]) -> Option<ListingPosition> {
        let (at, member) = entry.split_first_chunk()?;
        let (name, subject) = parse_member(home, member)?;
        Some(ListingPosition { at: TimestampMs(int(*at)), name, subject })
    }

    fn sure(last: ListingPosition) -> ListingPosition {
        last
    }

    fn subject(at: &ListingPosition) -> Subject {
        at.subject.clone()
    }

    fn limit(&self) -> u32 {
        self.0.limit()
    }

    fn see(
        &self,
        at: &ListingPosition,
        found: read::Listed<'_>,
        now: TimestampMs,
    ) -> Seen<W::Item> {
        self.0.see(at, found, now)
    }

    fn cursor_after(&self, at: ListingPosition) -> String {
        self.0.cursor_after(at)
    }
}
