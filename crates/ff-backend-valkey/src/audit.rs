//! Compares every record with the indexes that must, and must not, list it. It reads key by key, and
//! what changes meanwhile may look wrong: so what looks wrong is looked at again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use ff_core::error::EngineError;
use ff_core::id::{DocumentId, DocumentKind, ExecutionId, Home, Subject};
use ff_core::read::{Audited, ListEntry, LogCheck};
use ff_core::state::{Execution, Flow, FrameMode, MemberCounts, Recounted};
use ff_core::time::TimestampMs;
use redis::Value;
use uuid::Uuid;

use crate::commit::ITEMS_MOST;
use crate::follow::check_logs;
use crate::item::OLD;
use crate::keys::{Keys, REQUIRED, queue_name, requires_some, split_queue};
use crate::keyspace::{Keyspace, parse_key};
use crate::listing::{name_of, parse_member, parse_name};
use crate::record::Entry;
use crate::store::Shared;
use crate::{frames, homes, lane_counts, read, reply};

/// What an audit found, and what a repair needs to know.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) audited: Audited,
    /// What is listed or counted wrongly, or of which something is left, and where it is listed.
    pub(crate) mislisted: BTreeMap<Subject, Places>,
    /// Homes that hold documents and that nobody looks for timers in.
    pub(crate) unfound: BTreeSet<Home>,
    /// What the counts of lanes lack.
    pub(crate) uncounted: lane_counts::Counts,
}

/// What names an execution or document.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    pub(crate) queues: Vec<String>,
    /// Lists, and the name of the entry.
    pub(crate) lists: Vec<(String, Uuid)>,
    /// What the executions say that belong to a document; none: its counts are left as they are.
    pub(crate) counts: Option<MemberCounts>,
}

/// Where an execution was found listed.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    /// Names of queues, and its scores there.
    pub(crate) queues: Vec<(String, i64)>,
    pub(crate) lease: Option<i64>,
    pub(crate) timer: Option<i64>,
    pub(crate) lists: Vec<ListEntry>,
}

/// An audit under way.
struct Audit<'a> {
    shared: &'a Arc<Shared>,
    findings: Findings,
    indexes: Indexes,
    log: LogCheck,
    /// Flows that let no member be claimed.
    stopped: BTreeSet<DocumentId>,
    /// How many executions of which state belong to a document.
    members: HashMap<DocumentId, MemberCounts>,
    /// The same of lanes.
    lanes: lane_counts::Counts,
}

/// Looks that must find the same before it counts as wrong.
const LOOKS: usize = 3;

pub(crate) async fn audit(shared: &Arc<Shared>) -> Result<Findings, EngineError> {
    let mut findings = look(shared).await?;
    for _ in 1..LOOKS {
        if findings.audited.violations.is_empty() {
            break;
        }
        findings = look(shared).await?.confirming(&findings);
    }
    Ok(findings)
}

async fn look(shared: &Arc<Shared>) -> Result<Findings, EngineError> {
    let mut findings = Findings::default();
    let mut indexes = Indexes::default();
    let keyspace = Keyspace::read(shared).await?;
    let counted = lane_counts::stored(shared, &keyspace).await?;
    let executions = executions(&keyspace);
    let documents = documents(&keyspace);
    let mut homes: BTreeSet<_> = homes::all(shared).await?.into_iter().collect();
    for home in documents.keys().map(|id| &id.home) {
        if homes.insert(home.clone()) {
            findings.unfound(home);
        }
    }
    for (home, name) in keyspace.indexes() {
        indexes.read(shared, &home, name, &mut findings.audited).await?;
    }
    let log = check_logs(shared, &mut findings.audited).await?;
    let (stopped, members, lanes) = Default::default();
    let mut audit = Audit { shared, findings, indexes, log, stopped, members, lanes };
    let unready = audit.indexes.unready.iter().map(|id| Subject::from(*id));
    let unready: Vec<_> = unready.map(|id| (id.clone(), audit.indexes.places_of(&id))).collect();
    let found = audit.read_documents(&documents).await?;
    audit.executions(executions).await?;
    audit.documents(found);
    let lanes = (&counted, &audit.lanes);
    audit.findings.uncounted =
        lane_counts::audit(shared, &keyspace, &mut audit.findings.audited, lanes).await?;
    audit.findings.mislisted.extend(unready);
    audit.orphans();
    Ok(audit.findings)
}

