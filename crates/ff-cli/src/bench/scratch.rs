//! Stores that a run makes for itself on a server, and takes away again.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ff_backend_valkey::{ValkeyOptions, ValkeyStore};
use ff_core::backend::Upkeep as _;
use uuid::Uuid;

use super::progress;

const CLOSING: Duration = Duration::from_secs(5);

/// Knows every prefix under which this run may have left keys. Clones know the same.
#[derive(Clone)]
pub(crate) struct Scratch {
    /// What all of them begin with.
    stem: String,
    made: Arc<Mutex<Vec<ValkeyOptions>>>,
}

impl Default for Scratch {
    fn default() -> Self {
        let stem = format!("ff-bench-{:08x}", Uuid::now_v7().as_u128() as u32);
        Self { stem, made: Arc::default() }
    }
}

impl Scratch {
    /// A store of its own on the server of `options`, the same for the same name.
    pub(crate) fn store(&self, name: &str, options: &ValkeyOptions) -> ValkeyOptions {
        let dash = if name.is_empty() { "" } else { "-" };
        let options =
            ValkeyOptions { prefix: format!("{}{dash}{name}", self.stem), ..options.clone() };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.iter().all(|known| known.prefix != options.prefix) {
            made.push(options.clone());
        }
        options
    }

    /// Removes the keys of all of them. A run is not worth less because of what it left behind, so
    /// failing only tells where that is.
    pub(crate) async fn remove(&self) {
        let made = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        if made.is_empty() {
            return;
        }
        let spinner = progress::spinner("removing what the run wrote");
        for options in made {
            let prefix = options.prefix.clone();
            if let Err(error) = remove(options).await {
                tracing::warn!(%prefix, %error, "keys of this run are left on the server");
            }
        }
        spinner.finish_and_clear();
    }
}

/// By a store of its own: the one that wrote may be closed, or in the middle of something.
async fn remove(options: ValkeyOptions) -> anyhow::Result<()> {
    let store = ValkeyStore::open(options).await?;
    store.remove_everything().await?;
    store.shutdown_prepare(CLOSING).await?;
    Ok(())
}
