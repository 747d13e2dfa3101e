//! Reads what a step needs: one call for one partition.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use ff_core::error::EngineError;
use ff_core::id::ExecutionId;
use ff_core::machine::{DedupKey, DedupRecord, Need, Overlay, RowKey};
use ff_core::time::TimestampMs;

use crate::commit::row_field;
use crate::record::{Entry, push_uint, uint};
use crate::store::Shared;
use crate::{keyring, reply};

/// What is known of the part of a partition that a command touches.
#[derive(Debug, Default, Clone)]
pub(crate) struct Known {
    pub(crate) entries: HashMap<ExecutionId, Option<Arc<Entry>>>,
    payloads: HashMap<ExecutionId, Option<Bytes>>,
    /// As stored: a commit compares the bytes.
    pub(crate) dedups: HashMap<DedupKey, Option<Bytes>>,
    rows: HashMap<(ExecutionId, RowKey), Option<Bytes>>,
    /// The store's time when all of it was read; none: it was assumed or remembered.
    pub(crate) read_at: Option<TimestampMs>,
}

impl Known {
    pub(crate) fn entry(&self, id: ExecutionId) -> Option<&Arc<Entry>> {
        self.entries.get(&id).and_then(Option::as_ref)
    }

    /// Hands it all to the machine.
    pub(crate) fn supply(&self, overlay: &mut Overlay) -> Result<(), EngineError> {
        for (id, entry) in &self.entries {
            let execution = entry.as_ref().map(|entry| Arc::clone(&entry.execution));
            overlay.supply_execution(*id, execution);
            match entry {
                None => overlay.supply_payload(*id, None),
                Some(entry) => {
                    if let Some(payload) = &entry.payload {
                        overlay.supply_payload(*id, Some(payload.clone()));
                    }
                }
            }
        }
        for (id, payload) in &self.payloads {
            overlay.supply_payload(*id, payload.clone());
        }
        for ((id, key), bytes) in &self.rows {
            overlay.supply_row(*id, key.clone(), bytes.clone());
        }
        for (key, stored) in &self.dedups {
            let record = stored.as_ref().map(|bytes| decode_dedup(key, bytes)).transpose()?;
            overlay.supply_dedup(key.clone(), record);
        }
        Ok(())
    }
}

/// Reads all that is known so far again, with what is needed, so that it is of one moment.
pub(crate) async fn read(
    shared: &Shared,
    partition: u16,
    before: &Known,
    needs: &[Need],
) -> Result<Known, EngineError> {
    let mut executions: Vec<_> = before.entries.keys().copied().collect();
    let mut payloads: Vec<_> = before.payloads.keys().copied().collect();
    let mut dedups: Vec<_> = before.dedups.keys().cloned().collect();
    let mut rows: Vec<_> = before.rows.keys().cloned().collect();
    for need in needs {
        match need {
            Need::Execution(id) if !executions.contains(id) => executions.push(*id),
            Need::Payload(id) if !payloads.contains(id) => payloads.push(*id),
            Need::Dedup(key) if !dedups.contains(key) => dedups.push(key.clone()),
            Need::Row(id, key) => rows.push((*id, key.clone())),
            Need::Keyring => {
                keyring::refresh(shared).await?;
            }
            _ => {}
        }
    }
    let keys = &shared.keys;
    let names = executions.iter().map(|id| keys.core(*id));
    let names = names.chain(payloads.iter().map(|id| keys.payload(*id)));
    let names: Vec<_> = names.chain(dedups.iter().map(|key| keys.dedup(key))).collect();
    let (now, mut values) = read_all(shared, partition, &names, &rows).await?;
    let mut known = Known { read_at: Some(now), ..Known::default() };
    for id in executions {
        let stored = values.next().flatten();
        let entry = stored.map(|record| Entry::decode(id, &record).map(Arc::new)).transpose()?;
        known.entries.insert(id, entry);
    }
    for id in payloads {
        known.payloads.insert(id, values.next().flatten());
    }
    for key in dedups {
        known.dedups.insert(key, values.next().flatten());
    }
    for name in rows {
        known.rows.insert(name, values.next().flatten());
    }
    Ok(known)
}

