//! Who waits for the output of which execution. Shared by stores; knows no runtime.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crate::id::ExecutionId;

/// Watchers by execution, so that news of one execution wakes nobody else.
#[derive(Debug, Default)]
pub struct Tails {
    register: Mutex<Register>,
}

#[derive(Debug, Default)]
struct Register {
    watched: HashMap<ExecutionId, Watched>,
    /// Counts all news; no number is given twice.
    news: u64,
}

#[derive(Debug, Default)]
struct Watched {
    /// Number of the last news.
    news: u64,
    watchers: HashMap<u64, Option<Waker>>,
    last_watcher: u64,
}

/// One who watches; dropping it ends that.
#[derive(Debug)]
pub struct Watching<'a> {
    tails: &'a Tails,
    id: ExecutionId,
    watcher: u64,
    seen: u64,
}

impl Tails {
    /// Begins to watch: news from now on ends a wait.
    pub fn watch(&self, id: ExecutionId) -> Watching<'_> {
        let mut register = self.lock();
        register.news += 1;
        let Register { watched, news } = &mut *register;
        let of_id =
            watched.entry(id).or_insert_with(|| Watched { news: *news, ..Watched::default() });
        of_id.last_watcher += 1;
        of_id.watchers.insert(of_id.last_watcher, None);
        Watching { tails: self, id, watcher: of_id.last_watcher, seen: of_id.news }
    }

    pub fn is_empty(&self) -> bool {
        self.lock().watched.is_empty()
    }

    /// There is news of an execution.
    pub fn tell(&self, id: ExecutionId) {
        let mut register = self.lock();
        register.news += 1;
        let Register { watched, news } = &mut *register;
        if let Some(of_id) = watched.get_mut(&id) {
            of_id.tell(*news);
        }
    }

    /// There may be news of any.
    pub fn tell_all(&self) {
        let mut register = self.lock();
        register.news += 1;
        let Register { watched, news } = &mut *register;
        watched.values_mut().for_each(|of_id| of_id.tell(*news));
    }

    fn lock(&self) -> MutexGuard<'_, Register> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    fn tell(&mut self, news: u64) {
        self.news = news;
        self.watchers.values_mut().filter_map(Option::take).for_each(Waker::wake);
    }
}

impl Watching<'_> {
    /// Number of the last news that this watcher knows of. What is read after it was given holds all
    /// that it told of, so watchers that know the same number may share what one of them reads.
    pub fn last_news(&self) -> u64 {
        self.seen
    }

    /// Waits for news that came since the watch began or the last wait ended.
    pub async fn news(&mut self) {
        poll_fn(|context| {
            let mut register = self.tails.lock();
            let Some(of_id) = register.watched.get_mut(&self.id) else { return Poll::Ready(()) };
            if of_id.news != self.seen {
                self.seen = of_id.news;
                return Poll::Ready(());
            }
            of_id.watchers.insert(self.watcher, Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        let watched = &mut self.tails.lock().watched;
        if let Some(of_id) = watched.get_mut(&self.id) {
            of_id.watchers.remove(&self.watcher);
            if of_id.watchers.is_empty() {
                watched.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;

    use super::*;
    use crate::partition::PartitionConfig;

    fn is_over(watching: &mut Watching<'_>) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        pin!(watching.news()).poll(&mut context).is_ready()
    }

    #[test]
    fn news_reach_those_who_watch_and_only_them() {
        let partitions = PartitionConfig::default();
        let ids = [1, 2].map(|n| ExecutionId::solo(uuid::Uuid::from_u128(n), &partitions));
        let tails = Tails::default();
        let [mut a, mut also_a, mut b] = [ids[0], ids[0], ids[1]].map(|id| tails.watch(id));
        assert!(!is_over(&mut a) && !is_over(&mut b));
        tails.tell(ids[0]);
        assert!(is_over(&mut a) && is_over(&mut also_a) && !is_over(&mut b));
        assert!(!is_over(&mut a));
        tails.tell_all();
        assert!(is_over(&mut a) && is_over(&mut b));
        drop((a, also_a, b));
        assert!(tails.is_empty());
    }
}
