//! What a benchmark wants to know of a store and its servers, and how it takes its keys away again.

use std::collections::BTreeMap;
use std::time::Duration;

use ff_core::error::EngineError;
use redis::{Cmd, FromRedisValue, InfoDict, Value};

use crate::client::{Primary, slot_of};
use crate::floor::delete_library;
use crate::reply;
use crate::store::{Shared, ValkeyStore, join_all};

/// Keys that one step of a walk looks at.
const SCAN_COUNT: usize = 1000;
/// Keys that one command removes.
const UNLINK_COUNT: usize = 200;
/// Where a scan begins, and what it says at its end.
const SCAN_EDGE: &str = "0";

/// Commands that only clients send. What functions do counts among the others.
const OF_CLIENTS: [&str; 9] =
    ["fcall", "fcall_ro", "brpop", "ltrim", "xread", "wait", "scan", "zrandmember", "pexpire"];
/// In a cluster no function pushes wake tokens, clients do.
const OF_CLIENTS_IN_A_CLUSTER: [&str; 1] = ["lpush"];

impl ValkeyStore {
    /// Commands that work and waiting for it have sent to the servers so far. The servers count,
    /// so what other processes sent is among them.
    pub async fn commands_sent(&self) -> Result<u64, EngineError> {
        let mut names = OF_CLIENTS.to_vec();
        if self.shared.client.is_cluster() {
            names.extend(OF_CLIENTS_IN_A_CLUSTER);
        }
        let mut sent = 0;
        for info in infos(&self.shared, "commandstats").await? {
            let lines = names.iter().filter_map(|name| info.get(&format!("cmdstat_{name}")));
            sent += lines.filter_map(|line: String| calls(&line)).sum::<u64>();
        }
        Ok(sent)
    }

    /// Calls of functions that the servers have run so far, whoever called, by how long they took: the
    /// least power of two in microseconds that a call did not exceed, and how many.
    pub async fn call_times(&self) -> Result<BTreeMap<u64, u64>, EngineError> {
        let mut command = redis::cmd("LATENCY");
        command.arg("HISTOGRAM").arg("fcall").arg("fcall_ro");
        let mut times = BTreeMap::new();
        for primary in self.shared.client.primaries() {
            let functions = reply::flat(self.shared.client.send_to(&primary, &command).await?)?;
            for histogram in functions.into_iter().skip(1).step_by(2) {
                add_times(histogram, &mut times)?;
            }
        }
        Ok(times)
    }

    /// Memory that the servers use, whoever uses it.
    pub async fn size_bytes(&self) -> Result<u64, EngineError> {
        let infos = infos(&self.shared, "memory").await?;
        infos.iter().map(|info| field::<u64>(info, "used_memory")).sum()
    }

    /// Processor time that the servers have used, in user and kernel.
    pub async fn server_cpu(&self) -> Result<Duration, EngineError> {
        let mut seconds = 0.0;
        for info in infos(&self.shared, "cpu").await? {
            seconds += field::<f64>(&info, "used_cpu_user")? + field::<f64>(&info, "used_cpu_sys")?;
        }
        Ok(Duration::from_secs_f64(seconds))
    }

    /// Removes every key of this store, and so all that it holds; gives how many there were. It
    /// takes steps of a bounded size, so others are served meanwhile.
    pub async fn remove_everything(&self) -> Result<u64, EngineError> {
        // A floor that was broken off has left it.
        delete_library(&self.shared).await?;
        remove(&self.shared, &format!("{}:*", self.shared.keys.prefix)).await
    }
}

/// Removes all keys that match, on every primary.
pub(crate) async fn remove(shared: &Shared, pattern: &str) -> Result<u64, EngineError> {
    let mut removed = 0;
    let mut pages = Pages::new(shared, pattern);
    while let Some(page) = pages.next().await? {
        for part in page.chunks(UNLINK_COUNT) {
            removed += unlink(shared, part).await?;
        }
    }
    Ok(removed)
}

/// Where a walk over keys goes on: how many servers are left, and the cursor on the last of them.
pub(crate) type Place = (usize, String);

/// The keys that match, some at a time. Those that come or go meanwhile may be missing.
pub(crate) struct Pages<'a> {
    shared: &'a Shared,
    pattern: &'a str,
    count: usize,
    /// The last is being looked through.
    primaries: Vec<Primary>,
    cursor: String,
}

impl<'a> Pages<'a> {
    pub(crate) fn new(shared: &'a Shared, pattern: &'a str) -> Self {
        Self::resume(shared, pattern, SCAN_COUNT, None)
    }

