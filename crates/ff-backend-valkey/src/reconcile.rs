//! Compares some records with what lists and counts them, in a store that is at work.
//!
//! Records and indexes are read one after another, so what changes meanwhile may look wrong. Indexes
//! change only together with their record: what looks wrong twice, with the same record before and
//! after, is wrong.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ff_core::cursor;
use ff_core::error::{Code, EngineError};
use ff_core::id::{DocumentId, DocumentKind, ExecutionId, Home, Subject};
use ff_core::limits;
use ff_core::operation::{Part, Reconcile, Reconciled};
use ff_core::read::{Answer, Audited, ListEntry, ListFlowMembers, Query};
use ff_core::state::{Flow, Listing, MemberCounts, Recounted};
use uuid::Uuid;

use crate::audit::{Listed, Places, check_listed};
use crate::keys::{Keys, queue_name, split_queue};
use crate::keyspace::parse_key;
use crate::listing::{list_name, member};
use crate::measure::{Pages, Place};
use crate::record::Entry;
use crate::store::{Shared, join_all};
use crate::{lane_counts, query, read, repair, reply, stale, subject};

/// Steps of a scan in one visit; most of them find nothing of a family that is rare.
const SCAN_STEPS: usize = 8;

pub(crate) async fn reconcile(
    shared: &Arc<Shared>,
    page: &Reconcile,
) -> Result<Reconciled, EngineError> {
    page.check()?;
    let mut visit = Visit { shared, page, done: Reconciled::default() };
    match page.part {
        Part::Executions => visit.executions().await?,
        Part::Documents(kind) => visit.documents(kind).await?,
        Part::Entries => stale::reconcile(&mut visit).await?,
    }
    if visit.done.mended > 0 {
        shared.passed.forget();
    }
    Ok(visit.done)
}

/// A page under way.
pub(crate) struct Visit<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) page: &'a Reconcile,
    pub(crate) done: Reconciled,
}

