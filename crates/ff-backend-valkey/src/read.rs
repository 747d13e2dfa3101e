//! Reads what a step needs: one call for one home.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use ff_core::content::Content;
use ff_core::error::EngineError;
use ff_core::id::{DocumentId, DocumentKind, ExecutionId, Home, Subject};
use ff_core::machine::{DedupKey, DedupRecord, Need, Overlay, RowKey};
use ff_core::state::{Document, MemberCounts};
use ff_core::time::TimestampMs;
use redis::Value;

use crate::item::row_field;
use crate::near::is_abroad;
use crate::record::{Entry, push_uint, uint};
use crate::store::{Shared, join_all};
use crate::{document, keyring, query, reply};

/// Facts that are read with one call where they need not be of one moment.
pub(crate) const PORTION: usize = 128;

/// What is known of the part of a home that commands touch.
#[derive(Debug, Default, Clone)]
pub(crate) struct Known {
    pub(crate) entries: HashMap<ExecutionId, Option<Arc<Entry>>>,
    pub(crate) documents: HashMap<DocumentId, Option<Arc<Document>>>,
    payloads: HashMap<ExecutionId, Option<Bytes>>,
    results: HashMap<ExecutionId, Option<Content>>,
    /// As stored: a commit compares the bytes.
    pub(crate) dedups: HashMap<DedupKey, Option<Bytes>>,
    rows: HashMap<RowName, Option<Bytes>>,
    /// Rows that are only thought to be absent: a commit looks.
    assumed: HashSet<RowName>,
    /// Documents of other homes. They are taken as they were when they were read: a commit cannot
    /// compare them.
    abroad: HashMap<DocumentId, Option<Arc<Document>>>,
    /// The store's time when all of it was read; none: it was assumed or remembered.
    pub(crate) read_at: Option<TimestampMs>,
}

/// A row of an execution or document.
pub(crate) type RowName = (Subject, RowKey);

impl Known {
    pub(crate) fn entry(&self, id: ExecutionId) -> Option<&Arc<Entry>> {
        self.entries.get(&id).and_then(Option::as_ref)
    }

    pub(crate) fn document(&self, id: &DocumentId) -> Option<&Arc<Document>> {
        self.documents.get(id).and_then(Option::as_ref)
    }

    /// Adds a fact of a home that this process remembers; false when it does not.
    pub(crate) fn recall(&mut self, shared: &Shared, home: &Home, need: &Need) -> bool {
        match need {
            abroad if is_abroad(home, abroad).is_some() => false,
            Need::Execution(id) => {
                let entry = shared.entries.get(*id);
                let found = entry.is_some() || shared.entries.take_absent(*id);
                if found {
                    self.entries.insert(*id, entry);
                }
                found
            }
            Need::Document(id) => {
                let document = shared.documents.get(id);
                let found = document.is_some();
                if found {
                    self.documents.insert(id.clone(), document);
                }
                found
            }
            Need::Row(of, key) => {
                let (name, row) = ((of.clone(), key.clone()), self.remembered(shared, of, key));
                match row {
                    Some(row) => drop(self.rows.insert(name, row)),
                    None if key.family.is_mostly_new() => self.assume(name),
                    None => return false,
                }
                true
            }
            _ => false,
        }
    }

    /// A row as it stood beside the record that is known, if it is remembered whether there was one.
    fn remembered(&self, shared: &Shared, of: &Subject, key: &RowKey) -> Option<Option<Bytes>> {
        match of {
            Subject::Execution(id) => {
                let revision = self.entry(*id)?.execution.revision;
                let mut rows = shared.entries.beside(*id, revision).rows.into_iter();
                rows.find(|(other, _)| other == key).map(|(_, bytes)| Some(bytes))
            }
            Subject::Document(id) => shared.documents.row(self.document(id)?, key),
        }
    }

    /// A row is taken for absent.
    pub(crate) fn assume(&mut self, name: RowName) {
        self.assumed.insert(name.clone());
        self.rows.insert(name, None);
    }

    /// Rows beside a record that are taken for absent.
    pub(crate) fn assumed_of(&self, of: &Subject) -> impl Iterator<Item = &RowKey> {
        self.assumed.iter().filter(move |(subject, _)| subject == of).map(|(_, key)| key)
    }

    /// Rows beside a record.
    pub(crate) fn rows_of(&self, of: &Subject) -> impl Iterator<Item = (&RowKey, &Option<Bytes>)> {
        let rows = self.rows.iter().filter(move |((subject, _), _)| subject == of);
        rows.map(|((_, key), bytes)| (key, bytes))
    }

