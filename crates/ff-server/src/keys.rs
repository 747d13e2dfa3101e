//! API keys as the store has them, remembered for a moment.
//!
//! Every answer is younger than [`FRESH`], counted from before it was asked for, so a key that is taken
//! away anywhere is refused here within that time and one look. Of many who ask for the same key one
//! looks; ids that nobody has are remembered apart, and looking for unknown ids is rationed: guessing
//! neither floods the store nor pushes out what is in use.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ff_core::backend::{Backend, BackendExt as _};
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::id::KeyId;
use ff_core::read::{GetKey, ListKeys};
use ff_core::recent::Recent;
use ff_core::shared_look::SharedLook;
use ff_core::state::SecretHash;
use tokio::time::timeout;

use crate::bucket::Bucket;
use crate::caller::Caller;

/// How long an answer counts. Twice in the second within which a deletion must be obeyed.
const FRESH: Duration = Duration::from_millis(500);
/// How long a look may take where the last answer will do.
const PATIENCE: Duration = Duration::from_millis(300);
/// Keys of one generation that are remembered.
const REMEMBERED: usize = 10_000;
/// Unknown ids that the store is asked for in a second.
const LOOKS_PER_SECOND: u32 = 200;

/// A key that the store has, as it was found.
pub(crate) struct Found {
    pub(crate) secret: SecretHash,
    pub(crate) caller: Caller,
    at: Instant,
    /// How long it lives from then on.
    lives: Option<Duration>,
}

impl Found {
    pub(crate) fn is_over(&self) -> bool {
        self.lives.is_some_and(|lives| self.at.elapsed() >= lives)
    }
}

/// The last answer to one question; one asker at a time looks anew.
struct Answered<T> {
    last: Mutex<Option<(Instant, T)>>,
    looking: SharedLook,
}

impl<T> Default for Answered<T> {
    fn default() -> Self {
        Self { last: Mutex::new(None), looking: SharedLook::default() }
    }
}

impl<T: Clone> Answered<T> {
    fn last(&self) -> Option<(Instant, T)> {
        locked(&self.last).clone()
    }

    /// An answer that counts for who came then: one that is fresh, or was asked for since.
    fn counts(&self, came: Instant) -> Option<T> {
        let counts = |at: Instant| at >= came || at.elapsed() < FRESH;
        self.last().filter(|(at, _)| counts(*at)).map(|(_, answer)| answer)
    }

    fn tell(&self, at: Instant, answer: T) {
        *locked(&self.last) = Some((at, answer));
    }

