//! The part of random sequences about workers, lanes and admission.

use ff_core::backend::{Backend, BackendExt};
use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, LeaseFence, Namespace, WorkerId, WorkerInstanceId};
use ff_core::limits;
use ff_core::operation::{
    Attach, BlockForAdmission, Command, DeregisterWorker, DrainWorker, HeartbeatWorker, LoseLease,
    MarkWorkerDead, RegisterWorker, SetLane, SetNamespace, Unblock,
};
use ff_core::policy::Retention;
use ff_core::read::{
    ListBlocked, ListExpiredLeases, ListFleets, ListLanes, ListLimited, ListOffers, ListQueued,
    ListRoutes, ListUnrouted, ListWorkers, Offer, Unrouted,
};
use ff_core::state::{AdmissionReason, LaneState, LostBy, Route};

use super::op::{FenceOf, Target};
use super::replay::{capabilities, lane, namespace};
use crate::oracle::Oracle;

/// Namespace and instance.
pub(super) type Name = (u8, u8);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetOp {
    Register {
        place: Name,
        boot: u8,
        ttl_ms: u64,
    },
    Beat {
        place: Name,
        boot: u8,
    },
    /// Drain, deregister, or called dead.
    Leave {
        place: Name,
        how: u8,
    },
    /// By time, or by revocation.
    Lose(FenceOf, bool),
    SetLane {
        namespace: u8,
        lane: u8,
        state: Option<u8>,
        ageing_ms: Option<u64>,
        attach: Option<u8>,
        /// 0: none.
        reason: u8,
        expected_revision: Option<u64>,
    },
    SetNamespace {
        namespace: u8,
        attach: Option<u8>,
        retention_ms: Option<u64>,
        expected_revision: Option<u64>,
    },
    Block(Target, u8),
    Unblock(Target, u8),
    /// Compare what is listed of a namespace.
    Look(u8),
}

fn instance(n: u8) -> WorkerInstanceId {
    WorkerInstanceId::new(format!("pool-{n}")).expect("an instance")
}

fn register((place, n): Name, boot: u8, ttl_ms: u64) -> RegisterWorker {
    RegisterWorker {
        namespace: namespace(place),
        worker_id: WorkerId::new("pool").expect("a worker"),
        worker_instance_id: instance(n),
        boot_id: format!("boot-{boot}"),
        lanes: vec![lane(0), lane(1)],
        capabilities: capabilities(n),
        ttl_ms,
        max_concurrent: 1,
    }
}

/// Everybody who claims in a sequence is there when it begins.
pub(super) fn registrations() -> Vec<Command> {
    let names = [(0, 0), (0, 1), (1, 0), (1, 1)];
    names.map(|name| register(name, 0, limits::DURATION_MAX_MS / 100).into()).into()
}

