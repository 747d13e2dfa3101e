//! Calls that count only when the replicas have them: `durability=replica`.
//!
//! `WAIT` speaks of what its own connection wrote, and blocks it. So each node has a few
//! connections, and a task on each that takes all calls waiting, sends them in one flight with a
//! `WAIT` behind them, and answers when it is back. While all are under way the next calls gather,
//! so groups grow with the load.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::{Cmd, Pipeline, Value};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use super::address::Address;
use super::connection::{Connection, Failure};
use super::ground::Ground;
use super::info::Info;

const LANES: usize = 8;
const GROUP_COMMANDS_MAX: usize = 128;
/// One `WAIT`. After each it is asked anew which replicas there are, so a replica that went away
/// holds calls up for no longer than this.
const ROUND: Duration = Duration::from_millis(500);
/// How old the count of replicas may be.
const COUNT_AGE_MAX: Duration = Duration::from_secs(1);

/// The way in: a queue before the lanes of one node.
pub(super) struct Groups {
    /// Bounded by the callers: each waits for its own entry.
    queue: mpsc::UnboundedSender<Waiting>,
    ground: Arc<Ground>,
    _lanes: JoinSet<()>,
}

struct Waiting {
    commands: Vec<Cmd>,
    deadline: Instant,
    answer: oneshot::Sender<Result<Vec<Value>, Failure>>,
}

impl Waiting {
    /// What nobody waits for any more is not sent.
    fn in_time(self) -> Option<Self> {
        if self.answer.is_closed() {
            return None;
        }
        if Instant::now() < self.deadline {
            return Some(self);
        }
        let reason = "too many calls wait for the replicas".to_owned();
        let _ = self.answer.send(Err(Failure::NotSent(reason)));
        None
    }
}

impl Groups {
    pub(super) fn start(ground: &Arc<Ground>, address: &Address) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let queue = Arc::new(Mutex::new(receiver));
        let replicas = Arc::new(Replicas::default());
        let mut lanes = JoinSet::new();
        for _ in 0..LANES {
            let lane = Lane {
                ground: Arc::clone(ground),
                address: address.clone(),
                queue: Arc::clone(&queue),
                replicas: Arc::clone(&replicas),
                connection: None,
            };
            lanes.spawn(lane.run());
        }
        Self { queue: sender, ground: Arc::clone(ground), _lanes: lanes }
    }

    /// One after the other, without somebody else's command between them.
    pub(super) async fn call(
        &self,
        commands: Vec<Cmd>,
        deadline: Instant,
    ) -> Result<Vec<Value>, Failure> {
        let (answer, answered) = oneshot::channel();
        let waiting = Waiting { commands, deadline, answer };
        if self.ground.is_closed() || self.queue.send(waiting).is_err() {
            return Err(Failure::Closed);
        }
        // The lane knows better what became of the call, so it has the first word.
        match timeout_at(deadline + ROUND, answered).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(Failure::unknown("the store was closed before valkey answered")),
            Err(_) => Err(Failure::unknown("valkey did not answer in time")),
        }
    }
}

/// How many replicas of a node are online, as far as its lanes know.
#[derive(Default)]
struct Replicas {
    online: AtomicUsize,
    asked_at: std::sync::Mutex<Option<Instant>>,
}

impl Replicas {
    /// True for one lane at a time.
    fn is_due(&self) -> bool {
        let mut asked_at = self.asked_at.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let due = asked_at.is_none_or(|at| at.elapsed() > COUNT_AGE_MAX);
        if due {
            *asked_at = Some(Instant::now());
        }
        due
    }

    fn learn(&self, answer: Value) -> usize {
        let online = Info::read(answer).replicas_online();
        self.online.store(online, Ordering::Relaxed);
        online
    }

    fn online(&self) -> usize {
        self.online.load(Ordering::Relaxed)
    }
}

struct Lane {
    ground: Arc<Ground>,
    address: Address,
    queue: Arc<Mutex<mpsc::UnboundedReceiver<Waiting>>>,
    replicas: Arc<Replicas>,
    connection: Option<Connection>,
}

/// Answers to all commands of a group, and whether enough replicas have what they wrote.
struct Carried {
    replies: Vec<Value>,
    acknowledged: Result<(), Failure>,
}

impl Lane {
    async fn run(mut self) {
        while let Some(group) = self.gather().await {
            let outcome = self.carry(&group).await;
            if outcome.is_err() {
                self.connection = None;
            }
            answer(group, outcome);
        }
    }

