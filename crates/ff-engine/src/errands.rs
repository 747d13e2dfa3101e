//! Carries out what ticks tell of: effects of steps in other homes. What fails is told again.

use std::mem::{Discriminant, discriminant};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_core::backend::{Backend, Pending};
use ff_core::each::Broken;
use ff_core::error::EngineError;
use ff_core::id::{DocumentId, Subject};
use ff_core::operation::{Errand, LostWorker, ScannerFilter};
use ff_core::partition::PartitionConfig;
use ff_core::state::DueKind;
use tokio::sync::{Mutex, Notify, mpsc};

use crate::acts;
use crate::options::EngineOptions;
use crate::report::Report;
use crate::scanner::{ScanResult, Scanner};
use crate::strikes::{Strikes, Turn};

pub(crate) const NAME: &str = DueKind::Outbox.scanner();

/// What may wait here; what is beyond is told again.
const WAITING: usize = 10_000;

/// Where ticks tell of errands.
pub(crate) type Found = mpsc::Sender<Errand>;

/// What they told, also for a loop that begins again.
pub(crate) type Told = Arc<Mutex<mpsc::Receiver<Errand>>>;

/// Who owes it, and what for. What is told again of the same may name others than before.
type Owed = (Discriminant<Errand>, Subject);

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

/// Carries errands out, and tells when a worker is `gone`.
pub(crate) struct Outbox {
    interval: Duration,
    filter: ScannerFilter,
    told: Told,
    gone: Arc<Notify>,
    /// What ended the wait.
    first: Option<Errand>,
    strikes: Strikes<Owed>,
}

impl Outbox {
    pub(crate) fn new(options: &EngineOptions, told: Told, gone: Arc<Notify>) -> Self {
        let interval = options.intervals.of(NAME);
        let (filter, strikes) = (ScannerFilter::default(), Strikes::new(interval));
        Self { interval, filter, told, gone, first: None, strikes }
    }

    /// All that was told so far; one that was told several times is one.
    async fn take(&mut self) -> Vec<Errand> {
        let mut errands: Vec<Errand> = self.first.take().into_iter().collect();
        let mut told = self.told.lock().await;
        while let Ok(errand) = told.try_recv() {
            if !errands.contains(&errand) {
                errands.push(errand);
            }
        }
        errands
    }

    async fn carry_out(&mut self, backend: &dyn Backend) -> ScanResult {
        let errands = self.take().await;
        if errands.iter().any(|errand| matches!(errand, Errand::TakeLeases(_))) {
            self.gone.notify_one();
        }
        let mut result = ScanResult::default();
        for errand in &errands {
            let owed = owed(errand, &backend.settings().partitions);
            match self.strikes.turn(&owed, Instant::now()) {
                Turn::Rest => continue,
                Turn::Skip => {
                    result.skipped += 1;
                    continue;
                }
                Turn::Try => {}
            }
            match acts::carry_out(backend, errand).await {
                Ok(broken) => {
                    self.strikes.succeeded(&owed);
                    result.processed += 1;
                    result.errors += tell_of(&broken);
                }
                Err(error) => {
                    self.strikes.failed(&owed, &error, Instant::now());
                    result.errors += 1;
                    tracing::warn!(%error, ?errand, "an errand is left for a moment");
                }
            }
        }
        result
    }
}

/// Tells of what was passed over: how many there were.
pub(crate) fn tell_of(broken: &[Broken]) -> u32 {
    for Broken { execution_id, error } in broken {
        tracing::error!(%execution_id, %error, "an execution is broken and was passed over");
    }
    u32::try_from(broken.len()).unwrap_or(u32::MAX)
}

fn owed(errand: &Errand, config: &PartitionConfig) -> Owed {
    let of: Subject = match errand {
        Errand::GiveBack { execution_id, .. } | Errand::Enter { execution_id, .. } => {
            (*execution_id).into()
        }
        Errand::LetGo { quota_policy_id, .. } | Errand::Ask { quota_policy_id, .. } => {
            DocumentId::quota_policy(*quota_policy_id, config).into()
        }
        Errand::Attach { budget_id, .. }
        | Errand::Admit { budget_id, .. }
        | Errand::Enforce { budget_id, .. } => DocumentId::budget(*budget_id, config).into(),
        Errand::TakeLeases(LostWorker { namespace, worker_instance_id, .. })
        | Errand::Tell { namespace, worker_instance_id, .. } => {
            DocumentId::worker(namespace, worker_instance_id).into()
        }
        Errand::Welcome { namespace, .. } | Errand::Lift { namespace, .. } => {
            DocumentId::namespace(namespace).into()
        }
        Errand::Disown { namespace, lane, .. } => DocumentId::lane(namespace, lane).into(),
        Errand::CarryOn { bulk_id } => DocumentId::bulk(*bulk_id).into(),
    };
    (discriminant(errand), of)
}

impl Scanner for Outbox {
    fn name(&self) -> &'static str {
        NAME
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    fn filter(&self) -> &ScannerFilter {
        &self.filter
    }

    fn visit<'a>(
        &'a mut self,
        backend: &'a dyn Backend,
        _: &'a Report,
    ) -> Pending<'a, Result<ScanResult, EngineError>> {
        Box::pin(async move { Ok(self.carry_out(backend).await) })
    }

    fn wait<'a>(&'a mut self, _: &'a dyn Backend, at_most: Duration) -> Pending<'a, ()> {
        Box::pin(async move {
            let told = Arc::clone(&self.told);
            let mut told = told.lock().await;
            match tokio::time::timeout(at_most, told.recv()).await {
                Ok(Some(errand)) => self.first = Some(errand),
                // Nobody tells any more: the engine is stopping.
                Ok(None) => tokio::time::sleep(at_most).await,
                Err(_) => {}
            }
        })
    }
}
