//! Compares every record with the indexes that must, and must not, list it. Meant for a store at
//! rest: it reads key by key, and what changes meanwhile may look wrong.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use ff_core::error::EngineError;
use ff_core::id::ExecutionId;
use ff_core::read::Audited;
use ff_core::state::FrameMode;
use redis::Value;
use uuid::Uuid;

use crate::commit::{ITEMS_MOST, OLD};
use crate::follow::check_logs;
use crate::keys::queue_name;
use crate::listing::{LISTS, name_of, parse_member, parse_name};
use crate::measure::scan;
use crate::record::Entry;
use crate::store::Shared;
use crate::{frames, read, reply};

/// What an audit found, and what a repair needs to know.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) audited: Audited,
    /// Executions that are listed wrongly, or of which something is left, and where they are listed.
    pub(crate) mislisted: BTreeMap<ExecutionId, Places>,
}

/// What names an execution.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    pub(crate) queues: Vec<String>,
    /// Lists, and the name of the entry.
    pub(crate) lists: Vec<(String, Uuid)>,
}

pub(crate) async fn audit(shared: &Arc<Shared>) -> Result<Findings, EngineError> {
    let mut findings = Findings::default();
    let Findings { audited, mislisted } = &mut findings;
    let executions = executions(shared).await?;
    let mut indexes = Indexes::default();
    for partition in 0..shared.settings.partitions.flow {
        indexes.read_timers(shared, partition).await?;
        indexes.read_created(shared, partition).await?;
    }
    indexes.read_queues(shared, audited).await?;
    indexes.read_lists(shared, audited).await?;
    let log = check_logs(shared, audited).await?;
    let unready = indexes.unready.iter().map(|id| (*id, indexes.places_of(*id)));
    let unready: Vec<_> = unready.collect();
    let mut by_partition: BTreeMap<u16, Vec<ExecutionId>> = BTreeMap::new();
    for (id, parts) in &executions {
        if parts.contains("core") {
            by_partition.entry(id.partition()).or_default().push(*id);
        } else {
            audited.report("I33", Some(*id), format!("left behind: {parts:?}"));
            mislisted.insert(*id, indexes.places_of(*id));
        }
    }
    for (partition, ids) in by_partition {
        for part in ids.chunks(ITEMS_MOST) {
            let entries = read::executions(shared, partition, part).await?.1;
            for entry in entries.into_iter().flatten() {
                audited.checked += 1;
                let id = entry.execution.id;
                let places = indexes.places_of(id);
                log.check(audited, &entry.execution);
                let before = audited.violations.len();
                check(shared, audited, &entry, &executions[&id], &mut indexes).await?;
                if audited.violations.len() > before {
                    mislisted.insert(id, places);
                }
            }
        }
    }
    mislisted.extend(unready);
    let timed = indexes.leases.keys().chain(indexes.timers.keys());
    let listed = indexes.queues.keys().chain(timed).chain(indexes.lists.keys());
    for id in listed.collect::<BTreeSet<_>>() {
        audited.report("I10", Some(*id), "an index names what does not exist");
        mislisted.insert(*id, indexes.places_of(*id));
    }
    Ok(findings)
}

/// What indexes say of each execution; an entry is removed when its record has been looked at.
#[derive(Default)]
struct Indexes {
    queues: HashMap<ExecutionId, Vec<(String, i64)>>,
    leases: HashMap<ExecutionId, i64>,
    timers: HashMap<ExecutionId, i64>,
    created: HashMap<ExecutionId, Vec<i64>>,
    /// The best entry of each queue that is not known to have one.
    unready: Vec<ExecutionId>,
    /// Code of the list, namespace, instant and name.
    lists: HashMap<ExecutionId, Vec<(u8, String, i64, Uuid)>>,
}

impl Indexes {
    fn places_of(&self, id: ExecutionId) -> Places {
        let queues = self.queues.get(&id).into_iter().flatten();
        let lists = self.lists.get(&id).into_iter().flatten();
        Places {
            queues: queues.map(|(name, _)| name.clone()).collect(),
            lists: lists.map(|(code, ns, _, name)| (name_of(*code, ns), *name)).collect(),
        }
    }

    async fn read_timers(&mut self, shared: &Shared, partition: u16) -> Result<(), EngineError> {
        for (id, at) in members(shared, partition, "leases").await? {
            self.leases.insert(id, at);
        }
        for (id, at) in members(shared, partition, "timers").await? {
            self.timers.insert(id, at);
        }
        Ok(())
    }

    async fn read_created(&mut self, shared: &Shared, partition: u16) -> Result<(), EngineError> {
        for (id, at) in members(shared, partition, OLD).await? {
            self.created.entry(id).or_default().push(at);
        }
        let mut hours = redis::cmd("ZRANGE");
        hours.arg(shared.keys.index(partition, "created")).arg(0).arg(-1);
        for hour in reply::array(shared.send(partition, &hours).await?)? {
            let bucket = format!("created:{}", reply::text(hour)?);
            let mut range = redis::cmd("LRANGE");
            range.arg(shared.keys.index(partition, &bucket)).arg(0).arg(-1);
            for entry in reply::array(shared.send(partition, &range).await?)? {
                let entry = reply::some_bytes(entry)?;
                let at = crate::record::uint(&entry[..6]).cast_signed();
                let uuid = Value::BulkString(entry[6..].to_vec());
                self.created.entry(reply::execution_id(partition, uuid)?).or_default().push(at);
            }
        }
        Ok(())
    }

