//! Reads beside the writer.

use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use ff_core::error::EngineError;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::{Semaphore, oneshot};

use crate::error::fault;
use crate::writer::Message;

/// Where reads run.
pub(crate) enum Readers {
    /// Connections of their own on the file.
    Pool { free: Arc<Mutex<Vec<Connection>>>, permits: Arc<Semaphore> },
    /// The writer's connection: a store in memory has no other.
    Writer,
}

impl Readers {
    pub(crate) fn open(path: Option<&Path>, count: usize) -> rusqlite::Result<Self> {
        let Some(path) = path else { return Ok(Self::Writer) };
        let count = count.max(1);
        let connections = (0..count).map(|_| open_reader(path)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self::Pool {
            free: Arc::new(Mutex::new(connections)),
            permits: Arc::new(Semaphore::new(count)),
        })
    }

    /// Runs `read` on a connection that no other read uses meanwhile.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        writer: &Sender<Message>,
        read: impl FnOnce(&Connection) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, EngineError> {
        match self {
            Self::Writer => {
                let (answer, answered) = oneshot::channel();
                let message = Message::Read(Box::new(move |connection| {
                    let _ = answer.send(read(connection));
                }));
                writer.send(message).map_err(|_| closed())?;
                answered.await.map_err(|_| closed())?
            }
            Self::Pool { free, permits } => {
                let permit = Arc::clone(permits).acquire_owned().await.map_err(|_| closed())?;
                let free = Arc::clone(free);
                let reading = tokio::task::spawn_blocking(move || {
                    let _permit = permit;
                    let taken = free.lock().unwrap_or_else(PoisonError::into_inner).pop();
                    let connection = taken.ok_or_else(closed)?;
                    let result = of_one_moment(&connection, read);
                    free.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
                    result
                });
                reading.await.map_err(|error| EngineError::bug(format!("reader: {error}")))?
            }
        }
    }

    /// Closes idle connections and lets no new read begin.
    pub(crate) fn close(&self) {
        if let Self::Pool { free, permits } = self {
            permits.close();
            free.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }
}

/// Runs all statements of a read on the same state of the store: the writer goes on meanwhile.
fn of_one_moment<T>(
    connection: &Connection,
    read: impl FnOnce(&Connection) -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    let snapshot = connection.unchecked_transaction().map_err(|error| fault(&error))?;
    read(&snapshot)
}

fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

pub(crate) fn closed() -> EngineError {
    EngineError::unavailable("the store is closed")
}
