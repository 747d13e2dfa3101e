//! The operating system's ways to tell a process to stop.

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::error::SdkError;

/// Listens from now on: the first signal fires one token, the second the other.
pub(super) fn listen(
    first: CancellationToken,
    second: CancellationToken,
) -> Result<AbortOnDropHandle<()>, SdkError> {
    let mut stops = Stops::new()
        .map_err(|error| SdkError::config("signals", format!("no signal can be heard: {error}")))?;
    Ok(AbortOnDropHandle::new(tokio::spawn(async move {
        stops.next().await;
        tracing::info!("told to stop; a second signal stops at once");
        first.cancel();
        stops.next().await;
        second.cancel();
    })))
}

#[cfg(unix)]
struct Stops {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Stops {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Stops;

#[cfg(not(unix))]
impl Stops {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