impl Findings {
    /// What an earlier look has found as well.
    fn confirming(mut self, before: &Self) -> Self {
        self.audited.violations.retain(|violation| before.audited.violations.contains(violation));
        let wrong: BTreeSet<_> = self.audited.violations.iter().map(|it| &it.subject).collect();
        // Of a queue that cannot be found no subject is told.
        let is_wrong = |subject: &Subject| {
            let name = match subject {
                Subject::Execution(id) => id.to_string(),
                Subject::Document(id) => id.to_string(),
            };
            [None, Some(name), Some(subject.to_string())].iter().any(|name| wrong.contains(name))
        };
        self.mislisted.retain(|it, _| before.mislisted.contains_key(it) && is_wrong(it));
        self.unfound.retain(|home| before.unfound.contains(home));
        self.uncounted.retain(|hash, lacks| before.uncounted.get(hash) == Some(lacks));
        self
    }

    fn unfound(&mut self, home: &Home) {
        let detail = format!("{home} has documents and is not among the homes there are");
        self.audited.report("I10", None::<String>, detail);
        self.unfound.insert(home.clone());
    }
}

impl Audit<'_> {
    fn mislist(&mut self, subject: &Subject, places: Places) {
        self.findings.mislisted.insert(subject.clone(), places);
    }

    /// Something is left of what has no record.
    fn left_behind(&mut self, subject: &Subject, parts: &BTreeSet<String>) {
        let detail = format!("left behind: {parts:?}");
        self.findings.audited.report("I33", Some(subject), detail);
        let places = self.indexes.places_of(subject);
        self.mislist(subject, places);
    }

    async fn executions(
        &mut self,
        executions: BTreeMap<ExecutionId, BTreeSet<String>>,
    ) -> Result<(), EngineError> {
        let mut by_partition: BTreeMap<u16, Vec<ExecutionId>> = BTreeMap::new();
        for (id, parts) in &executions {
            if parts.contains("core") {
                by_partition.entry(id.partition()).or_default().push(*id);
            } else {
                self.left_behind(&(*id).into(), parts);
            }
        }
        for (partition, ids) in by_partition {
            for part in ids.chunks(ITEMS_MOST) {
                let (now, entries) = read::executions(self.shared, partition, part).await?;
                for entry in entries.into_iter().flatten() {
                    let parts = &executions[&entry.execution.id];
                    self.execution(&entry, now, parts).await?;
                }
            }
        }
        Ok(())
    }

    async fn execution(
        &mut self,
        entry: &Entry,
        now: TimestampMs,
        parts: &BTreeSet<String>,
    ) -> Result<(), EngineError> {
        let execution = &entry.execution;
        let subject = execution.id.into();
        let places = self.indexes.places_of(&subject);
        let mut is_stopped = false;
        if let Some(counted) = Recounted::between(None, Some(execution)) {
            is_stopped = self.stopped.contains(&counted.flow);
            let counts = self.members.entry(counted.flow.clone()).or_default();
            counted.deltas().into_iter().for_each(|(field, delta)| counts.add(field, delta));
        }
        lane_counts::count(&mut self.lanes, execution);
        let audited = &mut self.findings.audited;
        audited.checked += 1;
        self.log.check(audited, execution);
        let before = audited.violations.len();
        check(self.shared, audited, (entry, is_stopped), parts, &mut self.indexes).await?;
        check_streams(self.shared, audited, entry, now, parts).await?;
        if audited.violations.len() > before {
            self.mislist(&subject, places);
        }
        Ok(())
    }

    /// The documents whose records are there; notes what is left of others.
    async fn read_documents(
        &mut self,
        documents: &BTreeMap<DocumentId, BTreeSet<String>>,
    ) -> Result<Vec<read::Counted>, EngineError> {
        let mut by_home: BTreeMap<&Home, Vec<DocumentId>> = BTreeMap::new();
        for (id, parts) in documents {
            if parts.contains("core") {
                by_home.entry(&id.home).or_default().push(id.clone());
            } else {
                self.left_behind(&id.into(), parts);
            }
        }
        let mut found = Vec::new();
        for (home, ids) in by_home {
            for part in ids.chunks(ITEMS_MOST) {
                found.extend(
                    read::documents(self.shared, home, part).await?.1.into_iter().flatten(),
                );
            }
        }
        for (document, _) in &found {
            if document.flow().is_some_and(Flow::stops_claims) {
                self.stopped.insert(document.id.clone());
            }
        }
        Ok(found)
    }

    fn documents(&mut self, found: Vec<read::Counted>) {
        for (document, kept) in found {
            let subject = Subject::from(&document.id);
            let mut places = self.indexes.places_of(&subject);
            let counts = self.members.remove(&document.id).unwrap_or_default();
            let timers: Vec<i64> = self.indexes.timers.remove(&subject).into_iter().collect();
            let listings = self.indexes.lists.remove(&subject).unwrap_or_default();
            let audited = &mut self.findings.audited;
            audited.checked += 1;
            let before = audited.violations.len();
            audited.check_document(&document, (&timers, &listings), (&kept, &counts));
            places.counts = Some(counts);
            let is_sound = audited.violations.len() == before;
            self.log.check_document(audited, &document);
            if !is_sound {
                self.mislist(&subject, places);
            }
        }
    }

    /// What names something that is not there.
    fn orphans(&mut self) {
        let queues = self.indexes.queues.keys().map(|id| Subject::from(*id));
        let leases = self.indexes.leases.keys().map(|id| Subject::from(*id));
        let timers = self.indexes.timers.keys().cloned();
        let listed = queues.chain(leases).chain(timers).chain(self.indexes.lists.keys().cloned());
        for subject in listed.collect::<BTreeSet<_>>() {
            let detail = "an index names what does not exist";
            self.findings.audited.report("I10", Some(&subject), detail);
            let places = self.indexes.places_of(&subject);
            self.mislist(&subject, places);
        }
        for id in self.members.keys() {
            let detail = "executions belong to a document that is not there";
            self.findings.audited.report("I10", Some(id), detail);
        }
    }
}

