//! Walks over lists that several homes have a part of, in one order over all.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use ff_core::error::EngineError;
use ff_core::id::{DocumentId, ExecutionId, Home, Subject};
use ff_core::read::{Leaf, Listed, Page, Seen};
use ff_core::state::Execution;
use ff_core::time::TimestampMs;
use redis::{Cmd, Value};

use crate::everywhere::{Missing, Tour};
use crate::read::Counted;
use crate::record::Entry;
use crate::store::{Shared, join_all};
use crate::{read, reply};

/// Records that one read brings.
const READ_MOST: usize = 64;

/// A question over all homes of a family.
pub(crate) trait Course: Sync {
    /// Its order is that of the walk.
    type Position: Clone + Ord + Send + Sync;

    type Item: Send;

    /// Shows the next entries of each home.
    const FUNCTION: &'static str;

    /// The homes that have a part of the list.
    fn homes(&self, shared: &Shared) -> Vec<Home>;

    /// What the function is given for entries behind a position, before the homes.
    fn arguments(&self, call: &mut Cmd, behind: Option<Self::Position>, most: usize);

    /// Reads one entry of a home.
    fn position(home: &Home, entry: &[u8]) -> Option<Self::Position>;

    /// Given the last of the entries that a home has shown: none that it has not shown comes
    /// before this, or at it.
    fn sure(last: Self::Position) -> Self::Position;

    fn subject(at: &Self::Position) -> Subject;

    fn limit(&self) -> u32;

    /// What an entry is to the question.
    fn see(&self, at: &Self::Position, found: Listed<'_>, now: TimestampMs) -> Seen<Self::Item>;

    fn cursor_after(&self, at: Self::Position) -> String;
}

/// The page behind a position.
pub(crate) async fn page<C: Course>(
    shared: &Arc<Shared>,
    course: &C,
    behind: Option<C::Position>,
) -> Result<Page<C::Item>, EngineError> {
    let mut leaf = Leaf::new(course.limit());
    let mut walk = Walk { shared, course, behind, reach: course.limit() as usize + 1 };
    loop {
        let (positions, more) = walk.step().await?;
        let found = load(shared, positions.iter().map(C::subject).collect()).await?;
        let is_done = positions.iter().any(|at| {
            let seen = |found: &Found| course.see(at, found.listed(), found.now());
            let see = || found.get(&C::subject(at)).map_or(Seen::Passed, seen);
            leaf.look(at.clone(), see).is_break()
        });
        if is_done || !more {
            return Ok(leaf.finish(|last| course.cursor_after(last)));
        }
    }
}

struct Walk<'a, C: Course> {
    shared: &'a Arc<Shared>,
    course: &'a C,
    /// All up to here have been seen.
    behind: Option<C::Position>,
    /// How many the next step looks at.
    reach: usize,
}

/// The next entries of one home.
struct Front<P> {
    positions: Vec<P>,
    complete: bool,
}

impl<C: Course> Walk<'_, C> {
    /// The next positions in order, and whether there are more behind them.
    async fn step(&mut self) -> Result<(Vec<C::Position>, bool), EngineError> {
        let mut most = (self.course.limit() as usize).clamp(16, READ_MOST);
        loop {
            let fronts = self.fronts(most).await?;
            // What a home has not shown comes behind this.
            let unseen = fronts.iter().filter(|front| !front.complete);
            let sure = unseen.filter_map(|front| front.positions.iter().max()).cloned();
            let sure = sure.map(C::sure).min();
            let mut positions: Vec<_> = fronts.into_iter().flat_map(|f| f.positions).collect();
            positions.sort_unstable();
            positions.dedup();
            positions.retain(|at| {
                self.behind.as_ref().is_none_or(|behind| at > behind)
                    && sure.as_ref().is_none_or(|sure| at <= sure)
            });
            if positions.is_empty() && sure.is_some() {
                // All that was shown lies too close together: look further.
                most *= 2;
                continue;
            }
            // Of all that the homes have shown no more is read than a page may need: more of it when
            // little of that was asked for.
            let more = sure.is_some() || positions.len() > self.reach;
            positions.truncate(self.reach);
            self.reach *= 4;
            self.behind = positions.last().cloned().or(self.behind.take());
            return Ok((positions, more));
        }
    }

    async fn fronts(&self, most: usize) -> Result<Vec<Front<C::Position>>, EngineError> {
        let homes = self.course.homes(self.shared);
        let tour = Tour::by(C::FUNCTION, Missing::Wait).entries(most);
        let replies = self
            .shared
            .everywhere(tour, homes, |call, homes| {
                self.course.arguments(call, self.behind.clone(), most);
                homes.iter().for_each(|home| {
                    call.arg(home.to_string());
                });
            })
            .await?;
        let mut fronts = Vec::new();
        for answered in replies.answered {
            for front in reply::array(answered.reply)? {
                fronts.push(read_front::<C>(front)?);
            }
        }
        Ok(fronts)
    }
}

