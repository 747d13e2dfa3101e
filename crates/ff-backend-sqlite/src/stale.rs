//! Compares entries of queues, timers and lists with the records that they name. An entry that its
//! record does not say goes: it would be met again and again, and hold up those behind it.

use ff_core::cursor;
use ff_core::error::EngineError;
use ff_core::state::{Document, Execution, Listing};
use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};

use crate::audit::entry_of;
use crate::error::fault;
use crate::load::{self, document_at, id_at, uuid_at};
use crate::reconcile::Visit;
use crate::statements;

/// A table of entries, whose key is the first columns of a page in the order of `delete`.
struct Table {
    page: &'static str,
    delete: &'static str,
    /// Less than any key.
    least: fn() -> Key,
    judge: fn(&Visit<'_>, &Row<'_>) -> Result<Verdict, EngineError>,
}

enum Verdict {
    /// It is as its record says, or cannot be judged.
    Sound,
    /// What it names is not there.
    Orphan,
    /// Its record says otherwise.
    Wrong(String),
}

const TABLES: [Table; 5] = [
    Table {
        page: statements::page_of_ready,
        delete: statements::delete_ready,
        least: || vec![i64::MIN.into(), i64::MIN.into(), Vec::<u8>::new().into()],
        judge: judge_ready,
    },
    Table {
        page: statements::page_of_timers,
        delete: statements::delete_timer,
        least: || vec![i64::MIN.into(), Vec::<u8>::new().into()],
        judge: judge_timer,
    },
    Table {
        page: statements::page_of_listings,
        delete: statements::delete_listing,
        least: least_listing,
        judge: judge_listing,
    },
    Table {
        page: statements::page_of_document_timers,
        delete: statements::delete_document_timer,
        least: || vec![i64::MIN.into(), String::new().into()],
        judge: judge_document_timer,
    },
    Table {
        page: statements::page_of_document_listings,
        delete: statements::delete_document_listing,
        least: least_listing,
        judge: judge_document_listing,
    },
];

/// The columns that name an entry.
type Key = Vec<Value>;

/// One part of a key, as a cursor holds it: a number, a text or bytes.
type KeyPart = (Option<i64>, Option<String>, Option<Vec<u8>>);

/// Which table, and the key behind which to go on.
type Position = (usize, Vec<KeyPart>);

/// Looks at a page of one table; a page that ends it leads to the next table.
pub(crate) fn reconcile(visit: &mut Visit<'_>) -> Result<(), EngineError> {
    let scope = visit.page.scope();
    let position: Option<Position> =
        visit.page.cursor.as_deref().map(|text| cursor::decode(&scope, text)).transpose()?;
    let (place, after) = position.unwrap_or_default();
    let Some(table) = TABLES.get(place) else { return Ok(()) };
    let after = match after.is_empty() {
        true => (table.least)(),
        false => after.into_iter().map(value).collect(),
    };
    let (wrong, last) = look(visit, table, after)?;
    for key in wrong {
        visit.done.mended += 1;
        visit.rows.run(table.delete, params_from_iter(key))?;
    }
    let next: Option<Position> = match last {
        Some(key) => Some((place, key.into_iter().map(key_part).collect())),
        None if place + 1 < TABLES.len() => Some((place + 1, Vec::new())),
        None => None,
    };
    visit.done.next_cursor = next.map(|next| cursor::encode(&scope, &next));
    Ok(())
}

/// Keys of entries that are to go, and of the last one if there may be more behind it.
fn look(
    visit: &mut Visit<'_>,
    table: &Table,
    after: Key,
) -> Result<(Vec<Key>, Option<Key>), EngineError> {
    let (limit, width) = (visit.page.limit, after.len());
    let connection = visit.rows.connection;
    let mut statement = connection.prepare_cached(table.page).map_err(|error| fault(&error))?;
    let values = after.into_iter().chain([i64::from(limit).into()]);
    let mut rows = statement.query(params_from_iter(values)).map_err(|error| fault(&error))?;
    let (mut wrong, mut last, mut looked) = (Vec::new(), None, 0);
    while let Some(row) = rows.next().map_err(|error| fault(&error))? {
        looked += 1;
        visit.done.found.checked += 1;
        let key = (0..width).map(|column| row.get(column)).collect::<Result<Key, _>>();
        let key = key.map_err(|error| fault(&error))?;
        last = (looked == limit).then(|| key.clone());
        let (invariant, detail) = match (table.judge)(visit, row)? {
            Verdict::Sound => continue,
            // Whose it was cannot be checked.
            Verdict::Orphan if !visit.page.filter.is_empty() => continue,
            Verdict::Orphan => ("I10", format!("{key:?} names what is not there")),
            Verdict::Wrong(says) => ("I9", format!("{key:?} is listed, its record says {says}")),
        };
        visit.done.found.report(invariant, document_of(&key), detail);
        wrong.push(key);
    }
    Ok((wrong, last))
}

