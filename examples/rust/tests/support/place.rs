//! Where an example keeps its work: a file, a Valkey server, or a server of ours.

use std::net::SocketAddr;
use std::sync::Arc;

use ff_engine::Shutdown;
use ff_server::{Server as HttpServer, ServerOptions};
use ff_test::servers::{Server, ServerOptions as ValkeyOptions};
use flowfabric::{Client, ClientConfig};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// One place for one test.
pub(crate) struct Place {
    url: String,
    runtime: Runtime,
    kept: Kept,
}

/// What ends with the place.
enum Kept {
    Folder { _folder: TempDir },
    Valkey { _server: Server },
    Http { _folder: TempDir, store: Client, stop: watch::Sender<bool> },
}

fn folder() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("example.db").display());
    (folder, url)
}

impl Place {
    pub(crate) fn embedded() -> Self {
        let (folder, url) = folder();
        Self { url, runtime: Runtime::new().unwrap(), kept: Kept::Folder { _folder: folder } }
    }

    pub(crate) fn valkey() -> Self {
        let server = Server::start(ValkeyOptions::default());
        let url = server.url();
        Self { url, runtime: Runtime::new().unwrap(), kept: Kept::Valkey { _server: server } }
    }

    /// A server over an embedded store, with the engine beside it, as `ff dev` has it.
    pub(crate) fn http() -> Self {
        let (folder, url) = folder();
        let runtime = Runtime::new().unwrap();
        let (store, address, stop) = runtime.block_on(async {
            let store = Client::connect(&url).await.unwrap();
            let (stop, shutdown) = Shutdown::channel();
            let listen_addr = SocketAddr::from(([127, 0, 0, 1], 0));
            let options = ServerOptions { listen_addr, ..ServerOptions::default() };
            let backend = Arc::clone(store.backend());
            let server = HttpServer::bind(backend, options, shutdown).await.unwrap();
            let address = server.local_addr().unwrap();
            tokio::spawn(server.run());
            (store, address, stop)
        });
        let kept = Kept::Http { _folder: folder, store, stop };
        Self { url: format!("http://{address}"), runtime, kept }
    }

    /// For `--store`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Looks at what the example has left behind.
    pub(crate) fn look<T>(&self, look: impl AsyncFnOnce(&Client) -> T) -> T {
        self.runtime.block_on(async {
            let config = ClientConfig::from(self.url()).engine(false);
            let client = Client::connect(config).await.unwrap();
            let seen = look(&client).await;
            client.close().await.unwrap();
            seen
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Kept::Http { store, stop, .. } = &self.kept {
            stop.send_replace(true);
            let _ = self.runtime.block_on(store.close());
        }
    }
}