    /// Adds what another command knows or assumes. A commit sees by a record that what stands beside it
    /// has not changed: beside one that both know, but not as of the same moment, nothing is known
    /// any more.
    pub(crate) fn extend(&mut self, mut other: Self) {
        for subject in self.differing(&other) {
            self.forget_beside(&subject);
            other.forget_beside(&subject);
        }
        self.entries.extend(other.entries);
        self.documents.extend(other.documents);
        self.payloads.extend(other.payloads);
        self.results.extend(other.results);
        self.dedups.extend(other.dedups);
        self.rows.extend(other.rows);
        self.assumed.extend(other.assumed);
        self.abroad.extend(other.abroad);
    }

    /// Records of which this and the other know different revisions.
    fn differing(&self, other: &Self) -> Vec<Subject> {
        let revision = |entry: &Option<Arc<Entry>>| entry.as_ref().map(|it| it.execution.revision);
        let executions = other.entries.iter().filter(|(id, theirs)| {
            self.entries.get(*id).is_some_and(|ours| revision(ours) != revision(theirs))
        });
        let revision = |found: &Option<Arc<Document>>| found.as_ref().map(|it| it.revision);
        let documents = other.documents.iter().filter(|(id, theirs)| {
            self.documents.get(*id).is_some_and(|ours| revision(ours) != revision(theirs))
        });
        let executions = executions.map(|(id, _)| Subject::from(*id));
        executions.chain(documents.map(|(id, _)| Subject::from(id))).collect()
    }

    fn forget_beside(&mut self, subject: &Subject) {
        self.rows.retain(|(of, _), _| of != subject);
        self.assumed.retain(|(of, _)| of != subject);
        if let Subject::Execution(id) = subject {
            self.results.remove(id);
        }
    }

    /// As much of it as one command asked for.
    fn part(&self, wanted: &Wanted) -> Self {
        Self {
            entries: pick(&self.entries, &wanted.executions),
            documents: pick(&self.documents, &wanted.documents),
            payloads: pick(&self.payloads, &wanted.payloads),
            results: pick(&self.results, &wanted.results),
            dedups: pick(&self.dedups, &wanted.dedups),
            rows: pick(&self.rows, &wanted.rows),
            assumed: HashSet::new(),
            abroad: self.abroad.clone(),
            read_at: self.read_at,
        }
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
                    if let Some(result) = entry.newest_result() {
                        overlay.supply_result(*id, Some(result.clone()));
                    }
                }
            }
        }
        for (id, document) in self.documents.iter().chain(&self.abroad) {
            overlay.supply_document(id.clone(), document.clone());
        }
        for (id, payload) in &self.payloads {
            // A small one stands in the record.
            if self.entry(*id).is_none_or(|entry| entry.payload.is_none()) {
                overlay.supply_payload(*id, payload.clone());
            }
        }
        for (id, result) in &self.results {
            overlay.supply_result(*id, result.clone());
        }
        for ((of, key), bytes) in &self.rows {
            overlay.supply_row(of.clone(), key.clone(), bytes.clone());
        }
        for (key, stored) in &self.dedups {
            let record = stored.as_ref().map(|bytes| decode_dedup(key, bytes)).transpose()?;
            overlay.supply_dedup(key.clone(), record);
        }
        Ok(())
    }
}

/// What one call reads.
#[derive(Debug, Default)]
struct Wanted {
    executions: BTreeSet<ExecutionId>,
    documents: BTreeSet<DocumentId>,
    payloads: BTreeSet<ExecutionId>,
    results: BTreeSet<ExecutionId>,
    dedups: BTreeSet<DedupKey>,
    rows: BTreeSet<RowName>,
}

impl Wanted {
    /// All that is known so far, and what is needed.
    fn new(before: &Known, needs: &[Need]) -> Self {
        let mut wanted = Self {
            executions: before.entries.keys().copied().collect(),
            documents: before.documents.keys().cloned().collect(),
            payloads: before.payloads.keys().copied().collect(),
            results: before.results.keys().copied().collect(),
            dedups: before.dedups.keys().cloned().collect(),
            rows: before.rows.keys().cloned().collect(),
        };
        needs.iter().for_each(|need| wanted.add(need));
        wanted
    }

