//! Workers that run members of flows, an engine beside them, and graphs to run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ff_core::backend::BackendExt as _;
use ff_core::id::{ExecutionId, FlowId, MemberName};
use ff_core::operation::{
    ClaimNext, Command, CreateFlow, GraphEdge, GraphGroup, GraphMember, Submit, SubmitFlow, Task,
};
use ff_core::read::{EventFilter, Follow, From};
use ff_core::state::{EdgeKind, Join};
use ff_core::{event::EventKind, limits};
use ff_engine::{Engine, EngineOptions, Shutdown};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::Target;
use super::target::{complete, payload};

/// Longer than any step takes on a store that works.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// A task that a worker has taken up, and when.
pub(super) struct Started {
    pub(super) task: Task,
    pub(super) at: Instant,
}

/// Workers and an engine that work until they are dismissed.
pub(super) struct Crew {
    stop: watch::Sender<bool>,
    running: JoinSet<anyhow::Result<()>>,
}

impl Crew {
    /// Workers that claim up to `batch` tasks at once and complete them; `started` is told of each.
    pub(super) fn hire(
        target: &Target,
        workers: u32,
        batch: u32,
        started: &UnboundedSender<Started>,
    ) -> Self {
        let (stop, shutdown) = Shutdown::channel();
        let mut running = JoinSet::new();
        running.spawn(engine(target, shutdown.clone()));
        for _ in 0..workers {
            running.spawn(work(target.clone(), batch, started.clone(), shutdown.clone()));
        }
        Self { stop, running }
    }

    pub(super) async fn dismiss(mut self) -> anyhow::Result<()> {
        self.stop.send_replace(true);
        while let Some(ended) = self.running.join_next().await {
            ended??;
        }
        Ok(())
    }
}

/// Background work on the store until the wish to stop.
pub(super) fn engine(
    target: &Target,
    shutdown: Shutdown,
) -> impl Future<Output = anyhow::Result<()>> + use<> {
    let engine = Engine::new(Arc::clone(&target.backend), EngineOptions::default());
    async move {
        engine.run(shutdown).await;
        Ok(())
    }
}

/// Completes what it has and takes what is next in the same call, while there is something.
async fn work(
    target: Target,
    batch: u32,
    started: UnboundedSender<Started>,
    mut shutdown: Shutdown,
) -> anyhow::Result<()> {
    while let Some(tasks) = shutdown.or(target.backend.claim(target.claim(batch), PATIENCE)).await {
        let mut tasks = tasks?;
        while !tasks.is_empty() {
            let at = Instant::now();
            for task in &tasks {
                let _ = started.send(Started { task: task.clone(), at });
            }
            let mut completes: Vec<_> = tasks.iter().map(complete).collect();
            if let [only] = completes.as_mut_slice() {
                only.next = Some(next_of(&target));
            }
            let commands = completes.into_iter().map(Command::from).collect();
            tasks = Vec::new();
            for reply in target.backend.apply(commands).await {
                if let Ok(ff_core::operation::Reply::Complete(done)) = reply {
                    tasks.extend(done.tasks);
                }
            }
        }
    }
    Ok(())
}

fn next_of(target: &Target) -> ClaimNext {
    let claim = target.claim(1);
    ClaimNext {
        max: 1,
        lanes: claim.lanes,
        order: claim.order,
        capabilities: claim.capabilities,
        lease_ttl_ms: claim.lease_ttl_ms,
        seed: claim.seed,
    }
}

/// A graph in the making, by the numbers of its members.
pub(super) struct Graph {
    pub(super) submit: SubmitFlow,
}

impl Graph {
    pub(super) fn new(target: &Target, members: u32, edges: &[(u32, u32)]) -> anyhow::Result<Self> {
        let flow_id = FlowId::mint();
        let partitions = &target.backend.settings().partitions;
        let member = |n: u32| -> anyhow::Result<_> {
            let execution_id = ExecutionId::for_flow(Uuid::now_v7(), flow_id, partitions);
            let submit = Submit { execution_id, ..target.submit(&payload(0)) };
            Ok(GraphMember { name: name(n)?, submit })
        };
        let edge = |&(from, to): &(u32, u32)| -> anyhow::Result<_> {
            let kind = EdgeKind::SuccessOnly;
            let (name, data_passing_ref) = (None, None);
            Ok(GraphEdge {
                from: self::name(from)?,
                to: self::name(to)?,
                kind,
                name,
                data_passing_ref,
            })
        };
        let flow = CreateFlow::new(flow_id, ff_core::id::Kind::new("bench")?);
        Ok(Self {
            submit: SubmitFlow {
                flow,
                members: (0..members).map(member).collect::<Result<_, _>>()?,
                edges: edges.iter().map(edge).collect::<Result<_, _>>()?,
                groups: Vec::new(),
                edge_seed: Uuid::now_v7(),
            },
        })
    }

    pub(super) fn join(mut self, member: u32, join: Join) -> anyhow::Result<Self> {
        self.submit.groups.push(GraphGroup { member: name(member)?, join });
        Ok(self)
    }

    pub(super) fn member(&self, n: usize) -> anyhow::Result<ExecutionId> {
        let member = self.submit.members.get(n).context("no such member")?;
        Ok(member.submit.execution_id)
    }

    /// Holds every member, so that no worker takes one.
    pub(super) fn held(mut self) -> Self {
        self.submit.members.iter_mut().for_each(|member| member.submit.held = true);
        self
    }
}

fn name(n: u32) -> anyhow::Result<MemberName> {
    Ok(MemberName::new(format!("m{n}"))?)
}

/// Events of a kind from now on.
pub(super) struct Watch<'a> {
    target: &'a Target,
    filter: EventFilter,
    from: From,
}

impl<'a> Watch<'a> {
    pub(super) async fn begin(target: &'a Target, kind: EventKind) -> anyhow::Result<Self> {
        let filter = EventFilter { kinds_of_event: vec![kind], ..EventFilter::default() };
        let follow = Follow { filter: filter.clone(), from: From::Now, limit: 1, each: false };
        let now = target.backend.events(follow, Duration::ZERO).await?;
        Ok(Self { target, filter, from: From::Cursor(now.cursor) })
    }

    /// Waits for so many more of them.
    pub(super) async fn wait_for(&mut self, mut count: usize) -> anyhow::Result<()> {
        while count > 0 {
            let (filter, from) = (self.filter.clone(), self.from.clone());
            let follow = Follow { filter, from, limit: limits::PAGE_MAX, each: false };
            let after = self.target.backend.events(follow, PATIENCE).await?;
            anyhow::ensure!(!after.items.is_empty(), "{count} events did not come");
            count = count.saturating_sub(after.items.len());
            self.from = From::Cursor(after.cursor);
        }
        Ok(())
    }
}
