//! Telling followers that logs have grown, and reading for all of them what has come.
//!
//! Runs only while somebody follows. On one node a single connection waits for the logs of all homes; in
//! a cluster, where one command cannot wait for several slots, one for each partition of executions.
//! What has come is read once and kept for all followers (`recent.rs`). When quiet it is told at once; under load what
//! comes within a few milliseconds is told together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ff_core::error::EngineError;
use ff_core::id::Home;
use redis::Value;
use tokio::sync::watch;

use crate::attendance::{Attendance, Present};
use crate::client::Dedicated;
use crate::recent::{End, Recent};
use crate::seen::Seen;
use crate::store::Shared;
use crate::{follow, homes, log, reply};

/// In each turn it is looked where all logs end, and which homes there are.
pub(crate) const TURN: Duration = Duration::from_secs(1);

/// How long a connection waits for the log of one partition; there are many of them.
const LONG_TURN: Duration = Duration::from_secs(5);

/// Pause after the connection failed.
pub(crate) const REST: Duration = Duration::from_millis(200);

/// What comes within such a time is read, and told, together.
pub(crate) const GATHERING: Duration = Duration::from_millis(5);

/// Logs that are waited for in that time; to wait for more costs the server more.
const GATHERED_LOGS: usize = 512;

/// Looks in a turn at logs that nobody waits for on a connection.
const GLANCES: u32 = 4;

/// Who follows, and what is read for them.
pub(crate) struct Growth {
    pub(crate) recent: Recent,
    /// Counts looks, so that each may begin with another home.
    looks: AtomicUsize,
    news: watch::Sender<u64>,
    followers: Attendance,
}

impl Growth {
    pub(crate) fn new() -> Self {
        Self {
            recent: Recent::default(),
            looks: AtomicUsize::new(0),
            news: watch::Sender::new(0),
            followers: Attendance::default(),
        }
    }

    /// Changes whenever something has come.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// A number for the next look.
    pub(crate) fn next_look(&self) -> usize {
        self.looks.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a follower in, and sees to it that somebody waits for news.
    pub(crate) fn join(shared: &Arc<Shared>) -> Present<'_> {
        let (present, start) = shared.growth.followers.join();
        let Some(shift) = start else { return present };
        if shared.client.is_cluster() {
            // A connection for each home would be too many: those that are not partitions of
            // executions are looked at.
            for home in shared.partitions() {
                tokio::spawn(Watcher::new(shared, Some(home)).run(shift));
            }
        } else {
            tokio::spawn(Watcher::new(shared, None).run(shift));
        }
        tokio::spawn(look_after(Arc::clone(shared), shift));
        present
    }

    /// Ends all waits.
    pub(crate) fn end(&self) {
        self.tell();
    }

    /// Followers look.
    fn tell(&self) {
        self.news.send_modify(|times| *times += 1);
    }

    /// Whether listeners of this shift go on. The last to leave takes along what was kept.
    fn goes_on(&self, shared: &Shared, shift: u64) -> bool {
        let goes_on = self.followers.goes_on(shift) && !shared.is_closing();
        if !goes_on && !self.followers.is_running() {
            self.recent.clear();
        }
        goes_on
    }
}

/// The partitions of executions whose streams one connection can wait for.
pub(crate) fn parts(shared: &Shared) -> Vec<Vec<u16>> {
    let partitions = 0..shared.settings.partitions.flow;
    if shared.client.is_cluster() {
        partitions.map(|partition| vec![partition]).collect()
    } else {
        vec![partitions.collect()]
    }
}

/// Waits for new entries of a home's log, or of all, and tells of them.
struct Watcher {
    shared: Arc<Shared>,
    home: Option<Home>,
    connection: Option<Dedicated>,
    /// The logs that are waited for, by their keys, and how far they were read.
    logs: BTreeMap<String, Home>,
    read: Seen,
    /// When it was last asked which homes there are, and how often logs had been lost then.
    learned: Option<(Instant, u64)>,
}

impl Watcher {
    fn new(shared: &Arc<Shared>, home: Option<Home>) -> Self {
        Self {
            shared: Arc::clone(shared),
            home,
            connection: None,
            logs: BTreeMap::new(),
            read: Seen::default(),
            learned: None,
        }
    }

    async fn run(mut self, shift: u64) {
        let shared = Arc::clone(&self.shared);
        while shared.growth.goes_on(&shared, shift) {
            if let Err(error) = self.turn().await {
                tracing::debug!(%error, "the wait for events broke off");
                // What was read before may be of another log than what comes.
                shared.growth.recent.forget(self.logs.values());
                (self.connection, self.learned) = (None, None);
                tokio::time::sleep(REST).await;
            }
        }
    }

    async fn turn(&mut self) -> Result<(), EngineError> {
        self.learn().await?;
        let grown = self.wait().await?;
        let is_all = self.take(grown.clone()).await?;
        if !grown.is_empty() {
            self.shared.growth.tell();
            if is_all {
                let waits = self.logs.len().div_ceil(GATHERED_LOGS);
                tokio::time::sleep(GATHERING * u32::try_from(waits).unwrap_or(1)).await;
            }
        }
        Ok(())
    }

