//! Wake tokens: what one process tells others of work, and the claims that wait in it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ff_core::error::EngineError;
use ff_core::id::Namespace;

use crate::client::slot_of;
use crate::keys::split_queue;
use crate::reply;
use crate::store::Shared;

/// As in `lua/lib/wake.lua`.
const TOKENS_MOST: usize = 8;

/// As in `lua/lib/wake.lua`: a list that nobody takes from goes by itself, and so does the inbox of a
/// process that is no more.
const LIST_MS: u64 = 60_000;

/// In place of a partition: more has come than there are tokens, so it may stand anywhere.
const ELSEWHERE: u16 = u16::MAX;

/// Something stands in a queue of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) namespace: Namespace,
    pub(crate) queue: String,
    pub(crate) partition: u16,
}

impl Token {
    /// What was popped from the list of a queue.
    pub(crate) fn read(
        namespace: &Namespace,
        queue: &str,
        popped: &redis::Value,
    ) -> Result<Self, EngineError> {
        let (namespace, queue) = (namespace.clone(), queue.to_owned());
        Ok(Self { namespace, queue, partition: reply::partition(popped)? })
    }

    /// Whether it names a partition.
    pub(crate) const fn is_exact(&self) -> bool {
        self.partition != ELSEWHERE
    }

    /// Lets claims of this process know where to look.
    fn note(&self, shared: &Shared) {
        let (_, class) = split_queue(&self.queue);
        if let Some(required) = shared.classes.known(class) {
            shared.views.note_token(&self.queue, self.partition, required);
        }
    }

    /// Gives it to a waiting claim, here or elsewhere.
    pub(crate) fn hand_on(&self, shared: &Arc<Shared>) {
        if !shared.waiters.wake(&shared.classes, self) {
            push(shared, self);
        }
    }
}

/// Tokens that a claim acts on. If it fails or is given up, they are handed on.
pub(crate) struct InHand<'a> {
    shared: &'a Arc<Shared>,
    tokens: Vec<Token>,
}

impl<'a> InHand<'a> {
    pub(crate) fn new(shared: &'a Arc<Shared>, tokens: Vec<Token>) -> Self {
        Self { shared, tokens }
    }

    /// Notes where they point to; false when that is nowhere in particular.
    pub(crate) fn point(&self) -> bool {
        let exact = self.tokens.iter().filter(|token| token.is_exact());
        exact.clone().for_each(|token| token.note(self.shared));
        !self.tokens.is_empty() && exact.count() == self.tokens.len()
    }

    /// Somebody has looked since they came, and there was nothing.
    pub(crate) fn spend(mut self) {
        self.tokens.clear();
    }

    /// Their claim has found something: whatever may still be there is handed on. False: nothing.
    pub(crate) fn pass_on(mut self) -> bool {
        let views = &self.shared.views;
        self.tokens.retain(|it| !it.is_exact() || views.has_work(it.partition, &it.queue));
        !self.tokens.is_empty()
    }
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.tokens.iter().for_each(|token| token.hand_on(self.shared));
    }
}

/// What became ready and was left to a caller that claims right afterwards. Whatever that one does
/// not take is told to others, also when it never gets to its claim.
pub(crate) struct Left {
    shared: Arc<Shared>,
    tokens: Vec<Token>,
}

impl Left {
    pub(crate) fn new(shared: &Arc<Shared>, tokens: Vec<Token>) -> Self {
        Self { shared: Arc::clone(shared), tokens }
    }

    /// The caller has claimed, and its view knows what is still there.
    pub(crate) fn claimed(mut self) {
        let views = &self.shared.views;
        self.tokens.retain(|token| views.may_have_work(token.partition, &token.queue));
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        self.tokens.iter().for_each(|token| token.hand_on(&self.shared));
    }
}

/// Partitions whose tokens are about to be pushed, by the key of their list: what comes at the same
/// time goes together.
#[derive(Debug, Default)]
pub(crate) struct Outbox(Mutex<HashMap<String, Vec<u16>>>);

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<u16>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True: the first for its list.
    fn add(&self, key: &str, partition: u16) -> bool {
        let mut lists = self.lock();
        let list = lists.entry(key.to_owned()).or_default();
        // One that names no partition stands for all that have no room.
        if list.len() < TOKENS_MOST {
            list.push(if list.len() + 1 < TOKENS_MOST { partition } else { ELSEWHERE });
        }
        list.len() == 1
    }
}

/// Pushes a token without waiting for it; the end of each turn finds what is lost.
pub(crate) fn push(shared: &Arc<Shared>, token: &Token) {
    // Also called when something is dropped, perhaps with the runtime itself.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let key = shared.keys.wake(&token.namespace, &token.queue);
    if shared.outbox.add(&key, token.partition) {
        runtime.spawn(send(Arc::clone(shared), key));
    }
}

async fn send(shared: Arc<Shared>, key: String) {
    // Who is about to come goes along.
    tokio::task::yield_now().await;
    let tokens = shared.outbox.lock().remove(&key).unwrap_or_default();
    if let Err(error) = push_all(&shared, &key, &tokens).await {
        tracing::debug!(%error, "a wake token was lost");
    }
}

/// A list that is full has one that names no partition, like the functions leave it.
async fn push_all(shared: &Shared, key: &str, tokens: &[u16]) -> Result<(), EngineError> {
    let slot = slot_of(key.as_bytes());
    let mut push = redis::cmd("LPUSH");
    push.arg(key).arg(tokens);
    let length = reply::number(&shared.send_lightly(slot, &push).await?)?;
    let (is_new, is_full) = (length <= tokens.len() as i64, length >= TOKENS_MOST as i64);
    let mut commands = Vec::new();
    if is_full {
        let mut fill = redis::cmd("LPUSH");
        fill.arg(key).arg(ELSEWHERE);
        let mut trim = redis::cmd("LTRIM");
        trim.arg(key).arg(0).arg(TOKENS_MOST - 1);
        commands.extend([fill, trim]);
    }
    if is_new || is_full {
        commands.push(expiry(key));
    }
    for command in commands {
        shared.send_lightly(slot, &command).await?;
    }
    Ok(())
}

/// Lets a list go by itself.
pub(crate) fn expiry(key: &str) -> redis::Cmd {
    let mut expire = redis::cmd("PEXPIRE");
    expire.arg(key).arg(LIST_MS);
    expire
}