/// A row of an execution.
type RowName = (ExecutionId, RowKey);

/// Rows of one execution, in the order of their names.
pub(crate) async fn rows(
    shared: &Shared,
    id: ExecutionId,
    names: &[RowName],
) -> Result<std::vec::IntoIter<Option<Bytes>>, EngineError> {
    Ok(read_all(shared, id.partition(), &[], names).await?.1)
}

/// The values of some keys of a partition, and the time.
pub(crate) async fn read_keys(
    shared: &Shared,
    partition: u16,
    names: &[String],
) -> Result<(TimestampMs, std::vec::IntoIter<Option<Bytes>>), EngineError> {
    read_all(shared, partition, names, &[]).await
}

/// The values of some keys of a partition, then of some rows, and the time: all of one moment.
pub(crate) async fn read_all(
    shared: &Shared,
    partition: u16,
    names: &[String],
    rows: &[RowName],
) -> Result<(TimestampMs, std::vec::IntoIter<Option<Bytes>>), EngineError> {
    let mut call = shared.read_function("ff_read");
    let mut hashes: Vec<ExecutionId> = rows.iter().map(|(id, _)| *id).collect();
    hashes.sort_unstable();
    hashes.dedup();
    // A call needs a key to be sent to the right node.
    if names.is_empty() && hashes.is_empty() {
        call.arg(1).arg(shared.keys.core(ExecutionId::new(partition, uuid::Uuid::nil())));
    } else {
        call.arg(names.len() + hashes.len()).arg(names);
        hashes.iter().for_each(|id| {
            call.arg(shared.keys.beside(*id));
        });
    }
    shared.begin(&mut call).arg(partition).arg(names.len());
    for (id, key) in rows {
        let place = hashes.binary_search(id).unwrap_or_default();
        call.arg(names.len() + place + 1).arg(row_field(key));
    }
    let mut items = reply::array(shared.send(partition, &call).await?)?.into_iter();
    let now = reply::instant(&reply::next(&mut items)?)?;
    shared.clock.note(partition, now);
    let values: Vec<_> = items.map(reply::bytes).collect::<Result<_, _>>()?;
    if values.len() != names.len() + rows.len() {
        return Err(EngineError::bug(format!("ff_read answered {} values", values.len())));
    }
    Ok((now, values.into_iter()))
}

/// Reads executions of one partition.
pub(crate) async fn executions(
    shared: &Shared,
    partition: u16,
    ids: &[ExecutionId],
) -> Result<(TimestampMs, Vec<Option<Entry>>), EngineError> {
    let names: Vec<_> = ids.iter().map(|id| shared.keys.core(*id)).collect();
    let (now, values) = read_keys(shared, partition, &names).await?;
    let entries = ids
        .iter()
        .zip(values)
        .map(|(id, stored)| stored.map(|record| Entry::decode(*id, &record)).transpose());
    Ok((now, entries.collect::<Result<_, _>>()?))
}

/// The record of a key: its last instant in 6 bytes, uuid 16, fingerprint 32.
pub(crate) fn encode_dedup(record: &DedupRecord) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(54);
    push_uint(&mut bytes, record.expires_at.0.unsigned_abs(), 6);
    bytes.extend_from_slice(record.execution_id.uuid().as_bytes());
    bytes.extend_from_slice(&record.fingerprint);
    bytes
}

fn decode_dedup(key: &DedupKey, bytes: &[u8]) -> Result<DedupRecord, EngineError> {
    let parse = || {
        let (expires, rest) = bytes.split_at_checked(6)?;
        let (uuid, fingerprint) = rest.split_at_checked(16)?;
        Some(DedupRecord {
            execution_id: ExecutionId::new(key.partition, uuid::Uuid::from_slice(uuid).ok()?),
            fingerprint: fingerprint.try_into().ok()?,
            expires_at: TimestampMs(uint(expires).cast_signed()),
        })
    };
    parse().ok_or_else(|| EngineError::corruption(format!("the record of {key:?} is broken")))
}