/// What indexes say of each execution and document; an entry is removed when its record has been
/// looked at.
#[derive(Default)]
struct Indexes {
    queues: HashMap<ExecutionId, Vec<(String, i64)>>,
    leases: HashMap<ExecutionId, i64>,
    timers: HashMap<Subject, i64>,
    created: HashMap<ExecutionId, Vec<i64>>,
    /// The best entry of each queue that is not known to have one.
    unready: Vec<ExecutionId>,
    /// Code of the list, namespace, instant and name.
    lists: HashMap<Subject, Vec<(u8, String, i64, Uuid)>>,
}

impl Indexes {
    fn places_of(&self, subject: &Subject) -> Places {
        let queues = subject.execution_id().and_then(|id| self.queues.get(&id));
        let lists = self.lists.get(subject).into_iter().flatten();
        Places {
            queues: queues.into_iter().flatten().map(|(name, _)| name.clone()).collect(),
            lists: lists.map(|(code, ns, _, name)| (name_of(*code, ns), *name)).collect(),
            counts: None,
        }
    }

    /// Takes an index over, by what its entries mean; of those that none has to say nothing.
    async fn read(
        &mut self,
        shared: &Arc<Shared>,
        home: &Home,
        name: &str,
        audited: &mut Audited,
    ) -> Result<(), EngineError> {
        if let Some((code, namespace)) = parse_name(name) {
            return self.read_list(shared, home, name, (code, namespace), audited).await;
        }
        if name == "timers" {
            for (member, at) in raw_members(shared, home, name).await? {
                let subject = reply::subject(home, Value::BulkString(member.to_vec()))?;
                self.timers.insert(subject, at);
            }
        }
        let Some(partition) = home.flow_partition() else { return Ok(()) };
        match name {
            "leases" => self.leases.extend(members(shared, partition, name).await?),
            "created" => self.read_created(shared, partition).await?,
            OLD => {
                for (id, at) in members(shared, partition, name).await? {
                    self.created.entry(id).or_default().push(at);
                }
            }
            name => {
                let queue = name.strip_prefix("lane:").and_then(|q| q.strip_suffix(":eligible"));
                if let Some(queue) = queue {
                    self.read_queue(shared, partition, queue, audited).await?;
                }
            }
        }
        Ok(())
    }

    async fn read_created(&mut self, shared: &Shared, partition: u16) -> Result<(), EngineError> {
        let mut hours = redis::cmd("ZRANGE");
        hours.arg(shared.keys.index(partition, "created")).arg(0).arg(-1);
        for hour in reply::array(shared.send(partition, &hours).await?)? {
            let bucket = format!("created:{}", reply::text(hour)?);
            let mut range = redis::cmd("LRANGE");
            range.arg(shared.keys.index(partition, &bucket)).arg(0).arg(-1);
            for entry in reply::array(shared.send(partition, &range).await?)? {
                let entry = reply::some_bytes(entry)?;
                let Some((at, uuid)) = entry.split_at_checked(6) else {
                    return Err(EngineError::corruption(format!("{bucket} has a short entry")));
                };
                let at = crate::record::uint(at).cast_signed();
                let uuid = Value::BulkString(uuid.to_vec());
                self.created.entry(reply::execution_id(partition, uuid)?).or_default().push(at);
            }
        }
        Ok(())
    }