    async fn ask(
        &self,
        look: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<T, EngineError> {
        let came = Instant::now();
        let look = async {
            let at = Instant::now();
            let answer = look.await?;
            self.tell(at, answer.clone());
            Ok(answer)
        };
        self.looking.ask(|| self.counts(came), look).await
    }
}

type Remembered = Arc<Answered<Option<Arc<Found>>>>;

pub(crate) struct Keys {
    known: Mutex<Recent<KeyId, Remembered>>,
    unknown: Mutex<Recent<KeyId, Instant>>,
    looks: Mutex<Bucket>,
    any: Answered<bool>,
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            known: Mutex::new(Recent::new(REMEMBERED)),
            unknown: Mutex::new(Recent::new(REMEMBERED)),
            looks: Mutex::new(Bucket::full(LOOKS_PER_SECOND, Instant::now())),
            any: Answered::default(),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Keys {
    /// Whether the store has any key at all. Who does not answer for its keys makes none, so what was
    /// found last counts until it does: a node that hangs stops nobody but its own.
    pub(crate) async fn any(&self, backend: &dyn Backend) -> Result<bool, EngineError> {
        let asked = self.any.ask(async {
            let page = backend.ask(ListKeys { within: None, cursor: None, limit: 1 }).await?;
            Ok(!page.items.is_empty())
        });
        let Some((_, last)) = self.any.last() else { return asked.await };
        match timeout(PATIENCE, asked).await {
            Ok(Ok(any)) => Ok(any),
            Ok(Err(error)) if !error.is_retryable() => Err(error),
            _ => Ok(last),
        }
    }

    /// The key with this id.
    pub(crate) async fn find(
        &self,
        backend: &dyn Backend,
        id: &KeyId,
    ) -> Result<Option<Arc<Found>>, EngineError> {
        let known = locked(&self.known).get(id);
        let remembered = match known {
            Some(known) => known,
            None if self.is_unknown(id) => return Ok(None),
            None => {
                self.ration()?;
                Remembered::default()
            }
        };
        let found = remembered.ask(look(backend, id)).await?;
        if found.is_some() {
            // Only guesses are rationed: a fleet of keys that comes at once is let in.
            locked(&self.looks).give_back(LOOKS_PER_SECOND);
            locked(&self.known).keep(id.clone(), remembered);
        } else {
            locked(&self.known).forget(id);
            locked(&self.unknown).keep(id.clone(), Instant::now());
        }
        Ok(found)
    }

    fn is_unknown(&self, id: &KeyId) -> bool {
        locked(&self.unknown).get(id).is_some_and(|at| at.elapsed() < FRESH)
    }

    fn ration(&self) -> Result<(), Refusal> {
        let taken = locked(&self.looks).take(LOOKS_PER_SECOND, Instant::now());
        taken.map_err(|_| Refusal::new(Code::RateLimited, "too many unknown keys are shown"))
    }

    /// A key was made here: whoever has none is refused from this moment on.
    pub(crate) fn made(&self, id: &KeyId) {
        locked(&self.unknown).forget(id);
        self.any.tell(Instant::now(), true);
    }

    /// A key was taken away here: the next who shows it is refused.
    pub(crate) fn gone(&self, id: &KeyId) {
        locked(&self.known).forget(id);
        locked(&self.unknown).keep(id.clone(), Instant::now());
    }
}

/// Looks in the store. How long a key lives is told by the store's clock.
async fn look(backend: &dyn Backend, id: &KeyId) -> Result<Option<Arc<Found>>, EngineError> {
    let at = Instant::now();
    let Some(key) = backend.ask(GetKey { key_id: id.clone() }).await? else { return Ok(None) };
    let lives = match key.expires_at {
        Some(end) => {
            let left = end.0.saturating_sub(backend.server_time_ms().await?.0);
            Some(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
        }
        None => None,
    };
    let caller = Caller::key(key.key_id, &key.name, Arc::new(key.access));
    Ok(Some(Arc::new(Found { secret: key.secret, caller, at, lives })))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use ff_backend_sqlite::{SqliteOptions, SqliteStore};
    use ff_core::backend::Upkeep as _;
    use ff_core::operation::CreateKey;
    use ff_core::state::Access;

    use super::*;

    fn id(n: u32) -> KeyId {
        KeyId::new(format!("{n:08}")).unwrap()
    }

    #[tokio::test]
    async fn nobody_waits_for_a_store_that_is_away_longer_than_one_look() {
        let away = || EngineError::Unavailable { detail: "it is away".to_owned() };
        let (answered, looks) = (Answered::<bool>::default(), AtomicU32::new(0));
        let ask = || {
            answered.ask(async {
                looks.fetch_add(1, Ordering::Relaxed);
                // All who ask have come before it fails.
                tokio::task::yield_now().await;
                Err(away())
            })
        };
        let told = tokio::join!(ask(), ask(), ask());
        assert_eq!(told, (Err(away()), Err(away()), Err(away())));
        assert_eq!(looks.into_inner(), 1);
    }

    /// A store that is closed answers nothing any more.
    #[tokio::test]
    async fn what_was_found_last_counts_while_the_store_is_away() {
        let store = SqliteStore::open(SqliteOptions::memory()).unwrap();
        store.shutdown_prepare(Duration::from_secs(5)).await.unwrap();
        let keys = Keys::default();
        assert!(keys.any(&store).await.is_err(), "nothing was found yet");
        let long_ago = Instant::now().checked_sub(2 * FRESH).unwrap();
        for last in [true, false] {
            keys.any.tell(long_ago, last);
            assert_eq!(keys.any(&store).await, Ok(last));
        }
    }

    #[test]
    fn an_answer_that_was_asked_for_since_counts_however_long_it_took() {
        let answered = Answered::default();
        let long_ago = Instant::now().checked_sub(2 * FRESH).unwrap();
        answered.tell(long_ago, true);
        assert_eq!(answered.counts(long_ago), Some(true));
        assert_eq!(answered.counts(Instant::now()), None);
    }

    #[tokio::test]
    async fn guessing_is_rationed_and_shuts_out_nobody_who_is_known() {
        let store = SqliteStore::open(SqliteOptions::memory()).unwrap();
        let key_id = id(99_999_999);
        let create = CreateKey {
            key_id: key_id.clone(),
            name: "k".to_owned(),
            secret: SecretHash::of(b"secret"),
            access: Access::all(),
            expires_at: None,
        };
        let keys = Keys::default();
        assert!(!keys.any(&store).await.unwrap());
        store.call(create).await.unwrap();
        keys.made(&key_id);
        assert!(keys.any(&store).await.unwrap(), "told at once");
        assert!(keys.find(&store, &key_id).await.unwrap().is_some());
        let begun = Instant::now();
        let (mut looked, mut refused) = (0, 0);
        for n in 0..5_000 {
            match keys.find(&store, &id(n)).await {
                Ok(found) => {
                    assert!(found.is_none());
                    looked += 1;
                }
                Err(error) => {
                    assert_eq!(error.code(), Code::RateLimited);
                    refused += 1;
                }
            }
        }
        let most = f64::from(LOOKS_PER_SECOND) * (1.0 + begun.elapsed().as_secs_f64());
        assert!(f64::from(looked) <= most + 1.0, "{looked} looks, {refused} refused");
        assert!(keys.find(&store, &key_id).await.unwrap().is_some());
        store.call(ff_core::operation::DeleteKey { key_id: key_id.clone() }).await.unwrap();
        keys.gone(&key_id);
        assert!(keys.find(&store, &key_id).await.unwrap().is_none());
    }
}