    /// Learns once in a turn which homes there are, and where the logs end that are new. All are new
    /// where some have been lost.
    async fn learn(&mut self) -> Result<(), EngineError> {
        let is_known = self.learned.is_some_and(|(at, emptied)| {
            at.elapsed() < TURN && emptied == self.shared.emptied.times()
        });
        if is_known {
            return Ok(());
        }
        let mut homes = match &self.home {
            Some(home) => vec![home.clone()],
            None => homes::all(&self.shared).await?,
        };
        let emptied = self.shared.emptied.times();
        if self.learned.is_none_or(|(_, before)| before != emptied) {
            (self.logs, self.read) = Default::default();
        }
        homes.retain(|home| !self.logs.contains_key(&self.shared.keys.log(home)));
        self.learned = Some((Instant::now(), emptied));
        if homes.is_empty() {
            return Ok(());
        }
        let ends = follow::ends(&self.shared, homes).await?;
        for End { home, entry, mark } in &ends {
            self.logs.insert(self.shared.keys.log(home), home.clone());
            self.read.note(home, entry * log::NUMBERS, *mark);
        }
        // What came before that is found by those who look now.
        if self.shared.growth.recent.begin(&ends) {
            self.shared.growth.tell();
        }
        Ok(())
    }

    /// Waits until logs have grown: those of which homes, none if the turn is over.
    async fn wait(&mut self) -> Result<Vec<Home>, EngineError> {
        let turn = if self.home.is_some() { LONG_TURN } else { TURN };
        let mut call = redis::cmd("XREAD");
        call.arg("COUNT").arg(1).arg("BLOCK").arg(turn.as_millis() as u64).arg("STREAMS");
        for key in self.logs.keys() {
            call.arg(key);
        }
        for home in self.logs.values() {
            call.arg(format!("0-{}", log::entry_of(self.read.of(home))));
        }
        let shared = &self.shared;
        let dedicated = match &mut self.connection {
            Some(dedicated) => dedicated,
            none => {
                let slot = shared.keys.slot_of(self.home.as_ref().unwrap_or(&Home::Global));
                none.insert(shared.client.dedicated(slot).await?)
            }
        };
        let grown = dedicated.query(&call, turn + shared.options.call_timeout).await?;
        if matches!(grown, Value::Nil) {
            return Ok(Vec::new());
        }
        // Keys and entries in turn.
        let keys = reply::flat(grown)?.into_iter().step_by(2).map(reply::text);
        let home = |key: Result<String, EngineError>| Ok(self.logs.get(&key?).cloned());
        keys.map(home).filter_map(Result::transpose).collect()
    }

    /// Reads and keeps what has come to these homes. Whether that is all there was.
    async fn take(&mut self, grown: Vec<Home>) -> Result<bool, EngineError> {
        let mut is_all = true;
        // The read compares what stands where the last one ended; the wait alone would not tell that the
        // log has become another one.
        for (home, sign, entries) in follow::read_behind(&self.shared, grown, &self.read).await? {
            is_all &= sign == 0;
            if sign == follow::LOST {
                self.shared.emptied.note();
            }
            let Some((last, entry)) = entries.last() else { continue };
            self.read.note(&home, *last, Some(log::mark_of(entry)));
            if !self.shared.growth.recent.extend(&home, entries) {
                self.learned = None;
            }
        }
        Ok(is_all)
    }
}

/// Looks on behalf of all followers where logs end: once in a turn at all of them, since what was told may
/// have been lost, or the log itself; and in a cluster more often at those that no connection waits for.
async fn look_after(shared: Arc<Shared>, shift: u64) {
    let glances = if shared.client.is_cluster() { GLANCES } else { 1 };
    for glance in 0_u32.. {
        if !shared.growth.goes_on(&shared, shift) {
            return;
        }
        // Where one node does not answer, followers ask for themselves.
        match look_at_ends(&shared, glance % glances == 0).await {
            Ok(true) => shared.growth.tell(),
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "the ends of logs could not be read"),
        }
        tokio::time::sleep(TURN / glances).await;
    }
}

/// Whether there is something that is not known.
async fn look_at_ends(shared: &Shared, at_all: bool) -> Result<bool, EngineError> {
    let recent = &shared.growth.recent;
    let is_waited_for =
        |home: &Home| !shared.client.is_cluster() || home.flow_partition().is_some();
    let (waited_for, others): (Vec<_>, Vec<_>) =
        homes::all(shared).await?.into_iter().partition(is_waited_for);
    let mut is_news = false;
    if !others.is_empty() {
        is_news |= recent.begin(&follow::ends(shared, others).await?);
    }
    if at_all {
        is_news |= recent.compare(&follow::ends(shared, waited_for).await?);
    }
    Ok(is_news)
}