    fn add(&mut self, need: &Need) {
        match need {
            Need::Execution(id) => {
                self.executions.insert(*id);
            }
            Need::Document(id) => {
                self.documents.insert(id.clone());
            }
            Need::Payload(id) => {
                self.payloads.insert(*id);
            }
            Need::Result(id) => {
                self.executions.insert(*id);
                self.results.insert(*id);
            }
            Need::Dedup(key) => {
                self.dedups.insert(key.clone());
            }
            Need::Row(of, key) => {
                // A commit sees by the record that a row beside it has not changed.
                match of {
                    Subject::Execution(id) => self.executions.insert(*id),
                    Subject::Document(id) => self.documents.insert(id.clone()),
                };
                self.rows.insert((of.clone(), key.clone()));
            }
            Need::Queue(..) | Need::Due(..) | Need::Keyring => {}
        }
    }

    fn call(&self, shared: &Shared) -> Reading {
        let keys = &shared.keys;
        let mut reading = Reading::default();
        reading.strings.extend(self.executions.iter().map(|id| keys.core(*id)));
        reading.strings.extend(self.documents.iter().map(|id| keys.of_document(id, "core")));
        reading.strings.extend(self.payloads.iter().map(|id| keys.payload(*id)));
        reading.strings.extend(self.dedups.iter().map(|key| keys.dedup(key)));
        for id in &self.results {
            reading.parts.push((Part::Newest, keys.results(*id)));
        }
        for (of, key) in &self.rows {
            reading.parts.push((Part::Field(row_field(key)), keys.beside_of(of)));
        }
        reading
    }

    fn known(self, now: TimestampMs, mut values: Values) -> Result<Known, EngineError> {
        let mut known = Known { read_at: Some(now), ..Known::default() };
        for id in self.executions {
            let record = values.bytes()?;
            let entry =
                record.map(|record| Entry::decode(id, &record).map(Arc::new)).transpose()?;
            known.entries.insert(id, entry);
        }
        for id in self.documents {
            let record = values.bytes()?;
            let found = record.map(|record| document::decode(&id, &record)).transpose()?;
            known.documents.insert(id, found.map(Arc::new));
        }
        for id in self.payloads {
            known.payloads.insert(id, values.bytes()?);
        }
        for key in self.dedups {
            known.dedups.insert(key, values.bytes()?);
        }
        for id in self.results {
            let beside = values.bytes()?;
            let entry = known.entry(id).map(Arc::as_ref);
            let result = entry.map(|entry| newest_result(entry, beside.as_deref())).transpose()?;
            known.results.insert(id, result.flatten());
        }
        for name in self.rows {
            known.rows.insert(name, values.bytes()?);
        }
        Ok(known)
    }
}

fn pick<K: Clone + Eq + Hash, V: Clone>(
    all: &HashMap<K, V>,
    wanted: &BTreeSet<K>,
) -> HashMap<K, V> {
    let found = wanted.iter().filter_map(|key| Some((key.clone(), all.get(key)?.clone())));
    found.collect()
}

/// The result of the newest attempt: it stands in the record, or is the newest of those beside it.
fn newest_result(entry: &Entry, beside: Option<&[u8]>) -> Result<Option<Content>, EngineError> {
    let Some(attempt) = &entry.execution.attempt else { return Ok(None) };
    if let Some(content) = entry.newest_result() {
        return Ok(Some(content.clone()));
    }
    match beside.and_then(|bytes| bytes.split_at_checked(4)) {
        Some((index, content)) if uint(index) == u64::from(attempt.index) => {
            query::decode("result", content).map(Some)
        }
        _ => Ok(None),
    }
}

/// Reads all that is known so far again, with what is needed, so that it is of one moment. Documents
/// of other homes are read once, and each home's for itself.
pub(crate) async fn read(
    shared: &Shared,
    home: &Home,
    before: &Known,
    needs: &[Need],
) -> Result<Known, EngineError> {
    if needs.contains(&Need::Keyring) {
        keyring::refresh(shared).await?;
    }
    let (abroad, here): (Vec<_>, Vec<_>) =
        needs.iter().cloned().partition(|need| is_abroad(home, need).is_some());
    let wanted = Wanted::new(before, &here);
    let (read, abroad) =
        tokio::join!(wanted.call(shared).send(shared, home), read_abroad(shared, &abroad));
    let (now, values) = read?;
    let mut known = wanted.known(now, values)?;
    known.abroad.clone_from(&before.abroad);
    known.abroad.extend(abroad?);
    Ok(known)
}

