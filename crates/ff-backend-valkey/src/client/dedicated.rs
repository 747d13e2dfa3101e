//! A connection for commands that block: on a shared one they would hold up everybody else.

use std::sync::Arc;
use std::time::Duration;

use ff_core::error::EngineError;
use redis::{Cmd, Value};

use super::connection::Connection;
use super::effort::Effort;
use super::obstacle::Obstacle;
use super::router::Client;
use super::verdict::{Verdict, judge};

/// Holds at most one connection, to the node that owned the slot when it was opened.
pub(crate) struct Dedicated {
    client: Client,
    slot: u16,
    connection: Option<Connection>,
}

impl Dedicated {
    pub(super) async fn open(client: Client, slot: u16) -> Result<Self, EngineError> {
        let connection = Some(client.open_at(slot).await?);
        Ok(Self { client, slot, connection })
    }

    /// Waits up to `timeout` for the answer, which must be longer than the command itself blocks.
    /// After an error, or when the future was dropped, the connection is given up, and the next
    /// query opens another: a command that still blocks on it would take what the next should get.
    pub(crate) async fn query(
        &mut self,
        command: &Cmd,
        timeout: Duration,
    ) -> Result<Value, EngineError> {
        let mut connection = match self.connection.take() {
            Some(connection) if !connection.is_lost() => connection,
            _ => self.client.open_at(self.slot).await?,
        };
        connection.set_patience(timeout);
        let ground = &self.client.0.ground;
        let outcome = tokio::select! {
            outcome = connection.call(command) => outcome,
            () = ground.until_closed() => {
                return Err(EngineError::unavailable("the store is closed"));
            }
        };
        match judge(outcome) {
            Verdict::Done(value) => {
                self.connection = Some(connection);
                Ok(value)
            }
            Verdict::Failed(error) => Err(self.client.suspect(error)),
            Verdict::Again(again) => {
                ground.stale.notify_one();
                Err(EngineError::unavailable(again.to_string()))
            }
        }
    }
}

impl Client {
    async fn open_at(&self, slot: u16) -> Result<Connection, EngineError> {
        let ground = &self.0.ground;
        let mut effort = Effort::new(ground);
        loop {
            let owner = self.table().owner(slot).map(Arc::clone);
            let reason = match owner {
                None => format!("no node owns slot {slot}"),
                Some(_) if ground.is_closed() => {
                    return Err(EngineError::unavailable("the store is closed"));
                }
                Some(node) => match ground.open_primary(&node.address).await {
                    Ok(connection) => return Ok(connection),
                    Err(Obstacle::Later(reason)) => reason,
                    Err(Obstacle::Final(error)) => {
                        return Err(EngineError::unavailable(error.to_string()));
                    }
                },
            };
            ground.stale.notify_one();
            effort.pause(&reason).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::fake::{Fake, Say};
    use crate::client::slot_of;

    const PATIENCE: Duration = Duration::from_secs(1);

    fn pop() -> Cmd {
        let mut command = redis::cmd("BRPOP");
        command.arg("list").arg(0);
        command
    }

    #[tokio::test]
    async fn another_connection_follows_a_lost_one() {
        let fake = Fake::start(|command, before| match (command, before) {
            ("BRPOP list 0", 0) => Say::Nothing,
            _ => Say::Usual,
        });
        let mut dedicated = fake.client().await.dedicated(slot_of(b"list")).await.unwrap();
        let error = dedicated.query(&pop(), PATIENCE).await.unwrap_err();
        let unknown = matches!(error, EngineError::Transport { outcome_unknown: true, .. });
        assert!(unknown, "{error:?}");
        assert_eq!(dedicated.query(&pop(), PATIENCE).await, Ok(Value::Okay));
    }

    #[tokio::test]
    async fn closing_ends_the_wait() {
        let fake = Fake::start(|_, _| Say::Usual);
        let client = fake.client().await;
        let mut dedicated = client.dedicated(0).await.unwrap();
        client.close(Duration::ZERO).await;
        let error = dedicated.query(&pop(), PATIENCE).await;
        let closed = Err(EngineError::unavailable("the store is closed"));
        assert_eq!(error.map(|_| ()), closed);
        assert_eq!(client.send(0, &redis::cmd("PING")).await.map(|_| ()), closed);
    }
}