    async fn read_list(
        &mut self,
        shared: &Shared,
        home: &Home,
        list: &str,
        (code, namespace): (u8, &str),
        audited: &mut Audited,
    ) -> Result<(), EngineError> {
        for (member, at) in raw_members(shared, home, list).await? {
            match parse_member(home, &member) {
                Some((name, subject)) => {
                    let entry = (code, namespace.to_owned(), at, name);
                    self.lists.entry(subject).or_default().push(entry);
                }
                None => {
                    let detail = format!("{list} of {home} holds {member:?}");
                    audited.report("I10", None::<String>, detail);
                }
            }
        }
        Ok(())
    }

    async fn read_queue(
        &mut self,
        shared: &Shared,
        partition: u16,
        queue: &str,
        audited: &mut Audited,
    ) -> Result<(), EngineError> {
        let entries = members(shared, partition, &Keys::queue_index(queue)).await?;
        if let Some(front) = entries.iter().min_by_key(|(_, score)| *score)
            && let Some(detail) = misnamed(shared, partition, queue, front.1).await?
        {
            audited.report("I10", None::<String>, detail);
            self.unready.push(front.0);
        }
        for (id, score) in entries {
            self.queues.entry(id).or_default().push((queue.to_owned(), score));
        }
        Ok(())
    }
}

/// What is wrong with how claims find a queue whose front has this score.
async fn misnamed(
    shared: &Shared,
    partition: u16,
    queue: &str,
    best: i64,
) -> Result<Option<String>, EngineError> {
    let mut score = redis::cmd("ZSCORE");
    score.arg(shared.keys.index(partition, &Keys::ready_index(queue))).arg(split_queue(queue).1);
    let head = match shared.send(partition, &score).await? {
        Value::Nil => None,
        other => Some(reply::number(&other)?),
    };
    if head.is_none_or(|head| head > best) {
        let detail = format!("{queue} of {partition}: ready says {head:?}, it has {best:?}");
        return Ok(Some(detail));
    }
    let mut exists = redis::cmd("HEXISTS");
    exists.arg(shared.keys.index(partition, REQUIRED)).arg(queue);
    let lacks =
        requires_some(queue) && reply::number(&shared.send(partition, &exists).await?)? == 0;
    Ok(lacks.then(|| format!("{queue} of {partition}: what it requires is not said")))
}

/// `is_stopped`: it is a member of a flow that lets none be claimed; a claim that met it may have
/// taken it out of its queue.
async fn check(
    shared: &Shared,
    audited: &mut Audited,
    (entry, is_stopped): (&Entry, bool),
    parts: &BTreeSet<String>,
    indexes: &mut Indexes,
) -> Result<(), EngineError> {
    let execution = &entry.execution;
    let id = execution.id;
    let subject = Subject::from(id);
    let listed = Listed {
        queues: indexes.queues.remove(&id).unwrap_or_default(),
        lease: indexes.leases.remove(&id),
        timer: indexes.timers.remove(&subject),
        lists: indexes.lists.remove(&subject).unwrap_or_default(),
    };
    check_listed(audited, execution, is_stopped, listed);
    let created = indexes.created.get(&id);
    if !created.is_some_and(|times| times.contains(&execution.about.created_at.0)) {
        audited.report("I9", Some(id), "not in the list of submits");
    }
    audited.check_waits(execution);
    if parts.contains("payload") != entry.payload.is_none() {
        audited.report("I33", Some(id), "its payload stands in the wrong place");
    }
    let mut listed = 0;
    if parts.contains("attempts") {
        let mut length = redis::cmd("LLEN");
        length.arg(shared.keys.attempts(id));
        listed = reply::number(&shared.send(id.partition(), &length).await?)?;
    }
    let earlier = u32::try_from(listed).unwrap_or(u32::MAX) + u32::from(entry.unlisted.is_some());
    audited.check_attempts(execution, earlier, earlier.checked_sub(1));
    audited.check_counts(execution);
    Ok(())
}

