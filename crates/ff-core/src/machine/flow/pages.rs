//! What stands in rows beside a flow and beside its members, in pages, so that a step touches few of
//! them however large the flow is.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::draft::Halt;
use super::super::rows::{Family, RowChange, RowKey, find};
use super::super::{Facts, Needs};
use crate::error::{Code, Refusal};
use crate::id::{EdgeId, ExecutionId, FlowId, MemberName, Subject};
use crate::state::{EdgeKind, Execution, GroupState, Outcome};

/// A list that is kept in pages of a fixed number of items.
pub(super) struct Pages {
    family: Family,
    per_page: u32,
}

/// Members of a flow by number.
pub(super) const MEMBERS: Pages = Pages { family: Family::Member, per_page: 64 };
/// Edges of a flow by number.
pub(super) const TOPOLOGY: Pages = Pages { family: Family::Topology, per_page: 512 };
/// Members of a flow that have failed, in the order in which they did.
pub(super) const FAILURES: Pages = Pages { family: Family::Failure, per_page: 64 };
/// Edges that lead from a member.
pub(super) const OUT: Pages = Pages { family: Family::Out, per_page: 64 };
/// Edges that lead to a member.
pub(super) const IN: Pages = Pages { family: Family::In, per_page: 64 };
/// Members that a member waits for.
pub(super) const CHILDREN: Pages = Pages { family: Family::Children, per_page: 64 };

/// A member in its flow's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MemberRef {
    pub(super) uuid: Uuid,
    pub(super) name: Option<MemberName>,
    /// It was removed by itself; how its group stood then. Its id and name are forgotten.
    pub(super) gone: Option<GroupState>,
}

/// The member at one end of an edge. The number tells it from another execution that got its id when
/// it had been removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) uuid: Uuid,
    pub(super) number: u32,
}

/// An edge in its flow's list: numbers of members, and its place among those from its upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Link {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) slot: u32,
}

/// An edge beside its upstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OutEdge {
    pub(super) id: EdgeId,
    pub(super) to: End,
    /// Its place among the edges that lead to its downstream.
    pub(super) slot: u32,
    pub(super) kind: EdgeKind,
    pub(super) name: Option<String>,
    pub(super) data_passing_ref: Option<String>,
    /// It counts in its downstream's group.
    pub(super) applied: bool,
    /// The outcome of its upstream that stays, whatever becomes of that one.
    pub(super) fixed: Option<Outcome>,
}

/// The same edge beside its downstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InEdge {
    pub(super) from: End,
    /// Its place among the edges that lead from its upstream.
    pub(super) slot: u32,
    pub(super) kind: EdgeKind,
    pub(super) name: Option<String>,
    /// The upstream's result becomes the payload.
    pub(super) passes: bool,
    pub(super) applied: bool,
    pub(super) fixed: Option<Outcome>,
}

impl MemberRef {
    pub(super) fn new(id: ExecutionId, name: Option<MemberName>) -> Self {
        Self { uuid: id.uuid(), name, gone: None }
    }

    pub(super) fn gone(group: GroupState) -> Self {
        Self { uuid: Uuid::nil(), name: None, gone: Some(group) }
    }
}

impl End {
    /// Its id, given that of the other end.
    pub(super) fn id(self, beside: ExecutionId) -> ExecutionId {
        ExecutionId::new(beside.partition(), self.uuid)
    }

    /// Whether an execution with its id is this member.
    pub(super) fn is(self, flow: FlowId, found: &Execution) -> bool {
        let member = found.member.as_ref();
        member.is_some_and(|member| member.flow_id == flow && member.number == self.number)
    }
}

impl Pages {
    fn key(&self, page: u32) -> RowKey {
        RowKey::numbered(self.family, page)
    }

    /// The page of an item, and its place there.
    pub(super) fn place(&self, index: u32) -> (u32, usize) {
        (index / self.per_page, (index % self.per_page) as usize)
    }

    pub(super) fn per_page(&self) -> u32 {
        self.per_page
    }

    /// How many pages hold so many items.
    pub(super) fn count(&self, items: u32) -> u32 {
        items.div_ceil(self.per_page)
    }

    /// Asks for pages that hold the items `from..to`.
    pub(super) fn want(
        &self,
        facts: &impl Facts,
        of: &Subject,
        (from, to): (u32, u32),
    ) -> Result<(), Needs> {
        if from >= to {
            return Ok(());
        }
        self.want_pages(facts, of, from / self.per_page..self.count(to))
    }

