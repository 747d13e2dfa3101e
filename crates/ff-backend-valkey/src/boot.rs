//! What a server must be and be set to, looked at when a store is opened.

use redis::{Cmd, Value};

use crate::client::{Address, Connection, Info, Obstacle};
use crate::error::{OpenError, reply_text};
use crate::options::{Durability, ValkeyOptions};

const VALKEY_MIN: (u32, u32) = (7, 2);
const REDIS_MIN: (u32, u32) = (7, 0);

/// Whether the server is part of a cluster exactly if the options say so. In a cluster any node
/// may be asked, a replica too.
pub(crate) async fn check_mode(
    connection: &mut Connection,
    address: &Address,
    options: &ValkeyOptions,
) -> Result<(), Obstacle> {
    let info = Info::ask(connection, address, "cluster").await?;
    let detail = match (info.get("cluster_enabled") == Some("1"), options.cluster) {
        (true, false) => "it is part of a cluster; add cluster=1 to the URL",
        (false, true) => "it is not part of a cluster; leave cluster=1 out of the URL",
        _ => return Ok(()),
    };
    let (address, detail) = (address.to_string(), detail.to_owned());
    Err(Obstacle::Final(OpenError::Mode { address, detail }))
}

/// Looks at one primary. Returns what it is, like `valkey 9.1.2`.
pub(crate) async fn check(
    connection: &mut Connection,
    address: &Address,
    options: &ValkeyOptions,
) -> Result<String, Obstacle> {
    let info = Info::ask(connection, address, "default").await?;
    if info.get("loading") == Some("1") {
        return Err(Obstacle::Later("it is loading its data".to_owned()));
    }
    let version = version(&info).map_err(Obstacle::Final)?;
    if !info.is_primary() {
        return Err(not_primary(address, &info, options));
    }
    check_eviction(&info).map_err(Obstacle::Final)?;
    check_functions(connection, address).await?;
    check_durability(connection, address, &info, options.durability).await?;
    Ok(version)
}

fn version(info: &Info) -> Result<String, OpenError> {
    let (name, found, min, needed) = match info.get("valkey_version") {
        Some(found) => ("valkey", found, VALKEY_MIN, "Valkey 7.2 or newer"),
        None => {
            let found = info.get("redis_version").unwrap_or("0");
            ("redis", found, REDIS_MIN, "Redis 7.0 or newer, or Valkey 7.2 or newer")
        }
    };
    let shown = format!("{name} {found}");
    let mut numbers = found.split('.').map(|part| part.parse().unwrap_or(0));
    let numbers: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if numbers < min { Err(OpenError::TooOld { found: shown, needed }) } else { Ok(shown) }
}

/// In a cluster the layout was about to change when it was read; on its own it is a mistake.
fn not_primary(address: &Address, info: &Info, options: &ValkeyOptions) -> Obstacle {
    let primary = match (info.get("master_host"), info.get("master_port")) {
        (Some(host), Some(port)) => format!(" of {host}:{port}"),
        _ => String::new(),
    };
    if options.cluster {
        return Obstacle::Later(format!("{address} became a replica{primary}"));
    }
    let detail = format!("it is a replica{primary}; put the address of the primary into the URL");
    Obstacle::Final(OpenError::Mode { address: address.to_string(), detail })
}

fn check_eviction(info: &Info) -> Result<(), OpenError> {
    match info.get("maxmemory_policy") {
        Some("noeviction") => Ok(()),
        policy => Err(OpenError::Eviction { policy: policy.unwrap_or("not told").to_owned() }),
    }
}

async fn check_functions(connection: &mut Connection, address: &Address) -> Result<(), Obstacle> {
    let mut command = redis::cmd("FUNCTION");
    command.arg("STATS");
    match connection.call(&command).await? {
        Value::ServerError(error) => match Obstacle::of_reply(address, &error) {
            Obstacle::Final(OpenError::Server(detail)) => {
                Err(Obstacle::Final(OpenError::Scripting { detail }))
            }
            other => Err(other),
        },
        answer if has_lua(&answer) => Ok(()),
        _ => Err(Obstacle::Final(OpenError::Scripting {
            detail: "its Lua engine is not loaded".to_owned(),
        })),
    }
}