/// Queue, lease, timer and lists are what the record says.
pub(crate) fn check_listed(
    audited: &mut Audited,
    execution: &Execution,
    is_stopped: bool,
    Listed { queues, lease, timer, lists }: Listed,
) {
    let id = execution.id;
    let place = execution.queue_place().map(|place| (queue_name(&place), place.score));
    let is_missing = queues.is_empty() && place.is_some();
    if queues != place.iter().cloned().collect::<Vec<_>>() && !(is_missing && is_stopped) {
        audited.report("I9", Some(id), format!("in queues {queues:?}, its state says {place:?}"));
    }
    let due = (execution.lease_due().map(|d| d.at.0), execution.other_due().map(|d| d.at.0));
    let timers = (lease, timer);
    if timers != due {
        audited.report("I9", Some(id), format!("lease and timer {timers:?}, due is {due:?}"));
    }
    audited.check_listings(execution, lists);
}

/// Output of all attempts, as the record and the list of attempts know it.
async fn check_streams(
    shared: &Shared,
    audited: &mut Audited,
    entry: &Entry,
    now: TimestampMs,
    parts: &BTreeSet<String>,
) -> Result<(), EngineError> {
    let execution = &entry.execution;
    let id = execution.id;
    let mut attempts: Vec<_> = entry.unlisted.iter().chain(&execution.attempt).cloned().collect();
    if parts.contains("attempts") {
        let mut all = redis::cmd("LRANGE");
        all.arg(shared.keys.attempts(id)).arg(0).arg(-1);
        for listed in reply::array(shared.send(id.partition(), &all).await?)? {
            attempts.push(crate::query::decode("attempt", &reply::some_bytes(listed)?)?);
        }
    }
    for attempt in attempts {
        let mut found = Vec::new();
        for mode in FrameMode::ALL {
            if parts.contains(&format!("frames:{}:{}", attempt.index, mode.code())) {
                found.extend(frames::stored(shared, id, attempt.index, mode).await?);
            }
        }
        audited.check_stream(execution, &attempt, &found, now);
    }
    Ok(())
}

/// Executions in an index of a partition with their scores.
async fn members(
    shared: &Shared,
    partition: u16,
    index: &str,
) -> Result<Vec<(ExecutionId, i64)>, EngineError> {
    let members = raw_members(shared, &Home::partition(partition), index).await?.into_iter();
    let id = |member: Bytes| reply::execution_id(partition, Value::BulkString(member.to_vec()));
    members.map(|(member, score)| Ok((id(member)?, score))).collect()
}

/// Members of an index of a home with their scores.
async fn raw_members(
    shared: &Shared,
    home: &Home,
    index: &str,
) -> Result<Vec<(Bytes, i64)>, EngineError> {
    let mut range = redis::cmd("ZRANGE");
    range.arg(shared.keys.index_of(home, index)).arg(0).arg(-1).arg("WITHSCORES");
    let mut items = reply::pairs(shared.send_home(home, &range).await?)?.into_iter();
    let mut members = Vec::new();
    while let Some(member) = items.next() {
        let score = reply::number(&reply::next(&mut items)?)?;
        members.push((reply::some_bytes(member)?, score));
    }
    Ok(members)
}

/// Every execution of which any key exists, with the names of its keys.
fn executions(keyspace: &Keyspace) -> BTreeMap<ExecutionId, BTreeSet<String>> {
    by_owner(keyspace.family("exec"), |key| {
        let (home, rest) = parse_key(key, "exec:")?;
        let (uuid, part) = rest.split_once(':')?;
        Some((ExecutionId::new(home.flow_partition()?, Uuid::try_parse(uuid).ok()?), part))
    })
}

/// Every document of which any key exists, with the names of its keys.
fn documents(keyspace: &Keyspace) -> BTreeMap<DocumentId, BTreeSet<String>> {
    let keys = DocumentKind::ALL.iter().flat_map(|kind| keyspace.family(kind.as_str()));
    by_owner(keys, |key| {
        let (name, part) = key.rsplit_once(':')?;
        Some((name.parse().ok()?, part))
    })
}

/// The parts that there are of each owner of keys.
fn by_owner<'a, O: Ord>(
    keys: impl Iterator<Item = &'a str>,
    parse: impl Fn(&'a str) -> Option<(O, &'a str)>,
) -> BTreeMap<O, BTreeSet<String>> {
    let mut found: BTreeMap<O, BTreeSet<String>> = BTreeMap::new();
    for (owner, part) in keys.filter_map(parse) {
        found.entry(owner).or_default().insert(part.to_owned());
    }
    found
}
