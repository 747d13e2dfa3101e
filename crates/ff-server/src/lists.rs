//! Pages of lists, and how many there are in all.

use axum::response::Response;
use ff_api::list::{Counted, Page};
use ff_core::error::EngineError;
use ff_core::limits;
use ff_core::read::{self, Question};
use serde::Serialize;

use crate::call::Call;
use crate::failure::Failed;
use crate::reply;

/// An estimate looks no further than ten thousand.
const COUNTED_PAGES: usize = 20;

/// One page of a list that the store walks, and on demand the number of all.
pub(crate) async fn page<T, Q, I>(
    call: &Call,
    paging: Counted,
    question: impl Fn(Option<String>, u32) -> Q + Send + Sync,
) -> Result<Response, Failed>
where
    T: From<I> + Serialize,
    Q: Question<Answer = read::Page<I>>,
    I: Send,
{
    let (counts, limit) = (paging.counts()?, paging.limit());
    let found = call.ask(question(paging.cursor, limit)).await?;
    let items: Vec<T> = found.items.into_iter().map(T::from).collect();
    let count = if counts { Some(estimate(call, question).await?) } else { None };
    reply::page(call, &Page { count, ..Page::new(items, found.next_cursor) })
}

/// How many there are, counted page by page up to a bound.
pub(crate) async fn estimate<Q, I>(
    call: &Call,
    question: impl Fn(Option<String>, u32) -> Q + Send + Sync,
) -> Result<u64, EngineError>
where
    Q: Question<Answer = read::Page<I>>,
    I: Send,
{
    let (mut count, mut cursor) = (0, None);
    for _ in 0..COUNTED_PAGES {
        let page = call.ask(question(cursor, limits::PAGE_MAX)).await?;
        count += page.items.len() as u64;
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok(count)
}
