//! The function library on one server: whether it is the right one, and loading it.

use redis::{Cmd, Value};

use super::address::Address;
use super::connection::Connection;
use super::obstacle::Obstacle;
use crate::error::{OpenError, reply_text};
use crate::library::Library;

/// A library that was found on a server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) call_version: u32,
    hash: String,
}

/// What is to be done about it.
#[derive(Debug, PartialEq)]
pub(super) enum Act {
    Use,
    Load,
    Replace,
    Refuse,
}

/// A library serves its own call version and the one before, so a newer one by one step is used as
/// it is: whoever loaded it needs it. Only a higher call version replaces a lower one, and the same
/// with another content replaces it, so builds side by side do not fight for the server.
pub(super) fn act(ours: &Library, found: Option<&Found>) -> Act {
    let Some(found) = found else { return Act::Load };
    match found.call_version.checked_sub(ours.call_version) {
        None => Act::Replace,
        Some(0) if found.hash == ours.hash => Act::Use,
        Some(0) => Act::Replace,
        Some(1) => Act::Use,
        Some(_) => Act::Refuse,
    }
}

/// Makes the server's library one that serves ours.
pub(super) async fn ensure(
    connection: &mut Connection,
    address: &Address,
    library: &Library,
) -> Result<(), Obstacle> {
    let found = found(connection, address).await?;
    let act = act(library, found.as_ref());
    let replace = match act {
        Act::Use => return Ok(()),
        Act::Load => false,
        Act::Replace => true,
        Act::Refuse => return Err(Obstacle::Final(too_new(library, found.as_ref()))),
    };
    match connection.call(&load(library, replace)).await? {
        // Another client was faster; whether its library serves ours shows at the next look.
        Value::ServerError(error) if !replace && is_there_already(&error) => {
            loaded_by_another(connection, address, library).await
        }
        answer => loaded(address, library, &answer),
    }
}

fn is_there_already(error: &redis::ServerError) -> bool {
    reply_text(error).ends_with("already exists")
}

fn loaded(address: &Address, library: &Library, answer: &Value) -> Result<(), Obstacle> {
    match answer {
        Value::ServerError(error) => Err(refused(address, error)),
        _ => {
            let hash = &library.hash;
            tracing::info!(%address, %hash, "loaded the function library");
            Ok(())
        }
    }
}

/// The refusal of a library that does not serve ours any more.
pub(super) fn too_new(ours: &Library, found: Option<&Found>) -> OpenError {
    let found = found.map_or(0, |it| it.call_version);
    OpenError::LibraryTooNew { found, served: ours.call_version + 1 }
}

async fn loaded_by_another(
    connection: &mut Connection,
    address: &Address,
    library: &Library,
) -> Result<(), Obstacle> {
    let found = found(connection, address).await?;
    match act(library, found.as_ref()) {
        Act::Use => Ok(()),
        // All may have been flushed since, which a second try tells from a library that is not ours.
        Act::Load => match connection.call(&load(library, false)).await? {
            Value::ServerError(error) if is_there_already(&error) => {
                Err(Obstacle::Final(OpenError::Scripting {
                    detail: format!(
                        "{address} has a library {:?} that is not ours; run FUNCTION DELETE {}, or \
                         use another server",
                        library.name, library.name
                    ),
                }))
            }
            answer => loaded(address, library, &answer),
        },
        Act::Replace | Act::Refuse => {
            Err(Obstacle::Later("another client is loading its function library".to_owned()))
        }
    }
}

/// The library of a server, if it has one.
pub(super) async fn found(
    connection: &mut Connection,
    address: &Address,
) -> Result<Option<Found>, Obstacle> {
    match connection.call(&version()).await? {
        Value::ServerError(error) if is_missing(&error) => Ok(None),
        Value::ServerError(error) => Err(refused(address, &error)),
        value => parse(value).map(Some).ok_or_else(|| {
            let detail = format!("{address} has a function ff_version that is not ours");
            Obstacle::Final(OpenError::Scripting { detail })
        }),
    }
}

/// Whether an error reply says that a function is not loaded.
pub(super) fn is_missing(error: &redis::ServerError) -> bool {
    error.code() == "ERR" && error.details() == Some("Function not found")
}

fn refused(address: &Address, error: &redis::ServerError) -> Obstacle {
    match Obstacle::of_reply(address, error) {
        Obstacle::Final(OpenError::Server(detail)) => {
            Obstacle::Final(OpenError::Scripting { detail })
        }
        other => other,
    }
}

fn parse(value: Value) -> Option<Found> {
    let (call_version, hash): (u32, String) = redis::from_redis_value(value).ok()?;
    Some(Found { call_version, hash })
}

fn version() -> Cmd {
    let mut command = redis::cmd("FCALL_RO");
    command.arg("ff_version").arg(0);
    command
}

fn load(library: &Library, replace: bool) -> Cmd {
    let mut command = redis::cmd("FUNCTION");
    command.arg("LOAD");
    if replace {
        command.arg("REPLACE");
    }
    command.arg(&library.code);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_higher_call_version_or_other_content_replaces() {
        let ours =
            Library { name: "l", code: String::new(), hash: "a".to_owned(), call_version: 5 };
        let cases = [
            (None, Act::Load),
            (Some((5, "a")), Act::Use),
            (Some((5, "b")), Act::Replace),
            (Some((4, "b")), Act::Replace),
            (Some((1, "a")), Act::Replace),
            (Some((6, "b")), Act::Use),
            (Some((7, "b")), Act::Refuse),
        ];
        for (found, expected) in cases {
            let found = found.map(|(call_version, hash)| Found { call_version, hash: hash.into() });
            assert_eq!(act(&ours, found.as_ref()), expected, "{found:?}");
        }
    }

    #[test]
    fn the_version_reply_is_read() {
        let reply = Value::Array(vec![Value::Int(3), Value::BulkString(b"abc".to_vec())]);
        let found = Found { call_version: 3, hash: "abc".to_owned() };
        assert_eq!(parse(reply), Some(found));
        assert_eq!(parse(Value::Nil), None);
    }
}
