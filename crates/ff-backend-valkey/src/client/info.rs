//! The `INFO` of a server.

use redis::{Cmd, Value};

use super::address::Address;
use super::connection::Connection;
use super::obstacle::Obstacle;

/// Lines `name:value`.
pub(crate) struct Info(String);

impl Info {
    /// Of one section, or with `default` of all that matter here.
    pub(crate) async fn ask(
        connection: &mut Connection,
        address: &Address,
        section: &str,
    ) -> Result<Self, Obstacle> {
        match connection.call(&Self::command(section)).await? {
            Value::ServerError(error) => Err(Obstacle::of_reply(address, &error)),
            value => Ok(Self::read(value)),
        }
    }

    pub(super) fn command(section: &str) -> Cmd {
        let mut command = redis::cmd("INFO");
        command.arg(section);
        command
    }

    /// What is no text counts as empty: then nothing is found in it.
    pub(crate) fn read(value: Value) -> Self {
        Self(match value {
            Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Value::VerbatimString { text, .. } | Value::SimpleString(text) => text,
            _ => String::new(),
        })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.lines().find_map(|(found, value)| (found == name).then_some(value))
    }

    pub(crate) fn is_primary(&self) -> bool {
        self.get("role") == Some("master")
    }

    /// Replicas that receive the stream of writes. One that is still loading is not counted: it
    /// cannot acknowledge anything.
    pub(crate) fn replicas_online(&self) -> usize {
        let is_replica = |name: &str| {
            let number = name.strip_prefix("slave").or_else(|| name.strip_prefix("replica"));
            number.is_some_and(|it| !it.is_empty() && it.bytes().all(|c| c.is_ascii_digit()))
        };
        let is_online = |value: &str| value.split(',').any(|field| field == "state=online");
        self.lines().filter(|(name, value)| is_replica(name) && is_online(value)).count()
    }

    fn lines(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.lines().filter_map(|line| line.split_once(':'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Replication\r\nrole:master\r\nconnected_slaves:3\r\n\
        slave0:ip=127.0.0.1,port=7001,state=online,offset=14,lag=0,type=replica\r\n\
        slave1:ip=127.0.0.1,port=7002,state=wait_bgsave,offset=0,lag=0,type=replica\r\n\
        slave2:ip=127.0.0.1,port=7003,state=online,offset=14,lag=1,type=replica\r\n\
        slave_read_only:1\r\n";

    #[test]
    fn lines_are_read() {
        let info = Info::read(Value::BulkString(TEXT.into()));
        assert_eq!(info.get("connected_slaves"), Some("3"));
        assert_eq!(info.get("nothing"), None);
        assert!(info.is_primary());
        assert_eq!(info.replicas_online(), 2);
    }

    #[test]
    fn what_is_no_text_has_no_lines() {
        let info = Info::read(Value::Nil);
        assert!(!info.is_primary());
        assert_eq!(info.replicas_online(), 0);
    }
}