    /// Asks for these pages.
    pub(super) fn want_pages(
        &self,
        facts: &impl Facts,
        of: &Subject,
        pages: impl Iterator<Item = u32>,
    ) -> Result<(), Needs> {
        let keys: Vec<_> = pages.map(|page| self.key(page)).collect();
        facts.want_rows(of, &keys)
    }

    /// The items `from..to` as they are stored.
    pub(super) fn stored_items<T: DeserializeOwned>(
        &self,
        facts: &impl Facts,
        of: &Subject,
        (from, to): (u32, u32),
    ) -> Result<Vec<T>, Halt> {
        self.want(facts, of, (from, to))?;
        self.collect((from, to), |page| self.stored(facts, of, page))
    }

    fn collect<T>(
        &self,
        (from, to): (u32, u32),
        read: impl Fn(u32) -> Result<Vec<T>, Halt>,
    ) -> Result<Vec<T>, Halt> {
        let mut items = Vec::with_capacity(to.saturating_sub(from) as usize);
        for page in from / self.per_page..self.count(to) {
            let begin = page * self.per_page;
            let wanted = (begin..).zip(read(page)?).filter(|(n, _)| (from..to).contains(n));
            items.extend(wanted.map(|(_, item)| item));
        }
        Ok(items)
    }

    /// One page as it is stored.
    pub(super) fn stored<T: DeserializeOwned>(
        &self,
        facts: &impl Facts,
        of: &Subject,
        page: u32,
    ) -> Result<Vec<T>, Halt> {
        Ok(find(facts, of.clone(), &self.key(page))?.unwrap_or_default())
    }
}

/// Whatever rows stand beside: a draft of an execution or of a document.
pub(super) trait Beside {
    fn find_row<T: DeserializeOwned>(
        &self,
        facts: &impl Facts,
        key: &RowKey,
    ) -> Result<Option<T>, Halt>;

    fn put_row(&mut self, change: RowChange);

    /// One page as this step leaves it.
    fn page<T: DeserializeOwned>(
        &self,
        facts: &impl Facts,
        pages: &Pages,
        page: u32,
    ) -> Result<Vec<T>, Halt> {
        Ok(self.find_row(facts, &pages.key(page))?.unwrap_or_default())
    }

    fn put_page<T: Serialize>(&mut self, pages: &Pages, page: u32, items: &[T]) {
        self.put_row(RowChange::put(pages.key(page), &items));
    }

    /// One item of a list.
    fn item<T: DeserializeOwned + Clone>(
        &self,
        facts: &impl Facts,
        pages: &Pages,
        index: u32,
    ) -> Result<T, Halt> {
        let (page, at) = pages.place(index);
        self.page(facts, pages, page)?.get(at).cloned().ok_or_else(|| lost(pages.family, index))
    }

    /// The items `from..to` of a list; their pages are asked for at once.
    fn items<T: DeserializeOwned>(
        &self,
        facts: &impl Facts,
        of: &Subject,
        pages: &Pages,
        (from, to): (u32, u32),
    ) -> Result<Vec<T>, Halt> {
        pages.want(facts, of, (from, to))?;
        pages.collect((from, to), |page| self.page(facts, pages, page))
    }

    /// Changes one item of a list.
    fn change_item<T: Serialize + DeserializeOwned>(
        &mut self,
        facts: &impl Facts,
        pages: &Pages,
        index: u32,
        change: impl FnOnce(&mut T),
    ) -> Result<(), Halt> {
        let (page, at) = pages.place(index);
        let mut items: Vec<T> = self.page(facts, pages, page)?;
        change(items.get_mut(at).ok_or_else(|| lost(pages.family, index))?);
        self.put_page(pages, page, &items);
        Ok(())
    }

    /// Appends to a list that has `length` items.
    fn append<T: Serialize + DeserializeOwned>(
        &mut self,
        facts: &impl Facts,
        pages: &Pages,
        length: u32,
        item: T,
    ) -> Result<(), Halt> {
        let (page, at) = pages.place(length);
        let mut items: Vec<T> = if at == 0 { Vec::new() } else { self.page(facts, pages, page)? };
        if items.len() != at {
            return Err(lost(pages.family, length));
        }
        items.push(item);
        self.put_page(pages, page, &items);
        Ok(())
    }
}

fn lost(family: Family, index: u32) -> Halt {
    Refusal::new(Code::Corruption, format!("{family:?} has no item {index}")).into()
}