/// Reads for several commands of one home with one call: what is known to each afterwards.
pub(crate) async fn read_together(
    shared: &Shared,
    home: &Home,
    asked: &[(&Known, &[Need])],
) -> Result<Vec<Known>, EngineError> {
    if let [(before, needs)] = asked {
        return Ok(vec![read(shared, home, before, needs).await?]);
    }
    let (mut before, mut all) = (Known::default(), Vec::new());
    for (known, needs) in asked {
        before.extend((*known).clone());
        all.extend_from_slice(needs);
    }
    let known = read(shared, home, &before, &all).await?;
    Ok(asked.iter().map(|(before, needs)| known.part(&Wanted::new(before, needs))).collect())
}

async fn read_abroad(
    shared: &Shared,
    needs: &[Need],
) -> Result<Vec<(DocumentId, Option<Arc<Document>>)>, EngineError> {
    let begun = Instant::now();
    let mut by_home: BTreeMap<&Home, Vec<DocumentId>> = BTreeMap::new();
    for need in needs {
        if let Need::Document(id) = need {
            by_home.entry(&id.home).or_default().push(id.clone());
        }
    }
    let reads = by_home.into_iter().map(async |(home, ids)| {
        let (_, found) = documents(shared, home, &ids).await?;
        let found = found.into_iter().map(|found| found.map(|(document, _)| Arc::new(document)));
        Ok::<_, EngineError>(ids.into_iter().zip(found).collect::<Vec<_>>())
    });
    let mut all = Vec::with_capacity(needs.len());
    for read in join_all(reads).await {
        all.extend(read?);
    }
    all.iter().for_each(|(id, found)| shared.near.keep(id, found.as_ref(), begun));
    Ok(all)
}

/// Adds what is needed to what is known. It need not be of one moment: a commit compares all of it, and
/// nothing is answered without one.
pub(crate) async fn read_more(
    shared: &Shared,
    home: &Home,
    known: &mut Known,
    needs: &[Need],
) -> Result<(), EngineError> {
    for more in read_in_portions(shared, home, needs).await {
        known.extend(more?);
    }
    known.read_at = None;
    Ok(())
}

/// Reads some facts with each call: everything else waits while a function runs.
pub(crate) async fn read_in_portions(
    shared: &Shared,
    home: &Home,
    needs: &[Need],
) -> Vec<Result<Known, EngineError>> {
    let nothing = Known::default();
    let reads = needs.chunks(PORTION).map(|part| read(shared, home, &nothing, part));
    join_all(reads).await
}

/// What one call reads: strings, then parts of hashes.
#[derive(Debug, Default)]
struct Reading {
    strings: Vec<String>,
    parts: Vec<(Part, String)>,
}

#[derive(Debug)]
enum Part {
    /// The value of a field.
    Field(Vec<u8>),
    /// The entry whose name is the highest number.
    Newest,
    /// All fields and values.
    All,
}

/// What a call has read, in its order.
pub(crate) struct Values(std::vec::IntoIter<Value>);

impl Values {
    /// The next value; none where it is absent.
    pub(crate) fn bytes(&mut self) -> Result<Option<Bytes>, EngineError> {
        reply::bytes(reply::next(&mut self.0)?)
    }

    /// The next hash of counts.
    fn counts(&mut self) -> Result<MemberCounts, EngineError> {
        let mut counts = MemberCounts::default();
        let mut items = reply::flat(reply::next(&mut self.0)?)?.into_iter();
        while let Some(field) = items.next() {
            let count = reply::number(&reply::next(&mut items)?)?;
            if let Ok(field) = reply::text(field)?.parse() {
                counts.add(field, count);
            }
        }
        Ok(counts)
    }
}

