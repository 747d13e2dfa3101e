//! Compares every record with the indexes that must, and must not, list it. Meant for a store at
//! rest: it reads key by key, and what changes meanwhile may look wrong.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use ff_core::error::EngineError;
use ff_core::id::ExecutionId;
use ff_core::read::Audited;
use redis::Value;
use uuid::Uuid;

use crate::commit::{ITEMS_MOST, OLD};
use crate::keys::queue_name;
use crate::measure::scan;
use crate::record::Entry;
use crate::store::Shared;
use crate::{read, reply};

pub(crate) async fn audit(shared: &Arc<Shared>) -> Result<Audited, EngineError> {
    let mut audited = Audited::default();
    let executions = executions(shared).await?;
    let mut indexes = Indexes::default();
    for partition in 0..shared.settings.partitions.flow {
        indexes.read_timers(shared, partition).await?;
        indexes.read_created(shared, partition).await?;
    }
    indexes.read_queues(shared, &mut audited).await?;
    let mut by_partition: BTreeMap<u16, Vec<ExecutionId>> = BTreeMap::new();
    for (id, parts) in &executions {
        if parts.contains("core") {
            by_partition.entry(id.partition()).or_default().push(*id);
        } else {
            audited.report("I33", Some(*id), format!("left behind: {parts:?}"));
        }
    }
    for (partition, ids) in by_partition {
        for part in ids.chunks(ITEMS_MOST) {
            let entries = read::executions(shared, partition, part).await?.1;
            for entry in entries.into_iter().flatten() {
                audited.checked += 1;
                let parts = &executions[&entry.execution.id];
                check(shared, &mut audited, &entry, parts, &mut indexes).await?;
            }
        }
    }
    let listed = indexes.queues.keys().chain(indexes.leases.keys()).chain(indexes.timers.keys());
    for id in listed.collect::<BTreeSet<_>>() {
        audited.report("I10", Some(*id), "an index names what does not exist");
    }
    Ok(audited)
}

/// What indexes say of each execution; an entry is removed when its record has been looked at.
#[derive(Default)]
struct Indexes {
    queues: HashMap<ExecutionId, Vec<(String, i64)>>,
    leases: HashMap<ExecutionId, i64>,
    timers: HashMap<ExecutionId, i64>,
    created: HashMap<ExecutionId, Vec<i64>>,
}

impl Indexes {
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

/// Members of an index of a partition with their scores.
async fn members(
    shared: &Shared,
    partition: u16,
    index: &str,
) -> Result<Vec<(ExecutionId, i64)>, EngineError> {
    let mut range = redis::cmd("ZRANGE");
    range.arg(shared.keys.index(partition, index)).arg(0).arg(-1).arg("WITHSCORES");
    let mut items = reply::pairs(shared.send(partition, &range).await?)?.into_iter();
    let mut members = Vec::new();
    while let Some(member) = items.next() {
        let score = reply::number(&reply::next(&mut items)?)?;
        members.push((reply::execution_id(partition, member)?, score));
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
