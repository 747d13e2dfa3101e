//! A call that was certainly not carried out, until it is, or until its time is over.

use std::sync::Arc;

use ff_core::error::EngineError;
use redis::{Cmd, Value};

use super::address::Address;
use super::effort::Effort;
use super::node::Node;
use super::obstacle::Obstacle;
use super::router::Client;
use super::topology::Topology;
use super::verdict::{Again, Redirection, Verdict, judge};

/// Where a call must go.
pub(super) enum Route<'a> {
    /// To whichever node owns the slot at the time.
    Slot(u16),
    /// To this node and no other.
    Node(&'a Arc<Node>),
}

/// A try that ended without effect, and at which node.
pub(super) struct Stop {
    pub(super) node: Option<Arc<Node>>,
    pub(super) again: Again,
}

impl Stop {
    pub(super) fn unowned(slot: u16) -> Self {
        Self { node: None, again: Again::Elsewhere(format!("no node owns slot {slot}")) }
    }
}

impl Client {
    pub(super) async fn settle(
        &self,
        route: Route<'_>,
        command: &Cmd,
        mut stop: Stop,
        mut effort: Effort,
    ) -> Result<Value, EngineError> {
        let deadline = effort.deadline();
        loop {
            let helper = self.clear_the_way(&route, &stop, &mut effort).await?;
            let (node, outcome) = match (helper, &route) {
                (Some(helper), _) => {
                    let outcome = effort.attempt(helper.call_asking(command, deadline)).await;
                    (helper, outcome)
                }
                (None, Route::Node(node)) => {
                    let outcome = effort.attempt(node.call_directly(command)).await;
                    (Arc::clone(node), outcome)
                }
                (None, Route::Slot(slot)) => {
                    let Some(node) = self.table().owner(*slot).map(Arc::clone) else {
                        stop = Stop::unowned(*slot);
                        continue;
                    };
                    let outcome = effort.attempt(node.call(command, deadline)).await;
                    (node, outcome)
                }
            };
            match judge(outcome) {
                Verdict::Done(value) => return Ok(value),
                Verdict::Failed(error) => return Err(self.suspect_node(&node, error)),
                Verdict::Again(again) => stop = Stop { node: Some(node), again },
            }
        }
    }

    /// Removes the reason why a try had no effect, or waits for its end. Returns the node to ask
    /// instead, if it is another for this one call.
    async fn clear_the_way(
        &self,
        route: &Route<'_>,
        stop: &Stop,
        effort: &mut Effort,
    ) -> Result<Option<Arc<Node>>, EngineError> {
        let stale = || self.0.ground.stale.notify_one();
        let is_bound = matches!(route, Route::Node(_));
        let (Some(node), again) = (&stop.node, &stop.again) else {
            stale();
            effort.pause("no node of the cluster owns the slot").await?;
            return Ok(None);
        };
        match again {
            Again::Moved(text) | Again::Ask(text) | Again::Elsewhere(text) if is_bound => {
                stale();
                let detail = format!("{}: {text}", node.address);
                return Err(EngineError::Transport { outcome_unknown: false, detail });
            }
            Again::NotSent(reason) => self.reconnected(route, node, reason, effort).await?,
            Again::Moved(text) => {
                self.follow(text, node);
                effort.redirect(text).await?;
            }
            Again::Ask(text) => {
                effort.redirect(text).await?;
                let target = Redirection::read(text).map(|it| it.target);
                let target = target.and_then(|it| Address::redirected(it, &node.address));
                let Some(address) = target else { return Ok(None) };
                let helper = self.node_at(&address);
                effort.wait(text, helper.link.until_up()).await?;
                return Ok(Some(helper));
            }
            Again::Later(text) => effort.pause(text).await?,
            Again::Elsewhere(text) => {
                stale();
                effort.pause(text).await?;
            }
            Again::NoLibrary => {
                effort.repair("valkey has no function library, and loses it when loaded")?;
                repaired(node, effort).await?;
            }
            Again::OtherLibrary(text) => {
                effort.repair(text)?;
                repaired(node, effort).await?;
            }
        }
        Ok(None)
    }

    /// Waits until the node can be reached again, or another has taken its place.
    async fn reconnected(
        &self,
        route: &Route<'_>,
        node: &Arc<Node>,
        reason: &str,
        effort: &mut Effort,
    ) -> Result<(), EngineError> {
        self.0.ground.stale.notify_one();
        if node.link.is_up() {
            // The connection came back meanwhile, or it was not this one that failed.
            return effort.pause(reason).await;
        }
        let is_replaced = |table: &Arc<Topology>| match route {
            Route::Slot(slot) => !table.owner(*slot).is_some_and(|it| Arc::ptr_eq(it, node)),
            Route::Node(_) => !table.nodes().any(|it| Arc::ptr_eq(it, node)),
        };
        let mut table = self.0.table.subscribe();
        let end = async {
            tokio::select! {
                () = node.link.until_up() => false,
                _ = table.wait_for(is_replaced) => true,
            }
        };
        match effort.wait(reason, end).await? {
            true if matches!(route, Route::Node(_)) => {
                let detail = format!("{} is not part of the cluster any more", node.address);
                Err(EngineError::Transport { outcome_unknown: false, detail })
            }
            _ => Ok(()),
        }
    }
}