    /// All calls that wait. None when the store is closed and nobody waits any more.
    async fn gather(&self) -> Option<Vec<Waiting>> {
        let mut queue = self.queue.lock().await;
        loop {
            let first = tokio::select! {
                biased;
                first = queue.recv() => first?,
                () = self.ground.until_closed() => return None,
            };
            let mut group = Vec::new();
            let mut commands = 0;
            let mut next = Some(first);
            while let Some(waiting) = next {
                if let Some(waiting) = waiting.in_time() {
                    commands += waiting.commands.len();
                    group.push(waiting);
                }
                next = if commands < GROUP_COMMANDS_MAX { queue.try_recv().ok() } else { None };
            }
            if !group.is_empty() {
                return Some(group);
            }
        }
    }

    async fn carry(&mut self, group: &[Waiting]) -> Result<Carried, Failure> {
        let deadlines = || group.iter().map(|waiting| waiting.deadline);
        let soonest = deadlines().min().unwrap_or_else(Instant::now);
        // Once it is sent, who has time left waits on; the others are told that the outcome is unknown.
        let deadline = deadlines().max().unwrap_or(soonest);
        let (mut connection, mut needed) = self.prepare(soonest).await?;
        let commands = group.iter().flat_map(|waiting| &waiting.commands);
        let mut flight = Pipeline::new();
        for command in commands {
            flight.add_command(command.clone());
        }
        let sent = flight.len();
        let asks = self.replicas.is_due();
        if asks {
            flight.add_command(Info::command("replication"));
        }
        flight.add_command(wait(needed, deadline));
        let mut replies = connection.call_all(&flight).await?;
        let mut behind = replies.split_off(sent.min(replies.len())).into_iter();
        if asks {
            // One that came meanwhile must have it too.
            needed = needed.max(self.replicas.learn(behind.next().unwrap_or_default()));
        }
        let count = acknowledged(&behind.next().unwrap_or_default());
        let acknowledged = self.acknowledge(&mut connection, needed, count, deadline).await;
        let is_demoted = |reply: &Value| matches!(reply, Value::ServerError(error) if error.code() == "READONLY");
        if !replies.iter().any(is_demoted) {
            self.connection = Some(connection);
        }
        Ok(Carried { replies, acknowledged })
    }

    /// A connection, and how many replicas must acknowledge. Nothing of the group is sent by this.
    async fn prepare(&mut self, deadline: Instant) -> Result<(Connection, usize), Failure> {
        let prepared = timeout_at(deadline, async {
            let mut connection = self.connect().await?;
            let needed = self.replicas_needed(&mut connection, deadline).await?;
            Ok((connection, needed))
        });
        prepared.await.unwrap_or_else(|_| {
            Err(Failure::NotSent(format!("{} did not answer in time", self.address)))
        })
    }

    async fn connect(&mut self) -> Result<Connection, Failure> {
        match self.connection.take() {
            Some(connection) if !connection.is_lost() => Ok(connection),
            _ => {
                let opened = self.ground.open_primary(&self.address).await;
                let mut connection = opened.map_err(|obstacle| {
                    Failure::NotSent(format!("no connection to {}: {obstacle}", self.address))
                })?;
                // The server's own word on the replicas must come before our patience ends.
                connection.set_patience(self.ground.call_timeout + ROUND);
                Ok(connection)
            }
        }
    }

    /// All that are online. With none there is nobody to acknowledge, so nothing is sent until one
    /// comes back: a restarted primary is without its replicas for a moment.
    async fn replicas_needed(
        &self,
        connection: &mut Connection,
        deadline: Instant,
    ) -> Result<usize, Failure> {
        let mut online = self.replicas.online();
        while online == 0 {
            let answer = connection.call(&Info::command("replication")).await;
            let answer = answer.map_err(|failure| match failure {
                Failure::Unknown(error) => Failure::NotSent(error.to_string()),
                other => other,
            })?;
            online = self.replicas.learn(answer);
            if online > 0 {
                break;
            }
            if Instant::now() + ROUND > deadline {
                return Err(Failure::NotSent(format!(
                    "{} has no replica, and durability=replica needs one",
                    self.address
                )));
            }
            sleep(ROUND / 5).await;
        }
        Ok(online)
    }