    /// Goes on at a place. Should there be other servers than before, it goes on somewhere.
    pub(crate) fn resume(
        shared: &'a Shared,
        pattern: &'a str,
        count: usize,
        place: Option<Place>,
    ) -> Self {
        let mut primaries = shared.client.primaries();
        let (left, cursor) = place.unwrap_or((primaries.len(), SCAN_EDGE.to_owned()));
        primaries.truncate(left);
        Self { shared, pattern, count, primaries, cursor }
    }

    /// None at the end.
    pub(crate) fn place(&self) -> Option<Place> {
        let left = self.primaries.len();
        (left > 0).then(|| (left, self.cursor.clone()))
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Value>>, EngineError> {
        let Some(primary) = self.primaries.last() else { return Ok(None) };
        let mut step = redis::cmd("SCAN");
        step.arg(&self.cursor).arg("MATCH").arg(self.pattern).arg("COUNT").arg(self.count);
        let reply = reply::array(self.shared.client.send_to(primary, &step).await?)?;
        let mut reply = reply.into_iter();
        self.cursor = reply::text(reply::next(&mut reply)?)?;
        if self.cursor == SCAN_EDGE {
            self.primaries.pop();
        }
        Ok(Some(reply::array(reply::next(&mut reply)?)?))
    }
}

async fn unlink(shared: &Shared, keys: &[Value]) -> Result<u64, EngineError> {
    let mut of_slots: BTreeMap<u16, Cmd> = BTreeMap::new();
    for key in keys {
        let key = reply::some_bytes(key.clone())?;
        // One command may not span slots in a cluster; elsewhere one is enough.
        let slot = if shared.client.is_cluster() { slot_of(&key) } else { 0 };
        of_slots.entry(slot).or_insert_with(|| redis::cmd("UNLINK")).arg(&key[..]);
    }
    let sending = of_slots.iter().map(|(slot, unlink)| shared.client.send(*slot, unlink));
    let mut removed = 0;
    for count in join_all(sending).await {
        removed += reply::number(&count?)?.unsigned_abs();
    }
    Ok(removed)
}

/// A section of every primary's `INFO`.
async fn infos(shared: &Shared, section: &str) -> Result<Vec<InfoDict>, EngineError> {
    let mut command = redis::cmd("INFO");
    command.arg(section);
    let mut infos = Vec::new();
    for primary in shared.client.primaries() {
        let reply = shared.client.send_to(&primary, &command).await?;
        let info: Result<InfoDict, _> = redis::from_redis_value(reply);
        infos.push(info.map_err(|error| EngineError::bug(format!("INFO {section}: {error}")))?);
    }
    Ok(infos)
}

fn field<T: FromRedisValue>(info: &InfoDict, name: &str) -> Result<T, EngineError> {
    info.get(name).ok_or_else(|| EngineError::unavailable(format!("INFO tells no {name}")))
}

/// Adds what `LATENCY HISTOGRAM` tells of one command: its times are in turn with how many calls took
/// at most as long.
fn add_times(histogram: Value, times: &mut BTreeMap<u64, u64>) -> Result<(), EngineError> {
    let mut fields = reply::flat(histogram)?.into_iter();
    while let Some(name) = fields.next() {
        let value = reply::next(&mut fields)?;
        if reply::text(name)? != "histogram_usec" {
            continue;
        }
        let (mut buckets, mut before) = (reply::flat(value)?.into_iter(), 0);
        while let Some(limit) = buckets.next() {
            let limit = reply::number(&limit)?.unsigned_abs();
            let up_to = reply::number(&reply::next(&mut buckets)?)?.unsigned_abs();
            *times.entry(limit).or_default() += up_to.saturating_sub(before);
            before = up_to;
        }
    }
    Ok(())
}

/// The count in `calls=7,usec=…`.
fn calls(line: &str) -> Option<u64> {
    line.split(',').find_map(|part| part.strip_prefix("calls="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_command_are_added() {
        let bulk = |text: &str| Value::BulkString(text.into());
        let buckets = [64, 90, 128, 95, 2048, 96].map(Value::Int).to_vec();
        let fields = vec![bulk("calls"), Value::Int(96), bulk("histogram_usec")];
        let histogram = Value::Array([fields, vec![Value::Array(buckets)]].concat());
        let mut times = BTreeMap::from([(64, 10)]);
        add_times(histogram, &mut times).unwrap();
        assert_eq!(times, BTreeMap::from([(64, 100), (128, 5), (2048, 1)]));
    }

    #[test]
    fn calls_are_found_in_a_line() {
        assert_eq!(calls("calls=7,usec=16,usec_per_call=2.29"), Some(7));
        assert_eq!(calls("usec=16"), None);
    }
}