/// Looks for the engine's name among the keys of `FUNCTION STATS`' `engines`.
fn has_lua(answer: &Value) -> bool {
    let is = |value: &Value, name: &[u8]| match value {
        Value::BulkString(text) => text.eq_ignore_ascii_case(name),
        Value::SimpleString(text) => text.as_bytes().eq_ignore_ascii_case(name),
        _ => false,
    };
    let find = |value: &Value, name: &[u8]| -> Option<Value> {
        value.as_map_iter()?.find(|(key, _)| is(key, name)).map(|(_, value)| value.clone())
    };
    find(answer, b"engines").is_some_and(|engines| find(&engines, b"LUA").is_some())
}

async fn check_durability(
    connection: &mut Connection,
    address: &Address,
    info: &Info,
    durability: Durability,
) -> Result<(), Obstacle> {
    let detail = match durability {
        Durability::Memory => return Ok(()),
        Durability::Replica if info.replicas_online() > 0 => return Ok(()),
        Durability::Replica => {
            format!("durability=replica, but {address} has no replica online (INFO replication)")
        }
        Durability::Fsync => match fsync_flaw(connection).await? {
            None => return Ok(()),
            Some(flaw) => format!("durability=fsync, but at {address} {flaw}"),
        },
    };
    Err(Obstacle::Final(OpenError::Durability { detail }))
}

async fn fsync_flaw(connection: &mut Connection) -> Result<Option<String>, Obstacle> {
    // With the last one nothing is brought to the disk while the server saves or rewrites.
    let wanted =
        [("appendonly", "yes"), ("appendfsync", "always"), ("no-appendfsync-on-rewrite", "no")];
    for (name, value) in wanted {
        let mut command: Cmd = redis::cmd("CONFIG");
        command.arg("GET").arg(name);
        let found = match connection.call(&command).await? {
            Value::ServerError(error) => {
                return Ok(Some(format!(
                    "the setting {name} cannot be read ({}); allow this user CONFIG GET",
                    reply_text(&error)
                )));
            }
            answer => setting(answer),
        };
        if found.as_deref() != Some(value) {
            let found = found.unwrap_or_else(|| "not told".to_owned());
            return Ok(Some(format!("{name} is {found}; run CONFIG SET {name} {value}")));
        }
    }
    Ok(None)
}

fn setting(answer: Value) -> Option<String> {
    let pairs: Vec<(String, String)> = redis::from_redis_value(answer).ok()?;
    pairs.into_iter().next().map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(text: &str) -> Info {
        Info::read(Value::BulkString(text.into()))
    }

    #[test]
    fn versions_are_read_and_compared() {
        let cases = [
            ("redis_version:7.2.4\r\nvalkey_version:9.1.2\r\n", Some("valkey 9.1.2")),
            ("redis_version:7.2.4\r\nvalkey_version:7.2.0\r\n", Some("valkey 7.2.0")),
            ("redis_version:7.0.15\r\n", Some("redis 7.0.15")),
            ("redis_version:8.0-rc1\r\n", Some("redis 8.0-rc1")),
            ("redis_version:6.2.14\r\n", None),
            ("redis_version:what\r\n", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(version(&info(text)).ok().as_deref(), expected, "{text}");
        }
        let error = version(&info("redis_version:6.2.14\r\n")).unwrap_err().to_string();
        assert!(error.contains("redis 6.2.14") && error.contains("7.0"), "{error}");
    }

    #[test]
    fn only_noeviction_keeps_work() {
        assert!(check_eviction(&info("maxmemory_policy:noeviction\r\n")).is_ok());
        for bad in ["maxmemory_policy:allkeys-lru\r\n", ""] {
            let error = check_eviction(&info(bad)).unwrap_err().to_string();
            assert!(error.contains("CONFIG SET maxmemory-policy noeviction"), "{error}");
        }
    }

    #[test]
    fn the_lua_engine_is_looked_for() {
        let with = "%2\r\n$14\r\nrunning_script\r\n_\r\n$7\r\nengines\r\n\
                    %1\r\n$3\r\nLUA\r\n%0\r\n";
        let without = "%1\r\n$7\r\nengines\r\n%0\r\n";
        for (text, found) in [(with, true), (without, false), ("+OK\r\n", false)] {
            let answer = redis::parse_redis_value(text.as_bytes()).unwrap();
            assert_eq!(has_lua(&answer), found, "{text}");
        }
    }

    #[test]
    fn settings_are_read() {
        let answer = b"%1\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n";
        let answer = redis::parse_redis_value(answer).unwrap();
        assert_eq!(setting(answer).as_deref(), Some("always"));
        assert_eq!(setting(redis::parse_redis_value(b"%0\r\n").unwrap()), None);
    }
}