impl Visit<'_> {
    /// Some keys that match, behind those of the page before.
    pub(crate) async fn keys(&mut self, pattern: &str) -> Result<Vec<String>, EngineError> {
        let scope = self.page.scope();
        let place: Option<Place> =
            self.page.cursor.as_deref().map(|text| cursor::decode(&scope, text)).transpose()?;
        let count = self.page.limit as usize;
        let mut pages = Pages::resume(self.shared, pattern, count, place);
        let mut keys = Vec::new();
        for _ in 0..SCAN_STEPS {
            let Some(found) = pages.next().await? else { break };
            keys.extend(found.into_iter().filter_map(|key| reply::text(key).ok()));
            if !keys.is_empty() {
                break;
            }
        }
        self.done.next_cursor = pages.place().map(|place| cursor::encode(&scope, &place));
        Ok(keys)
    }

    /// What was found wrong, and makes it right.
    pub(crate) async fn mend(
        &mut self,
        subject: &Subject,
        places: &Places,
        found: Audited,
    ) -> Result<(), EngineError> {
        self.done.found.violations.extend(found.violations);
        self.done.mended += u32::from(repair::mend(self.shared, subject, places).await?);
        Ok(())
    }

    async fn executions(&mut self) -> Result<(), EngineError> {
        let family = format!("{}:exec:", self.shared.keys.prefix);
        let mut by_partition: BTreeMap<u16, Vec<ExecutionId>> = BTreeMap::new();
        for key in self.keys(&format!("{family}{{*:core")).await? {
            let Some((home, rest)) = parse_key(&key, &family) else { continue };
            let uuid = rest.strip_suffix(":core").and_then(|uuid| Uuid::try_parse(uuid).ok());
            let (Some(partition), Some(uuid)) = (home.flow_partition(), uuid) else { continue };
            let id = ExecutionId::new(partition, uuid);
            by_partition.entry(partition).or_default().push(id);
        }
        for (partition, ids) in by_partition {
            let entries = read::executions(self.shared, partition, &ids).await?.1;
            let entries: Vec<Entry> = entries.into_iter().flatten().collect();
            let listed = join_all(entries.iter().map(|entry| listed(self.shared, entry))).await;
            for (entry, listed) in entries.iter().zip(listed) {
                if self.page.filter.admits_execution(&entry.execution) {
                    self.execution(entry, listed?).await?;
                }
            }
        }
        Ok(())
    }

    async fn execution(&mut self, entry: &Entry, seen: Listed) -> Result<(), EngineError> {
        let execution = &entry.execution;
        self.done.found.checked += 1;
        self.done.found.check_waits(execution);
        self.done.found.check_counts(execution);
        let mut found = Audited::default();
        check_listed(&mut found, execution, false, seen);
        if found.violations.is_empty() {
            return Ok(());
        }
        // Once more, to be sure.
        let mut found = Audited::default();
        let is_stopped = self.is_stopped(entry).await?;
        check_listed(&mut found, execution, is_stopped, listed(self.shared, entry).await?);
        if !found.violations.is_empty() && self.is_unchanged(entry).await? {
            let places = Places::default();
            self.mend(&execution.id.into(), &places, found).await?;
        }
        Ok(())
    }

    pub(crate) async fn is_unchanged(&self, entry: &Entry) -> Result<bool, EngineError> {
        let id = entry.execution.id;
        let now = read::executions(self.shared, id.partition(), &[id]).await?.1.pop().flatten();
        Ok(now.as_ref() == Some(entry))
    }

    /// Whether its flow lets no member be claimed: a claim that met it may have taken it out of its
    /// queue.
    async fn is_stopped(&self, entry: &Entry) -> Result<bool, EngineError> {
        let Some(counted) = Recounted::between(None, Some(&entry.execution)) else {
            return Ok(false);
        };
        let (home, ids) = (counted.flow.home.clone(), [counted.flow]);
        let flow = read::documents(self.shared, &home, &ids).await?.1.pop().flatten();
        Ok(flow.is_some_and(|(flow, _)| flow.flow().is_some_and(Flow::stops_claims)))
    }

    async fn documents(&mut self, kind: DocumentKind) -> Result<(), EngineError> {
        let prefix = format!("{}:", self.shared.keys.prefix);
        let mut by_home: BTreeMap<Home, Vec<DocumentId>> = BTreeMap::new();
        for key in self.keys(&format!("{prefix}{}:{{*:core", kind.as_str())).await? {
            let name = key.strip_prefix(&prefix).and_then(|key| key.strip_suffix(":core"));
            let id: Option<DocumentId> = name.and_then(|name| name.parse().ok());
            if let Some(id) = id {
                by_home.entry(id.home.clone()).or_default().push(id);
            }
        }
        let mut members_left = limits::RECONCILE_MEMBERS;
        for (home, ids) in by_home {
            let found = read::documents(self.shared, &home, &ids).await?.1;
            for counted in found.into_iter().flatten() {
                if self.page.filter.admits_document(&counted.0) {
                    self.document(&counted, &mut members_left).await?;
                }
            }
        }
        Ok(())
    }

    async fn document(
        &mut self,
        seen: &read::Counted,
        members_left: &mut u32,
    ) -> Result<(), EngineError> {
        let (document, kept) = seen;
        self.done.found.checked += 1;
        let flow = document.flow().filter(|flow| flow.members <= *members_left);
        *members_left -= flow.map_or(0, |flow| flow.members);
        let (timers, lists) = document_listed(self.shared, seen).await?;
        let counted = match flow {
            Some(flow) => counted(self.shared, flow).await?.unwrap_or_else(|| kept.clone()),
            None => kept.clone(),
        };
        let mut found = Audited::default();
        found.check_document(document, (&timers, &lists), (kept, &counted));
        if found.violations.is_empty() {
            return Ok(());
        }
        let (home, ids) = (&document.id.home, std::slice::from_ref(&document.id));
        let now = read::documents(self.shared, home, ids).await?.1.pop().flatten();
        if now.as_ref() != Some(seen) {
            return Ok(());
        }
        self.mend(&Subject::from(&document.id), &Places::default(), found).await?;
        self.recount(&document.id, kept, &counted).await
    }

    /// Adds what the counts of a flow lack, so that what others count meanwhile stays.
    async fn recount(
        &self,
        id: &DocumentId,
        kept: &MemberCounts,
        counted: &MemberCounts,
    ) -> Result<(), EngineError> {
        let mut missing: BTreeMap<String, i64> = BTreeMap::new();
        for (field, count) in counted.fields() {
            *missing.entry(field.to_string()).or_default() += i64::from(count);
        }
        for (field, count) in kept.fields() {
            *missing.entry(field.to_string()).or_default() -= i64::from(count);
        }
        missing.retain(|_, delta| *delta != 0);
        match missing.is_empty() {
            true => Ok(()),
            false => {
                lane_counts::add(self.shared, &id.home, self.shared.keys.tally(id), &missing).await
            }
        }
    }
}

