//! Pages of long lists. A page looks at a bounded number of records.

use std::ops::ControlFlow;

use crate::limits;

/// A page may be short or empty while there is a cursor: it looks at a bounded number of records.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next_cursor: Option<String>,
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self { items: Vec::new(), next_cursor: None }
    }
}

impl<T> Page<T> {
    /// The same page of what each item leads to.
    pub fn try_map<U, E>(self, lead: impl FnMut(T) -> Result<U, E>) -> Result<Page<U>, E> {
        let items = self.items.into_iter().map(lead).collect::<Result<_, _>>()?;
        Ok(Page { items, next_cursor: self.next_cursor })
    }
}

/// What an entry of a list is to a question.
#[derive(Debug, PartialEq, Eq)]
pub enum Seen<T> {
    /// It is asked for.
    Item(T),
    /// It is not.
    Passed,
    /// Neither it nor any behind it.
    End,
}

/// A page in the making: the entries of a list go by in order.
#[derive(Debug)]
pub struct Leaf<P, T> {
    items: Vec<T>,
    limit: usize,
    looked: u32,
    last: Option<P>,
    more: bool,
}

impl<P, T> Leaf<P, T> {
    pub fn new(limit: u32) -> Self {
        let (items, last) = (Vec::new(), None);
        Self { items, limit: limit as usize, looked: 0, last, more: false }
    }

    /// Looks at the next entry, unless the page is full; breaks when it needs no further one.
    pub fn look(&mut self, at: P, see: impl FnOnce() -> Seen<T>) -> ControlFlow<()> {
        if self.items.len() == self.limit || self.looked == limits::SEARCH_LOOK_AHEAD {
            self.more = true;
            return ControlFlow::Break(());
        }
        match see() {
            Seen::Item(item) => self.items.push(item),
            Seen::Passed => {}
            Seen::End => return ControlFlow::Break(()),
        }
        self.looked += 1;
        self.last = Some(at);
        ControlFlow::Continue(())
    }

    /// The page; `cursor` goes on behind the last entry that was looked at.
    pub fn finish(self, cursor: impl FnOnce(P) -> String) -> Page<T> {
        let next_cursor = self.last.filter(|_| self.more).map(cursor);
        Page { items: self.items, next_cursor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(entries: u32, limit: u32, see: impl Fn(u32) -> Seen<u32>) -> Page<u32> {
        let mut leaf = Leaf::new(limit);
        let _ = (0..entries).try_for_each(|n| leaf.look(n, || see(n)));
        leaf.finish(|last| last.to_string())
    }

    #[test]
    fn a_page_ends_at_its_limit_at_its_bound_and_at_the_end() {
        let ahead = limits::SEARCH_LOOK_AHEAD;
        let cursor = |at: u32| Some(at.to_string());
        assert_eq!(page(3, 3, Seen::Item).next_cursor, None);
        assert_eq!(page(4, 3, Seen::Item), Page { items: vec![0, 1, 2], next_cursor: cursor(2) });
        assert_eq!(page(ahead, 3, |_| Seen::Passed), Page::default());
        assert_eq!(page(ahead + 1, 3, |_| Seen::Passed).next_cursor, cursor(ahead - 1));
        let until_two = |n| if n < 2 { Seen::Item(n) } else { Seen::End };
        assert_eq!(page(9, 3, until_two), Page { items: vec![0, 1], next_cursor: None });
    }
}
