//! What all requests share.

use std::sync::Arc;

use ff_api::system::AuditReport;
use ff_core::backend::Backend;
use ff_core::error::{Code, Refusal};
use ff_core::shared_look::SharedLook;
use ff_engine::{Ends, Shutdown};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use crate::cors::Origins;
use crate::depths::Depths;
use crate::failure::Failed;
use crate::keys::Keys;
use crate::namespaces::Namespaces;
use crate::options::ServerOptions;
use crate::rates::Rates;
use crate::rotas::Rotas;

pub(crate) struct App {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) options: ServerOptions,
    pub(crate) keys: Keys,
    pub(crate) rates: Rates,
    pub(crate) origins: Origins,
    pub(crate) namespaces: Namespaces,
    pub(crate) rotas: Rotas,
    /// Who waits for an execution or a flow to end.
    pub(crate) ends: Ends,
    /// What `/metrics` knows of lanes. Held while it looks: one at a time.
    pub(crate) depths: Mutex<Depths>,
    pub(crate) looking_at_depths: SharedLook,
    /// Held while the waitpoint secret is rotated: one at a time.
    pub(crate) rotation: Mutex<()>,
    /// Held while the store is audited: each audit walks all of it.
    pub(crate) auditing: Mutex<()>,
    pub(crate) last_audit: Mutex<Option<AuditReport>>,
    /// Long polls answer at once and streams end when it comes.
    pub(crate) shutdown: Shutdown,
    requests: Arc<Semaphore>,
    tails: Arc<Semaphore>,
}

impl App {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        options: ServerOptions,
        shutdown: Shutdown,
    ) -> Arc<Self> {
        Arc::new(Self {
            keys: Keys::default(),
            rates: Rates::new(options.requests_per_second_per_key),
            origins: Origins::new(&options.cors_origins, options.tls_cert.is_some()),
            namespaces: Namespaces::default(),
            rotas: Rotas::default(),
            ends: Ends::new(Arc::clone(&backend), None, shutdown.clone()),
            depths: Mutex::default(),
            looking_at_depths: SharedLook::default(),
            rotation: Mutex::default(),
            auditing: Mutex::default(),
            last_audit: Mutex::default(),
            requests: Arc::new(Semaphore::new(options.max_requests)),
            tails: Arc::new(Semaphore::new(options.max_stream_tails)),
            shutdown,
            backend,
            options,
        })
    }

    /// The kind of store, as handles name it.
    pub(crate) fn store(&self) -> &'static str {
        self.backend.settings().store
    }

    /// Whether nobody needs a key as long as the store has none: others than this machine cannot reach
    /// the server then.
    pub(crate) fn may_be_open(&self) -> bool {
        self.options.api_token.is_none() && self.options.listen_addr.ip().is_loopback()
    }

    /// A place among the requests under way. Who finds none is better told at once than served late.
    pub(crate) fn admit(&self) -> Result<OwnedSemaphorePermit, Failed> {
        let detail = "too many requests are under way";
        Arc::clone(&self.requests)
            .try_acquire_owned()
            .map_err(|_| Refusal::new(Code::Unavailable, detail).into())
    }

    /// A place among those who follow.
    pub(crate) fn admit_tail(&self) -> Result<OwnedSemaphorePermit, Failed> {
        let detail = "too many streams are followed";
        Arc::clone(&self.tails)
            .try_acquire_owned()
            .map_err(|_| Refusal::new(Code::ResourceExhausted, detail).into())
    }
}
