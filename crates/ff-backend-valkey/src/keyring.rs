//! The keys that sign waitpoint tokens: one record, of which every process holds a copy.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ff_core::error::EngineError;
use ff_core::id::Kid;
use ff_core::machine::{self, Overlay};
use ff_core::operation::{Command, Reply};
use ff_core::time::TimestampMs;
use ff_core::token::{Keyring, Reconciled, Secret};

use crate::client::{Client, slot_of};
use crate::error::OpenError;
use crate::keys::Keys;
use crate::store::Shared;
use crate::{emptied, read, reply};

/// How old the copy may be.
const AGE_MAX: Duration = Duration::from_secs(5);

/// How often a change is decided again because another process made one.
const TRIES_MOST: usize = 20;

/// This process's copy.
#[derive(Debug)]
pub(crate) struct Copy(Mutex<(Arc<Keyring>, Instant)>);

impl Copy {
    pub(crate) fn new(keyring: Keyring) -> Self {
        Self(Mutex::new((Arc::new(keyring), Instant::now())))
    }

    /// The copy, unless it is too old.
    pub(crate) fn fresh(&self) -> Option<Arc<Keyring>> {
        let copy = self.lock();
        (copy.1.elapsed() < AGE_MAX).then(|| Arc::clone(&copy.0))
    }

    /// Whether it has the key, retired or not.
    pub(crate) fn knows(&self, kid: &Kid) -> bool {
        self.lock().0.kids().iter().any(|known| known.kid == *kid)
    }

    /// Takes what a read that began then has found, unless this process has changed it since.
    fn take(&self, read: Arc<Keyring>, begun: Instant) -> Arc<Keyring> {
        let mut copy = self.lock();
        if copy.1 <= begun {
            *copy = (read, Instant::now());
        }
        Arc::clone(&copy.0)
    }

    fn set(&self, keyring: &Arc<Keyring>) {
        *self.lock() = (Arc::clone(keyring), Instant::now());
    }

    fn lock(&self) -> MutexGuard<'_, (Arc<Keyring>, Instant)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stored record, made by the first boot and compared by every other.
pub(crate) async fn settle(
    client: &Client,
    keys: &Keys,
    configured: Option<&Secret>,
) -> Result<Keyring, OpenError> {
    let slot = slot_of(keys.keyring().as_bytes());
    let server = |error: EngineError| client.unopened(slot, error);
    let stored = get(client, keys).await.map_err(server)?;
    let stored = match stored {
        Some((_, stored)) => stored,
        None => {
            let first = Keyring::first(configured, |bytes| {
                getrandom::fill(bytes).map_err(|error| OpenError::Server(error.to_string()))
            })?;
            put(client, keys, &Bytes::new(), &first).await.map_err(server)?;
            // Another process may have been faster.
            let stored = get(client, keys).await.map_err(server)?;
            stored.ok_or_else(|| OpenError::Damaged("the keyring is gone".to_owned()))?.1
        }
    };
    if stored.reconcile(configured)? == Reconciled::RotatedAway {
        tracing::warn!("the configured waitpoint secret was rotated away and is not used");
    }
    Ok(stored)
}

/// Reads the record anew.
pub(crate) async fn refresh(shared: &Shared) -> Result<Arc<Keyring>, EngineError> {
    let begun = Instant::now();
    let read = Arc::new(stored(shared).await?.1);
    Ok(shared.keyring.take(read, begun))
}

/// Carries out a command that changes the keyring.
pub(crate) async fn apply(shared: &Shared, command: &Command) -> Result<Reply, EngineError> {
    for _ in 0..TRIES_MOST {
        let (record, keyring) = stored(shared).await?;
        let now = now(shared).await?;
        let mut overlay = Overlay::new(Arc::clone(&shared.settings));
        overlay.supply_keyring(Arc::new(keyring));
        let step = machine::apply(&overlay, command, now)
            .map_err(|needs| EngineError::bug(format!("a keyring asked for {needs:?}")))?;
        let Some(changed) = step.changes.keyring else { return Ok(step.reply?) };
        if put(&shared.client, &shared.keys, &record, &changed).await? {
            shared.keyring.set(&changed);
            return Ok(step.reply?);
        }
    }
    Err(EngineError::unavailable("others keep changing the keyring; try again"))
}

/// Removes retired keys whose time is over. Should another process be faster, so much the better.
pub(crate) async fn sweep(shared: &Shared) -> Result<(), EngineError> {
    // A flushed server has none; retention has nothing to do with that.
    let Some((record, keyring)) = get(&shared.client, &shared.keys).await? else { return Ok(()) };
    if let Some(swept) = keyring.swept(now(shared).await?)
        && put(&shared.client, &shared.keys, &record, &swept).await?
    {
        shared.keyring.set(&Arc::new(swept));
    }
    Ok(())
}

async fn now(shared: &Shared) -> Result<TimestampMs, EngineError> {
    Ok(read::read_keys(shared, 0, Vec::new()).await?.0)
}

async fn stored(shared: &Shared) -> Result<(Bytes, Keyring), EngineError> {
    if let Some(stored) = get(&shared.client, &shared.keys).await? {
        return Ok(stored);
    }
    emptied::restore(shared).await?;
    let stored = get(&shared.client, &shared.keys).await?;
    stored.ok_or_else(|| EngineError::corruption("the store has lost its keyring"))
}

/// Writes this process's copy into a store that has none.
pub(crate) async fn restore(shared: &Shared) -> Result<(), EngineError> {
    let copy = Arc::clone(&shared.keyring.lock().0);
    put(&shared.client, &shared.keys, &Bytes::new(), &copy).await.map(|_| ())
}

async fn get(client: &Client, keys: &Keys) -> Result<Option<(Bytes, Keyring)>, EngineError> {
    let key = keys.keyring();
    let mut get = redis::cmd("GET");
    get.arg(&key);
    let Some(record) = reply::bytes(client.send(slot_of(key.as_bytes()), &get).await?)? else {
        return Ok(None);
    };
    let keyring = postcard::from_bytes(&record)
        .map_err(|error| EngineError::corruption(format!("{key} does not decode: {error}")))?;
    Ok(Some((record, keyring)))
}

/// Writes the record if it is still as it was read.
async fn put(
    client: &Client,
    keys: &Keys,
    before: &Bytes,
    keyring: &Keyring,
) -> Result<bool, EngineError> {
    let key = keys.keyring();
    let record = postcard::to_stdvec(keyring)
        .map_err(|error| EngineError::bug(format!("the keyring does not encode: {error}")))?;
    let mut call = redis::cmd("FCALL");
    call.arg("ff_keyring").arg(1).arg(&key).arg(client.call_version()).arg(&before[..]).arg(record);
    let written = client.send(slot_of(key.as_bytes()), &call).await?;
    Ok(reply::number(&written)? == 1)
}
