//! Carries out what ticks tell of: effects of steps in other homes. What fails is told again.

use std::sync::Arc;

use ff_core::backend::Backend;
use ff_core::operation::Errand;
use tokio::sync::{Mutex, Notify, mpsc};

use crate::acts;
use crate::report::Report;
use crate::service::Shutdown;

pub(crate) const NAME: &str = "outbox";

/// What may wait here; what is beyond is told again.
const WAITING: usize = 10_000;

/// Where ticks tell of errands.
pub(crate) type Found = mpsc::Sender<Errand>;

/// What they told, also for a loop that begins again.
pub(crate) type Told = Arc<Mutex<mpsc::Receiver<Errand>>>;

pub(crate) fn channel() -> (Found, Told) {
    let (found, told) = mpsc::channel(WAITING);
    (found, Arc::new(Mutex::new(told)))
}

pub(crate) fn tell(found: &Found, errands: Vec<Errand>) {
    for errand in errands {
        // Without room or a listener the note in the store stays.
        let _ = found.try_send(errand);
    }
}

/// Carries them out, and tells when a worker is `gone`.
pub(crate) async fn run(
    backend: Arc<dyn Backend>,
    report: Arc<Report>,
    told: Told,
    gone: Arc<Notify>,
    mut shutdown: Shutdown,
) {
    let mut told = told.lock().await;
    while let Some(Some(first)) = shutdown.or(told.recv()).await {
        // One that was told several times meanwhile is one.
        let mut errands = vec![first];
        while let Ok(errand) = told.try_recv() {
            if !errands.contains(&errand) {
                errands.push(errand);
            }
        }
        if errands.iter().any(|errand| matches!(errand, Errand::TakeLeases(_))) {
            gone.notify_one();
        }
        for errand in &errands {
            match shutdown.or(acts::carry_out(&*backend, errand)).await {
                None => return,
                Some(Ok(())) => report.add(NAME, 1),
                Some(Err(error)) => {
                    report.add_error(NAME);
                    tracing::warn!(%error, ?errand, "an errand is left for a moment");
                }
            }
        }
    }
}
