//! Lists in rows beside a document: appended at the end, taken away page by page at the beginning.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Facts;
use super::document::DocumentDraft;
use super::draft::Halt;
use super::rows::{Family, RowChange, RowKey};
use crate::state::Part;

/// What is appended to a page before the next one is begun: a page is written whole.
pub(super) const PAGE_ITEMS: usize = 64;

/// How many of the last pages have enough items to fill so many holes before them.
pub(super) const fn filling(holes: usize) -> u64 {
    // The last one may have a single item.
    holes.div_ceil(PAGE_ITEMS) as u64 + 1
}

/// Items that share a mark, such as the hour or the period that they are of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Page<T> {
    pub(super) mark: u64,
    pub(super) items: Vec<T>,
}

/// Appends to page `next - 1`, or begins page `next` if that one is full or bears another mark: the
/// number of the page, and of the one behind it.
pub(super) fn append<T: Serialize + DeserializeOwned>(
    facts: &impl Facts,
    draft: &mut DocumentDraft<impl Part>,
    (family, next): (Family, u64),
    (mark, item): (u64, T),
) -> Result<u64, Halt> {
    let last = match next.checked_sub(1) {
        Some(number) => find::<T>(facts, draft, family, number)?.map(|page| (number, page)),
        None => None,
    };
    let fits = |page: &Page<T>| page.mark == mark && page.items.len() < PAGE_ITEMS;
    let (number, mut page) = match last {
        Some((number, page)) if fits(&page) => (number, page),
        _ => (next, Page { mark, items: Vec::new() }),
    };
    page.items.push(item);
    put(draft, family, number, &page);
    Ok(number)
}

/// The row that an append to a list of `next` pages looks at, if there is one.
pub(super) fn open(family: Family, next: u64) -> Option<RowKey> {
    next.checked_sub(1).map(|number| RowKey::counted(family, number))
}

pub(super) fn find<T: DeserializeOwned>(
    facts: &impl Facts,
    draft: &DocumentDraft<impl Part>,
    family: Family,
    number: u64,
) -> Result<Option<Page<T>>, Halt> {
    draft.find_row(facts, &RowKey::counted(family, number))
}

pub(super) fn put<T: Serialize>(
    draft: &mut DocumentDraft<impl Part>,
    family: Family,
    number: u64,
    page: &Page<T>,
) {
    let key = RowKey::counted(family, number);
    draft.row(if page.items.is_empty() {
        RowChange::remove(key)
    } else {
        RowChange::put(key, page)
    });
}

pub(super) fn remove(draft: &mut DocumentDraft<impl Part>, family: Family, number: u64) {
    draft.row(RowChange::remove(RowKey::counted(family, number)));
}