async fn repaired(node: &Node, effort: &mut Effort) -> Result<(), EngineError> {
    match effort.wait("the function library is being loaded", node.repair_library()).await? {
        Ok(()) => Ok(()),
        Err(Obstacle::Later(reason)) => effort.pause(&reason).await,
        Err(Obstacle::Final(error)) => Err(EngineError::unavailable(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::client::fake::{self, Fake, Say};
    use crate::client::slot_of;
    use crate::options::ValkeyOptions;

    async fn set(client: &Client) -> Result<Value, EngineError> {
        let mut command = redis::cmd("SET");
        command.arg("key").arg("1");
        client.send(slot_of(b"key"), &command).await
    }

    #[tokio::test]
    async fn what_was_not_carried_out_is_sent_again() {
        for line in ["LOADING x", "TRYAGAIN x", "BUSY x", "CLUSTERDOWN x", "READONLY x"] {
            let fake = Fake::start(move |command, before| match (command, before) {
                ("SET key 1", 0 | 1) => fake::error(line),
                _ => Say::Usual,
            });
            assert_eq!(set(&fake.client().await).await, Ok(Value::Okay), "{line}");
            assert_eq!(fake.asked("SET key 1").len(), 3, "{line}");
        }
    }

    #[tokio::test]
    async fn what_never_ends_is_given_up_with_a_known_outcome() {
        let fake = Fake::start(|command, _| match command {
            "SET key 1" => fake::error("LOADING x"),
            _ => Say::Usual,
        });
        let options = ValkeyOptions { call_timeout: Duration::from_millis(200), ..fake.options() };
        let client = fake::connect(&options).await.unwrap();
        let error = set(&client).await.unwrap_err();
        let known = matches!(error, EngineError::Transport { outcome_unknown: false, .. });
        assert!(known && error.to_string().contains("LOADING x"), "{error:?}");
    }

    #[tokio::test]
    async fn a_lost_answer_is_told_and_not_repeated() {
        let fake = Fake::start(|command, before| match (command, before) {
            ("SET key 1", 0) => Say::Nothing,
            _ => Say::Usual,
        });
        let client = fake.client().await;
        let error = set(&client).await.unwrap_err();
        let unknown = matches!(error, EngineError::Transport { outcome_unknown: true, .. });
        assert!(unknown, "{error:?}");
        assert_eq!(fake.asked("SET key 1").len(), 1);
        assert_eq!(set(&client).await, Ok(Value::Okay), "over a new connection");
    }

    #[tokio::test]
    async fn a_missing_library_is_loaded_and_the_call_repeated() {
        let fake = Fake::start(|command, before| match (command, before) {
            ("FCALL_RO ff_version 0", 1) => fake::error("ERR Function not found"),
            ("SET key 1", 0) => fake::error("ERR Function not found"),
            _ => Say::Usual,
        });
        assert_eq!(set(&fake.client().await).await, Ok(Value::Okay));
        assert_eq!(fake.asked("FUNCTION LOAD"), ["FUNCTION LOAD code"]);
    }

    #[tokio::test]
    async fn an_older_library_is_replaced_and_a_newer_one_is_not() {
        for (found, replaced) in [(4, true), (7, false)] {
            let fake = Fake::start(move |command, before| match (command, before) {
                ("FCALL_RO ff_version 0", 1) => fake::version(found, "other"),
                ("SET key 1", 0) => fake::error("FFCALLVERSION x"),
                _ => Say::Usual,
            });
            let outcome = set(&fake.client().await).await;
            assert_eq!(outcome.is_ok(), replaced, "{found}: {outcome:?}");
            let loads = fake.asked("FUNCTION LOAD REPLACE code").len();
            assert_eq!(loads, usize::from(replaced), "{found}");
        }
    }

    #[tokio::test]
    async fn redirections_are_followed() {
        let target = Fake::start(|_, _| Say::Usual);
        let port = target.port;
        for word in ["MOVED", "ASK"] {
            let fake = Fake::start(move |command, before| match (command, before) {
                ("INFO cluster", _) => fake::cluster_info(),
                ("CLUSTER SLOTS", 1..) if word == "MOVED" => Say::Reply(fake::all_slots(port)),
                ("CLUSTER SLOTS", _) => Say::AllSlots,
                ("SET key 1", _) => fake::error(&format!("{word} 12539 127.0.0.1:{port}")),
                _ => Say::Usual,
            });
            let options = ValkeyOptions { cluster: true, ..fake.options() };
            let client = fake::connect(&options).await.unwrap();
            assert_eq!(set(&client).await, Ok(Value::Okay), "{word}");
            assert_eq!(fake.asked("SET key 1").len(), 1, "{word}");
        }
        assert_eq!((target.asked("SET key 1").len(), target.asked("ASKING").len()), (2, 1));
    }
}