/// Where the record says that it must be listed, as far as it is.
async fn listed(shared: &Shared, entry: &Entry) -> Result<Listed, EngineError> {
    let execution = &entry.execution;
    let (home, subject) = (Home::partition(execution.id.partition()), execution.id.into());
    let mut found = Listed {
        lease: score(shared, &home, "leases", &subject).await?,
        timer: score(shared, &home, "timers", &subject).await?,
        ..Listed::default()
    };
    if let Some(name) = execution.queue_place().map(|place| queue_name(&place)) {
        let at = score(shared, &home, &Keys::queue_index(&name), &subject).await?;
        // A queue that nothing names is one that nobody finds.
        let class = split_queue(&name).1.as_bytes().to_vec();
        let named = member_score(shared, &home, &Keys::ready_index(&name), class).await?;
        found.queues.extend(at.filter(|_| named.is_some()).map(|at| (name, at)));
    }
    found.lists = in_lists(shared, &home, &subject, execution.listings()).await?;
    Ok(found)
}

/// The same of a document.
async fn document_listed(
    shared: &Shared,
    (document, _): &read::Counted,
) -> Result<(Vec<i64>, Vec<ListEntry>), EngineError> {
    let (home, subject) = (&document.id.home, Subject::from(&document.id));
    let timer = score(shared, home, "timers", &subject).await?;
    let lists = in_lists(shared, home, &subject, document.listings()).await?;
    Ok((timer.into_iter().collect(), lists))
}

async fn in_lists<'a>(
    shared: &Shared,
    home: &Home,
    subject: &Subject,
    listings: impl Iterator<Item = Listing<'a>>,
) -> Result<Vec<ListEntry>, EngineError> {
    let mut found = Vec::new();
    for listing in listings {
        let list = list_name(listing.list, listing.namespace);
        let at = member_score(shared, home, &list, member(subject, listing.name)).await?;
        let entry = |at| (listing.list.code(), listing.namespace.to_string(), at, listing.name);
        found.extend(at.map(entry));
    }
    Ok(found)
}

async fn score(
    shared: &Shared,
    home: &Home,
    index: &str,
    subject: &Subject,
) -> Result<Option<i64>, EngineError> {
    member_score(shared, home, index, subject::short(subject)).await
}

pub(crate) async fn member_score(
    shared: &Shared,
    home: &Home,
    index: &str,
    member: Vec<u8>,
) -> Result<Option<i64>, EngineError> {
    let mut command = redis::cmd("ZSCORE");
    command.arg(shared.keys.index_of(home, index)).arg(member);
    match shared.send_home(home, &command).await? {
        redis::Value::Nil => Ok(None),
        score => reply::number(&score).map(Some),
    }
}

/// What the members of a flow say; none while it is out of sight.
async fn counted(shared: &Arc<Shared>, flow: &Flow) -> Result<Option<MemberCounts>, EngineError> {
    let mut counts = MemberCounts::default();
    let mut next = Some(0);
    while let Some(from) = next {
        let (flow_id, limit) = (flow.id, limits::PAGE_MAX);
        let list = Query::ListFlowMembers(ListFlowMembers { flow_id, from, limit });
        let members = match query::answer(shared, list).await {
            Ok(Answer::ListFlowMembers(members)) => members,
            Ok(_) => return Err(EngineError::bug("members of a flow were asked for")),
            // It is out of sight: still being made, or about to go.
            Err(error) if error.code() == Code::FlowNotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut by_partition: HashMap<u16, Vec<ExecutionId>> = HashMap::new();
        for id in members.items.iter().map(|member| member.execution_id) {
            by_partition.entry(id.partition()).or_default().push(id);
        }
        for (partition, ids) in by_partition {
            let entries = read::executions(shared, partition, &ids).await?.1;
            for entry in entries.into_iter().flatten() {
                if let Some(counted) = Recounted::between(None, Some(&entry.execution)) {
                    counted.deltas().into_iter().for_each(|(field, n)| counts.add(field, n));
                }
            }
        }
        next = members.next;
    }
    Ok(Some(counts))
}