/// The document that an entry names: keys end with the name, which is text only of a document.
fn document_of(key: &Key) -> Option<String> {
    match key.last() {
        Some(Value::Text(name)) => Some(name.clone()),
        _ => None,
    }
}

fn least_listing() -> Key {
    let (text, bytes) = (String::new, Vec::<u8>::new);
    vec![text().into(), i64::MIN.into(), i64::MIN.into(), bytes().into(), bytes().into()]
}

fn judge_ready(visit: &Visit<'_>, row: &Row<'_>) -> Result<Verdict, EngineError> {
    judge_execution(visit, row, 2, |execution| {
        let found = (row.get(1)?, row.get(3)?, row.get(4)?, row.get(5)?);
        let place = entry_of(execution);
        Ok((place.as_ref() != Some(&found)).then(|| format!("{place:?}")))
    })
}

fn judge_timer(visit: &Visit<'_>, row: &Row<'_>) -> Result<Verdict, EngineError> {
    judge_execution(visit, row, 1, |execution| {
        let due = execution.due().map(|due| due.at.0);
        Ok((due != Some(row.get(0)?)).then(|| format!("{due:?}")))
    })
}

fn judge_listing(visit: &Visit<'_>, row: &Row<'_>) -> Result<Verdict, EngineError> {
    judge_execution(visit, row, 4, |execution| is_unlisted(execution.listings(), row))
}

fn judge_document_timer(visit: &Visit<'_>, row: &Row<'_>) -> Result<Verdict, EngineError> {
    judge_document(visit, row, 1, |document| {
        let due = document.due().map(|due| due.at.0);
        Ok((due != Some(row.get(0)?)).then(|| format!("{due:?}")))
    })
}

fn judge_document_listing(visit: &Visit<'_>, row: &Row<'_>) -> Result<Verdict, EngineError> {
    judge_document(visit, row, 4, |document| is_unlisted(document.listings(), row))
}

/// What the record says instead, if it does not say this.
fn is_unlisted<'a>(
    listings: impl Iterator<Item = Listing<'a>>,
    row: &Row<'_>,
) -> rusqlite::Result<Option<String>> {
    let (namespace, list): (String, u8) = (row.get(0)?, row.get(1)?);
    let (at, name): (i64, _) = (row.get(2)?, uuid_at(row, 3)?);
    let listings: Vec<_> = listings.collect();
    let is_it = |entry: &Listing<'_>| {
        (entry.namespace.as_str(), entry.list.code(), entry.at.0, entry.name)
            == (namespace.as_str(), list, at, name)
    };
    Ok((!listings.iter().any(is_it)).then(|| format!("{listings:?}")))
}

fn judge_execution(
    visit: &Visit<'_>,
    row: &Row<'_>,
    column: usize,
    differs: impl Fn(&Execution) -> rusqlite::Result<Option<String>>,
) -> Result<Verdict, EngineError> {
    // What is no id names nothing.
    let Ok(id) = id_at(row, column) else { return Ok(Verdict::Orphan) };
    // A record that cannot be read says nothing; it is met and told among the executions.
    let Ok(found) = load::execution(visit.rows.connection, id) else { return Ok(Verdict::Sound) };
    let is_admitted = |found: &Execution| visit.page.filter.admits_execution(found);
    verdict(found.as_ref(), is_admitted, differs)
}

fn judge_document(
    visit: &Visit<'_>,
    row: &Row<'_>,
    column: usize,
    differs: impl Fn(&Document) -> rusqlite::Result<Option<String>>,
) -> Result<Verdict, EngineError> {
    let Ok(id) = document_at(row, column) else { return Ok(Verdict::Orphan) };
    let Ok(found) = load::document(visit.rows.connection, &id) else { return Ok(Verdict::Sound) };
    let is_admitted = |found: &Document| visit.page.filter.admits_document(found);
    verdict(found.as_ref(), is_admitted, differs)
}

fn verdict<T>(
    found: Option<&T>,
    is_admitted: impl Fn(&T) -> bool,
    differs: impl Fn(&T) -> rusqlite::Result<Option<String>>,
) -> Result<Verdict, EngineError> {
    match found {
        None => Ok(Verdict::Orphan),
        Some(record) if !is_admitted(record) => Ok(Verdict::Sound),
        Some(record) => {
            let says = differs(record).map_err(|error| fault(&error))?;
            Ok(says.map_or(Verdict::Sound, Verdict::Wrong))
        }
    }
}

fn key_part(value: Value) -> KeyPart {
    match value {
        Value::Integer(number) => (Some(number), None, None),
        Value::Text(text) => (None, Some(text), None),
        Value::Blob(bytes) => (None, None, Some(bytes)),
        // No key has such a part.
        Value::Null | Value::Real(_) => (None, None, None),
    }
}

fn value(part: KeyPart) -> Value {
    match part {
        (Some(number), ..) => number.into(),
        (_, Some(text), _) => text.into(),
        (.., Some(bytes)) => bytes.into(),
        (None, None, None) => Value::Null,
    }
}