impl Reading {
    async fn send(
        self,
        shared: &Shared,
        home: &Home,
    ) -> Result<(TimestampMs, Values), EngineError> {
        let mut call = shared.read_function("ff_read");
        let mut hashes: Vec<&String> = self.parts.iter().map(|(_, key)| key).collect();
        hashes.sort_unstable();
        hashes.dedup();
        // A call needs a key to be sent to the right node.
        if self.strings.is_empty() && hashes.is_empty() {
            call.arg(1).arg(shared.keys.log(home));
        } else {
            call.arg(self.strings.len() + hashes.len()).arg(&self.strings).arg(&hashes);
        }
        shared.begin(&mut call).arg(self.strings.len());
        for (part, key) in &self.parts {
            let place = self.strings.len() + hashes.binary_search(&key).unwrap_or_default() + 1;
            match part {
                Part::Field(field) => call.arg("R").arg(place).arg(&field[..]),
                Part::Newest => call.arg("N").arg(place).arg(""),
                Part::All => call.arg("A").arg(place).arg(""),
            };
        }
        let mut items = reply::array(shared.send_home(home, &call).await?)?.into_iter();
        let now = reply::instant(&reply::next(&mut items)?)?;
        shared.clock.note(home, now);
        if items.len() != self.strings.len() + self.parts.len() {
            return Err(EngineError::bug(format!("ff_read answered {} values", items.len())));
        }
        Ok((now, Values(items)))
    }
}

/// The values of some keys of a partition, and the time.
pub(crate) async fn read_keys(
    shared: &Shared,
    partition: u16,
    names: Vec<String>,
) -> Result<(TimestampMs, Values), EngineError> {
    read_all(shared, partition, names, &[]).await
}

/// The values of some keys of a partition, then of some rows, and the time: all of one moment.
pub(crate) async fn read_all(
    shared: &Shared,
    partition: u16,
    names: Vec<String>,
    rows: &[RowName],
) -> Result<(TimestampMs, Values), EngineError> {
    let row = |(of, key): &RowName| (Part::Field(row_field(key)), shared.keys.beside_of(of));
    let reading = Reading { strings: names, parts: rows.iter().map(row).collect() };
    reading.send(shared, &Home::partition(partition)).await
}

/// Reads executions of one partition.
pub(crate) async fn executions(
    shared: &Shared,
    partition: u16,
    ids: &[ExecutionId],
) -> Result<(TimestampMs, Vec<Option<Entry>>), EngineError> {
    let names = ids.iter().map(|id| shared.keys.core(*id)).collect();
    let (now, mut values) = read_keys(shared, partition, names).await?;
    let mut entries = Vec::with_capacity(ids.len());
    for id in ids {
        let record = values.bytes()?;
        entries.push(record.map(|record| Entry::decode(*id, &record)).transpose()?);
    }
    Ok((now, entries))
}

/// A document with the counts of what belongs to it.
pub(crate) type Counted = (Document, MemberCounts);

/// Reads documents of one home.
pub(crate) async fn documents(
    shared: &Shared,
    home: &Home,
    ids: &[DocumentId],
) -> Result<(TimestampMs, Vec<Option<Counted>>), EngineError> {
    // Only flows have members.
    let has_members = |id: &&DocumentId| id.kind == DocumentKind::Flow;
    let counted = || ids.iter().filter(has_members);
    let reading = Reading {
        strings: ids.iter().map(|id| shared.keys.of_document(id, "core")).collect(),
        parts: counted().map(|id| (Part::All, shared.keys.tally(id))).collect(),
    };
    let (now, mut values) = reading.send(shared, home).await?;
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let record = values.bytes()?;
        found.push(record.map(|record| document::decode(id, &record)).transpose()?);
    }
    let mut counted = Vec::with_capacity(ids.len());
    for (id, document) in ids.iter().zip(found) {
        let counts = if has_members(&id) { values.counts()? } else { MemberCounts::default() };
        counted.push(document.map(|document| (document, counts)));
    }
    Ok((now, counted))
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

#[cfg(test)]
mod tests {
    use ff_core::machine::Family;

    use super::*;
    use crate::document::samples::document;

    fn known(revision: u64, row: u32) -> Known {
        let (mut known, document) = (Known::default(), document(revision));
        let name = (Subject::from(&document.id), RowKey::numbered(Family::Slot, row));
        known.rows.insert(name, Some(Bytes::new()));
        known.documents.insert(document.id.clone(), Some(document));
        known
    }

    fn rows(known: &Known) -> usize {
        known.rows_of(&Subject::from(&document(1).id)).count()
    }

    #[test]
    fn rows_of_one_revision_add_up() {
        let mut all = known(7, 1);
        all.extend(known(7, 2));
        assert_eq!(rows(&all), 2);
    }

    #[test]
    fn rows_of_two_revisions_are_not_mixed() {
        let mut all = known(7, 1);
        all.extend(known(8, 2));
        assert_eq!(rows(&all), 0, "a commit could not tell that one of them is old");
        all.extend(known(8, 1));
        assert_eq!(rows(&all), 1);
    }
}
