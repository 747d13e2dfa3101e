//! The schema: versioned migrations, applied in one transaction each when the store is opened.

use ff_core::error::EngineError;
use ff_core::partition::PartitionConfig;
use ff_core::token::{Keyring, Reconciled};
use ff_relational::{decode_keyring, encode_keyring};
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, params};

use crate::error::{OpenError, fault};
use crate::options::SqliteOptions;
use crate::statements;

/// Migration n leads from version n to n + 1.
const MIGRATIONS: &[&str] = &[
    include_str!("../sql/migrations/0001_initial.sql"),
    include_str!("../sql/migrations/0002_beside.sql"),
    include_str!("../sql/migrations/0003_frames.sql"),
    include_str!("../sql/migrations/0004_listing.sql"),
    include_str!("../sql/migrations/0005_documents.sql"),
    include_str!("../sql/migrations/0006_live.sql"),
];

/// Records of this version and before have a form that was never released.
const UNRELEASED: u32 = 4;

/// The version of a schema, and the one that this build leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema {
    /// 0: there is no store yet.
    pub found: u32,
    pub known: u32,
}

impl Schema {
    /// Whether opening the store would change it.
    pub fn is_old(&self) -> bool {
        self.found < self.known
    }

    /// Refuses a schema from the future.
    pub fn check_known(&self) -> Result<(), OpenError> {
        let Self { found, known } = *self;
        if found > known { Err(OpenError::TooNew { found, known }) } else { Ok(()) }
    }

    /// Looks without opening the store: nothing is written, and its owner is not disturbed. A database of
    /// another application is refused.
    pub(crate) fn of(options: &SqliteOptions) -> Result<Self, OpenError> {
        let known = known();
        let Some(path) = options.path.as_deref().filter(|path| path.exists()) else {
            return Ok(Self { found: 0, known });
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let look = || -> rusqlite::Result<(u32, bool)> {
            let connection = Connection::open_with_flags(path, flags)?;
            let is_foreign = connection.query_row(statements::is_foreign, [], |row| row.get(0))?;
            Ok((version(&connection)?, is_foreign))
        };
        match look() {
            Ok((_, true)) => Err(OpenError::Foreign { path: path.to_owned() }),
            Ok((found, false)) => Ok(Self { found, known }),
            Err(source) => Err(OpenError::Database { path: path.to_owned(), source }),
        }
    }
}

fn known() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Brings the schema up to date, and refuses one from the future.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    let (found, known) = (version(connection)?, known());
    Schema { found, known }.check_known()?;
    if (1..=UNRELEASED).contains(&found)
        && connection.query_row(statements::any_execution, [], |row| row.get::<_, bool>(0))?
    {
        return Err(OpenError::Unreleased);
    }
    for version in found..known {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(MIGRATIONS[version as usize])?;
        transaction.pragma_update(None, "user_version", version + 1)?;
        transaction.commit()?;
    }
    Ok(())
}

/// Writes the partition counts at the first boot and compares them at every other.
pub(crate) fn settle_partitions(
    connection: &mut Connection,
    options: &SqliteOptions,
) -> Result<PartitionConfig, OpenError> {
    let fresh = options.partitions.of_new_store()?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut settled = fresh;
    let fields: [(&'static str, u16, &mut u16); 3] = [
        ("num_flow_partitions", fresh.flow, &mut settled.flow),
        ("num_budget_partitions", fresh.budget, &mut settled.budget),
        ("num_quota_partitions", fresh.quota, &mut settled.quota),
    ];
    for (field, configured, settled) in fields {
        let stored: Option<String> = transaction
            .query_row(statements::get_meta, params![field], |row| row.get(0))
            .optional()?;
        let Some(text) = stored else {
            transaction.execute(statements::put_meta, params![field, configured.to_string()])?;
            continue;
        };
        let stored: u16 =
            text.parse().map_err(|_| OpenError::Damaged(format!("{field} is {text:?}")))?;
        *settled = stored;
    }
    settled.check()?;
    options.partitions.agree_with(&settled)?;
    transaction.commit()?;
    Ok(settled)
}

/// The keys that sign waitpoint tokens: made at the first boot, compared at every other.
pub(crate) fn settle_keyring(
    connection: &mut Connection,
    options: &SqliteOptions,
) -> Result<Keyring, OpenError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let configured = options.waitpoint_secret.as_ref();
    let stored = keyring(&transaction).map_err(|error| OpenError::Damaged(error.to_string()))?;
    if let Some(stored) = stored {
        if stored.reconcile(configured)? == Reconciled::RotatedAway {
            tracing::warn!("the configured waitpoint secret was rotated away and is not used");
        }
        return Ok(stored);
    }
    let fresh = Keyring::first(configured, |bytes| {
        getrandom::fill(bytes).map_err(|error| OpenError::Random(error.to_string()))
    })?;
    let record = encode_keyring(&fresh).map_err(|error| OpenError::Damaged(error.to_string()))?;
    transaction.execute(statements::put_keyring, params![record])?;
    transaction.commit()?;
    Ok(fresh)
}

/// The stored keyring.
pub(crate) fn keyring(connection: &Connection) -> Result<Option<Keyring>, EngineError> {
    let record: Option<Vec<u8>> = connection
        .query_row(statements::get_keyring, [], |row| row.get(0))
        .optional()
        .map_err(|error| fault(&error))?;
    record.map(|record| decode_keyring(&record)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(connection: &Connection) -> Vec<(String, String)> {
        let mut statement = connection
            .prepare("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
            .unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn migrations_lead_to_the_schema() {
        let mut migrated = Connection::open_in_memory().unwrap();
        migrate(&mut migrated).unwrap();
        let whole = Connection::open_in_memory().unwrap();
        whole.execute_batch(include_str!("../sql/schema.sql")).unwrap();
        assert_eq!(tables(&migrated), tables(&whole));
    }

    #[test]
    fn migrating_twice_changes_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        migrate(&mut connection).unwrap();
    }

    #[test]
    fn records_of_an_unreleased_form_are_refused() {
        for version in 1..=UNRELEASED {
            let mut connection = Connection::open_in_memory().unwrap();
            for migration in &MIGRATIONS[..version as usize] {
                connection.execute_batch(migration).unwrap();
            }
            connection.pragma_update(None, "user_version", version).unwrap();
            let insert = "INSERT INTO execution VALUES (x'00', 0, 'n', 'l', 'k', 's', x'01')";
            connection.execute(insert, []).unwrap();
            assert!(matches!(migrate(&mut connection), Err(OpenError::Unreleased)));
            connection.execute("DELETE FROM execution", []).unwrap();
            migrate(&mut connection).unwrap();
        }
    }

    #[test]
    fn a_schema_from_the_future_is_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
        assert!(matches!(migrate(&mut connection), Err(OpenError::TooNew { found: 99, .. })));
    }
}