    async fn read_lists(
        &mut self,
        shared: &Arc<Shared>,
        audited: &mut Audited,
    ) -> Result<(), EngineError> {
        let family = format!("{}:idx:", shared.keys.prefix);
        for key in scan(shared, &format!("{family}{{fp:*}}:{LISTS}*")).await? {
            let Some((partition, name)) = parse_key(&key, &family) else { continue };
            let Some((code, namespace)) = parse_name(name) else { continue };
            for (member, at) in raw_members(shared, partition, name).await? {
                match parse_member(partition, &member) {
                    Some((name, id)) => {
                        let entry = (code, namespace.to_owned(), at, name);
                        self.lists.entry(id).or_default().push(entry);
                    }
                    None => audited.report("I10", None, format!("{key} holds {member:?}")),
                }
            }
        }
        Ok(())
    }

    async fn read_queues(
        &mut self,
        shared: &Arc<Shared>,
        audited: &mut Audited,
    ) -> Result<(), EngineError> {
        for key in scan(shared, &format!("{}:idx:{{fp:*:eligible", shared.keys.prefix)).await? {
            let Some((partition, rest)) = parse_key(&key, &format!("{}:idx:", shared.keys.prefix))
            else {
                continue;
            };
            let Some(name) =
                rest.strip_prefix("lane:").and_then(|rest| rest.strip_suffix(":eligible"))
            else {
                continue;
            };
            let entries = members(shared, partition, rest).await?;
            let mut score = redis::cmd("ZSCORE");
            score.arg(shared.keys.index(partition, "ready")).arg(name);
            let head = match shared.send(partition, &score).await? {
                Value::Nil => None,
                other => Some(reply::number(&other)?),
            };
            let best = entries.iter().map(|(_, score)| *score).min();
            if best.is_some_and(|best| head.is_none_or(|head| head > best)) {
                let detail = format!("{name} of {partition}: ready says {head:?}, it has {best:?}");
                audited.report("I10", None, detail);
                self.unready
                    .extend(entries.iter().min_by_key(|entry| entry.1).map(|entry| entry.0));
            }
            for (id, score) in entries {
                self.queues.entry(id).or_default().push((name.to_owned(), score));
            }
        }
        Ok(())
    }
}

async fn check(
    shared: &Shared,
    audited: &mut Audited,
    entry: &Entry,
    parts: &BTreeSet<String>,
    indexes: &mut Indexes,
) -> Result<(), EngineError> {
    let execution = &entry.execution;
    let id = execution.id;
    let place = execution.queue_place().map(|place| (queue_name(&place), place.score));
    let found = indexes.queues.remove(&id).unwrap_or_default();
    if found != place.iter().cloned().collect::<Vec<_>>() {
        audited.report("I9", Some(id), format!("in queues {found:?}, its state says {place:?}"));
    }
    let due = (execution.lease_due().map(|d| d.at.0), execution.other_due().map(|d| d.at.0));
    let timers = (indexes.leases.remove(&id), indexes.timers.remove(&id));
    if timers != due {
        audited.report("I9", Some(id), format!("lease and timer {timers:?}, due is {due:?}"));
    }
    let created = indexes.created.get(&id);
    if !created.is_some_and(|times| times.contains(&execution.about.created_at.0)) {
        audited.report("I9", Some(id), "not in the list of submits");
    }
    audited.check_listings(execution, indexes.lists.remove(&id).unwrap_or_default());
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
    check_streams(shared, audited, entry, parts).await
}

/// Output of all attempts, as the record and the list of attempts know it.
async fn check_streams(
    shared: &Shared,
    audited: &mut Audited,
    entry: &Entry,
    parts: &BTreeSet<String>,
) -> Result<(), EngineError> {
    let execution = &entry.execution;
    let id = execution.id;
    let now = read::read_keys(shared, id.partition(), &[]).await?.0;
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
    let members = raw_members(shared, partition, index).await?.into_iter();
    let id = |member: Bytes| reply::execution_id(partition, Value::BulkString(member.to_vec()));
    members.map(|(member, score)| Ok((id(member)?, score))).collect()
}

/// Members of an index of a partition with their scores.
async fn raw_members(
    shared: &Shared,
    partition: u16,
    index: &str,
) -> Result<Vec<(Bytes, i64)>, EngineError> {
    let mut range = redis::cmd("ZRANGE");
    range.arg(shared.keys.index(partition, index)).arg(0).arg(-1).arg("WITHSCORES");
    let mut items = reply::pairs(shared.send(partition, &range).await?)?.into_iter();
    let mut members = Vec::new();
    while let Some(member) = items.next() {
        let score = reply::number(&reply::next(&mut items)?)?;
        members.push((reply::some_bytes(member)?, score));
    }
    Ok(members)
}

/// Every execution of which any key exists, with the names of its keys.
async fn executions(
    shared: &Arc<Shared>,
) -> Result<BTreeMap<ExecutionId, BTreeSet<String>>, EngineError> {
    let mut found: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    let family = format!("{}:exec:", shared.keys.prefix);
    for key in scan(shared, &format!("{family}{{fp:*")).await? {
        let parsed = parse_key(&key, &family).and_then(|(partition, rest)| {
            let (uuid, part) = rest.split_once(':')?;
            Some((ExecutionId::new(partition, Uuid::try_parse(uuid).ok()?), part))
        });
        if let Some((id, part)) = parsed {
            found.entry(id).or_default().insert(part.to_owned());
        }
    }
    Ok(found)
}

/// Partition and rest of a key of a family.
fn parse_key<'a>(key: &'a str, family: &str) -> Option<(u16, &'a str)> {
    let (partition, rest) = key.strip_prefix(family)?.strip_prefix("{fp:")?.split_once("}:")?;
    Some((partition.parse().ok()?, rest))
}
