//! Read-only calls that look at all partitions: one for each primary.
//!
//! While a slot moves to another node, a read over all slots of a node fails as a whole. Then the
//! node is asked partition by partition, and what cannot be read at that moment is left out, or
//! waited for, as the caller needs.

use std::time::Duration;

use ff_core::error::EngineError;
use redis::{Cmd, Value};

use crate::client::Primary;
use crate::store::{Shared, join_all};

/// Pause before a partition that is on its way is asked for again.
const REST: Duration = Duration::from_millis(20);

/// Times that it is asked for again.
const TRIES: usize = 250;

/// What to do about partitions that cannot be read at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Answer without them: the next look will see them.
    LeaveOut,
    /// Wait for them.
    Wait,
}

impl Shared {
    /// Calls a function on every primary, each for the partitions that it has. `arguments` follow
    /// those with which every function begins.
    pub(crate) async fn everywhere(
        &self,
        name: &str,
        missing: Missing,
        arguments: impl Fn(&mut Cmd, &[u16]),
    ) -> Result<Vec<Value>, EngineError> {
        let mut left: Vec<u16> = (0..self.settings.partitions.flow).collect();
        let mut replies = Vec::new();
        for _ in 0..TRIES {
            let whole = self.round(name, &left, &arguments, |part| vec![part.to_vec()]).await?;
            replies.extend(whole.replies);
            if whole.failed.is_empty() {
                return Ok(replies);
            }
            let one_by_one = |part: &[u16]| part.iter().map(|partition| vec![*partition]).collect();
            let singly = self.round(name, &whole.failed, &arguments, one_by_one).await?;
            replies.extend(singly.replies);
            left = singly.failed;
            if left.is_empty() || missing == Missing::LeaveOut {
                return Ok(replies);
            }
            tokio::time::sleep(REST).await;
        }
        let detail = format!("partitions {left:?} cannot be read: their slots are moving");
        Err(EngineError::Transport { outcome_unknown: false, detail })
    }

    /// One round of calls for these partitions, which `cut` divides for each node.
    async fn round(
        &self,
        name: &str,
        partitions: &[u16],
        arguments: &impl Fn(&mut Cmd, &[u16]),
        cut: impl Fn(&[u16]) -> Vec<Vec<u16>>,
    ) -> Result<Round, EngineError> {
        let mut calls: Vec<(Primary, Vec<u16>, Cmd)> = Vec::new();
        let mut unowned: Vec<u16> = partitions.to_vec();
        for primary in self.client.primaries() {
            let owned: Vec<u16> = partitions
                .iter()
                .copied()
                .filter(|partition| primary.owns(self.keys.slot(*partition)))
                .collect();
            unowned.retain(|partition| !owned.contains(partition));
            for part in cut(&owned) {
                let Some(first) = part.first() else { continue };
                let mut call = self.read_function(name);
                call.arg(1).arg(self.keys.events(*first));
                self.begin(&mut call);
                arguments(&mut call, &part);
                calls.push((primary.clone(), part, call));
            }
        }
        let sending = calls.iter().map(|(node, _, call)| self.client.send_to(node, call));
        let mut round = Round { replies: Vec::new(), failed: unowned };
        for ((_, part, _), reply) in calls.iter().zip(join_all(sending).await) {
            match reply {
                Ok(reply) => round.replies.push(reply),
                Err(EngineError::Transport { outcome_unknown: false, .. })
                    if self.client.is_cluster() && !self.is_closing() =>
                {
                    round.failed.extend(part);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(round)
    }
}

struct Round {
    replies: Vec<Value>,
    /// Partitions that could not be read.
    failed: Vec<u16>,
}