    /// Waits on while fewer replicas have it than there are.
    async fn acknowledge(
        &self,
        connection: &mut Connection,
        mut needed: usize,
        mut count: usize,
        deadline: Instant,
    ) -> Result<(), Failure> {
        while count < needed {
            if Instant::now() >= deadline {
                return Err(Failure::unknown(format!(
                    "{count} of {needed} replicas of {} acknowledged the write in {:?}",
                    self.address, self.ground.call_timeout
                )));
            }
            let mut flight = Pipeline::with_capacity(2);
            flight.add_command(wait(needed, deadline)).add_command(Info::command("replication"));
            let mut answers = connection.call_all(&flight).await?.into_iter();
            count = acknowledged(&answers.next().unwrap_or_default());
            needed = self.replicas.learn(answers.next().unwrap_or_default()).max(1);
        }
        Ok(())
    }
}

/// Until the deadline at the latest; 0 would be for ever.
fn wait(replicas: usize, deadline: Instant) -> Cmd {
    let rest = deadline.saturating_duration_since(Instant::now());
    let mut command = redis::cmd("WAIT");
    command.arg(replicas).arg(rest.min(ROUND).as_millis().max(1) as u64);
    command
}

fn acknowledged(answer: &Value) -> usize {
    match answer {
        Value::Int(count) => usize::try_from(*count).unwrap_or(0),
        _ => 0,
    }
}

/// A call that the server refused was not carried out, whatever the replicas have.
fn answer(group: Vec<Waiting>, outcome: Result<Carried, Failure>) {
    let (replies, acknowledged) = match outcome {
        Ok(Carried { replies, acknowledged }) => (replies, acknowledged),
        Err(failure) => (Vec::new(), Err(failure)),
    };
    let mut replies = replies.into_iter();
    for waiting in group {
        let own: Vec<Value> = replies.by_ref().take(waiting.commands.len()).collect();
        let is_refused =
            !own.is_empty() && own.iter().all(|reply| matches!(reply, Value::ServerError(_)));
        let outcome = match &acknowledged {
            Err(failure) if !is_refused => Err(failure.clone()),
            _ => Ok(own),
        };
        // Who does not wait any more has given up; there is nobody to tell.
        let _ = waiting.answer.send(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Answer = oneshot::Receiver<Result<Vec<Value>, Failure>>;

    fn waiting(commands: usize) -> (Waiting, Answer) {
        let (answer, answered) = oneshot::channel();
        let commands = vec![redis::cmd("PING"); commands];
        (Waiting { commands, deadline: Instant::now(), answer }, answered)
    }

    fn moved() -> Value {
        redis::parse_redis_value(b"-MOVED 1 h:1\r\n").unwrap()
    }

    #[test]
    fn each_call_gets_its_own_replies() {
        let ((first, mut of_first), (second, mut of_second)) = (waiting(2), waiting(1));
        let replies = vec![Value::Int(1), Value::Int(2), Value::Int(3)];
        answer(vec![first, second], Ok(Carried { replies, acknowledged: Ok(()) }));
        assert_eq!(of_first.try_recv().unwrap().unwrap(), [Value::Int(1), Value::Int(2)]);
        assert_eq!(of_second.try_recv().unwrap().unwrap(), [Value::Int(3)]);
    }

    #[test]
    fn what_too_few_replicas_have_is_unknown_unless_it_was_refused() {
        let ((done, mut of_done), (refused, mut of_refused)) = (waiting(1), waiting(1));
        let replies = vec![Value::Int(1), moved()];
        let acknowledged = Err(Failure::unknown("0 of 1 replicas"));
        answer(vec![done, refused], Ok(Carried { replies, acknowledged }));
        let outcome = of_done.try_recv().unwrap();
        assert!(matches!(outcome, Err(Failure::Unknown(_))), "{outcome:?}");
        assert_eq!(of_refused.try_recv().unwrap().unwrap(), [moved()]);
    }

    #[test]
    fn a_group_that_was_not_sent_may_be_sent_again() {
        let (waiting, mut answered) = waiting(1);
        answer(vec![waiting], Err(Failure::NotSent("no connection".to_owned())));
        let outcome = answered.try_recv().unwrap();
        assert!(matches!(outcome, Err(Failure::NotSent(_))), "{outcome:?}");
    }

    #[test]
    fn who_waited_too_long_is_told_that_nothing_was_sent() {
        let (waiting, mut answered) = waiting(1);
        assert!(waiting.in_time().is_none());
        let outcome = answered.try_recv().unwrap();
        assert!(matches!(outcome, Err(Failure::NotSent(_))), "{outcome:?}");
    }
}