impl FleetOp {
    pub(super) fn command(
        &self,
        fence: impl Fn(FenceOf) -> Option<(ExecutionId, LeaseFence)>,
        id: impl Fn(Target) -> ExecutionId,
        attached: impl Fn(Option<u8>) -> Attach,
    ) -> Option<Command> {
        Some(match self {
            Self::Register { place, boot, ttl_ms } => register(*place, *boot, *ttl_ms).into(),
            Self::Beat { place, boot } => HeartbeatWorker {
                namespace: namespace(place.0),
                worker_instance_id: instance(place.1),
                boot_id: format!("boot-{boot}"),
            }
            .into(),
            Self::Leave { place, how } => {
                let (namespace, worker_instance_id) = (namespace(place.0), instance(place.1));
                let reason = "random".to_owned();
                match how {
                    0 => DrainWorker { namespace, worker_instance_id, reason }.into(),
                    1 => DeregisterWorker { namespace, worker_instance_id }.into(),
                    _ => MarkWorkerDead { namespace, worker_instance_id, reason }.into(),
                }
            }
            Self::Lose(of, by_time) => {
                let (execution_id, fence) = fence(*of)?;
                let by = if *by_time { LostBy::Time } else { LostBy::Revocation };
                LoseLease { execution_id, lease_id: fence.lease_id, by }.into()
            }
            Self::SetLane {
                namespace: place,
                lane: n,
                state,
                ageing_ms,
                attach,
                reason,
                expected_revision,
            } => SetLane {
                reason: if *reason == 0 { String::new() } else { format!("reason {reason}") },
                state: state.map(|n| LaneState::ALL[usize::from(n)]),
                priority_ageing_ms: *ageing_ms,
                attach: attached(*attach),
                expected_revision: *expected_revision,
                ..SetLane::new(namespace(*place), lane(*n))
            }
            .into(),
            Self::SetNamespace { namespace: place, attach, retention_ms, expected_revision } => {
                SetNamespace {
                    namespace: namespace(*place),
                    attach: attached(*attach),
                    retention: retention_ms
                        .map(|ms| Retention { success_ms: Some(ms), ..Retention::default() }),
                    expected_revision: *expected_revision,
                }
                .into()
            }
            Self::Block(target, n) => {
                let reason = AdmissionReason::ALL[usize::from(*n)].blocking_reason();
                let (execution_id, detail) = (id(*target), "no room".to_owned());
                BlockForAdmission { execution_id, reason, detail, by: None }.into()
            }
            Self::Unblock(target, n) => {
                let expected = AdmissionReason::ALL[usize::from(*n)].blocking_reason();
                Unblock { execution_id: id(*target), expected }.into()
            }
            Self::Look(_) => return None,
        })
    }
}

/// What is known of the routes of a namespace; stores list those with work in an order of their own.
async fn look_at_routes(
    backend: &dyn Backend,
    n: u8,
) -> Result<(Vec<Route>, Vec<Unrouted>, Vec<Offer>, Vec<Namespace>), EngineError> {
    let limit = limits::PAGE_MAX;
    let (namespace, cursor) = (namespace(n), None);
    let mut routes = backend.ask(ListRoutes { cursor: None, limit }).await?.items;
    routes.sort_unstable();
    for route in &routes {
        let queued = backend.ask(ListQueued { route: route.clone(), limit }).await?;
        assert!(!queued.is_empty(), "{route:?} is listed, and its queue is empty");
    }
    let (lane, behind) = (None, None);
    let waiting =
        ListUnrouted { namespace: namespace.clone(), lane, behind, cursor: cursor.clone(), limit };
    let waiting = backend.ask(waiting).await?.items;
    let offers = backend.ask(ListOffers { namespace, cursor, limit }).await?.items;
    let fleets = backend.ask(ListFleets { cursor: None, limit }).await?.items;
    Ok((routes, waiting, offers, fleets))
}

/// Lists of oracle and store say the same.
pub(super) async fn look(oracle: &Oracle, store: &dyn Backend, n: u8) -> Result<(), String> {
    let mut seen = Vec::new();
    for backend in [oracle as &dyn Backend, store] {
        let (cursor, limit) = (None, 50);
        let (namespace, all) = (namespace(n), Vec::new());
        let workers = ListWorkers {
            namespace: namespace.clone(),
            within: None,
            cursor: cursor.clone(),
            limit,
        };
        let leases =
            ListExpiredLeases { namespace: namespace.clone(), cursor: cursor.clone(), limit };
        let lanes =
            ListLanes { namespace: namespace.clone(), within: None, cursor: cursor.clone(), limit };
        let (by, behind) = (None, None);
        let limited =
            ListLimited { namespace: namespace.clone(), by, behind, cursor: cursor.clone(), limit };
        let blocked = ListBlocked { namespace, reason: None, lanes: all, cursor, limit };
        let mut leases = backend.ask(leases).await;
        // Their order is the store's own.
        if let Ok(page) = &mut leases {
            page.items.sort_unstable_by_key(|lease| lease.execution_id);
        }
        seen.push((
            backend.ask(workers).await,
            leases,
            backend.ask(lanes).await,
            backend.ask(blocked).await,
            backend.ask(limited).await,
            look_at_routes(backend, n).await,
        ));
    }
    if seen[0] == seen[1] {
        return Ok(());
    }
    Err(format!("the oracle lists {:?}, the store {:?}", seen[0], seen[1]))
}