fn read_front<C: Course>(front: Value) -> Result<Front<C::Position>, EngineError> {
    let mut items = reply::array(front)?.into_iter();
    let home = reply::home(reply::next(&mut items)?)?;
    let complete = reply::number(&reply::next(&mut items)?)? == 1;
    let mut positions = Vec::new();
    for entry in items {
        let entry = reply::some_bytes(entry)?;
        positions.push(C::position(&home, &entry).ok_or_else(|| {
            EngineError::corruption(format!("{} of {home} has {entry:?}", C::FUNCTION))
        })?);
    }
    Ok(Front { positions, complete })
}

/// A record, and the time at which it was read.
pub(crate) enum Found {
    Execution(TimestampMs, Box<Entry>),
    Document(TimestampMs, Box<Counted>),
}

impl Found {
    fn now(&self) -> TimestampMs {
        match self {
            Self::Execution(now, _) | Self::Document(now, _) => *now,
        }
    }

    /// None of a document.
    pub(crate) fn execution(&self) -> Option<(&Execution, TimestampMs)> {
        match self {
            Self::Execution(now, entry) => Some((&entry.execution, *now)),
            Self::Document(..) => None,
        }
    }

    fn listed(&self) -> Listed<'_> {
        match self {
            Self::Execution(_, entry) => Listed::Execution(&entry.execution),
            Self::Document(_, found) => Listed::Document(&found.0, &found.1),
        }
    }
}

/// The records of these that exist.
pub(crate) async fn load(
    shared: &Arc<Shared>,
    subjects: BTreeSet<Subject>,
) -> Result<HashMap<Subject, Found>, EngineError> {
    let mut executions: BTreeMap<u16, Vec<ExecutionId>> = BTreeMap::new();
    let mut documents: BTreeMap<Home, Vec<DocumentId>> = BTreeMap::new();
    for subject in subjects {
        match subject {
            Subject::Execution(id) => executions.entry(id.partition()).or_default().push(id),
            Subject::Document(id) => documents.entry(id.home.clone()).or_default().push(id),
        }
    }
    let parts = executions.values().flat_map(|ids| ids.chunks(READ_MOST));
    let executions = parts.filter_map(|part| {
        let partition = part.first()?.partition();
        Some(async move { read::executions(shared, partition, part).await })
    });
    let parts = documents.values().flat_map(|ids| ids.chunks(READ_MOST));
    let documents = parts.filter_map(|part| {
        let home = &part.first()?.home;
        Some(async move { read::documents(shared, home, part).await })
    });
    let (executions, documents) = tokio::join!(join_all(executions), join_all(documents));
    let mut found = HashMap::new();
    for read in executions {
        let (now, entries) = read?;
        let entries = entries.into_iter().flatten();
        found.extend(
            entries
                .map(|entry| (entry.execution.id.into(), Found::Execution(now, Box::new(entry)))),
        );
    }
    for read in documents {
        let (now, documents) = read?;
        let documents = documents.into_iter().flatten();
        found.extend(
            documents
                .map(|counted| ((&counted.0.id).into(), Found::Document(now, Box::new(counted)))),
        );
    }
    Ok(found)
}
