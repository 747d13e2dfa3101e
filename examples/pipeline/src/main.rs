//! A nightly pipeline: two extracts side by side, a load that gets both results, a report, and a
//! clean-up that runs whatever happened.
//!
//! `cargo run -p pipeline [FILE]`

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use ff_backend_sqlite::SqliteStore;
use ff_core::backend::{Backend, BackendExt, Upkeep};
use ff_core::content::Content;
use ff_core::id::{
    Authority, ExecutionId, FlowId, Kind, LaneId, MemberName, WorkerId, WorkerInstanceId,
};
use ff_core::operation::{
    Claim, Complete, CreateFlow, GraphEdge, GraphMember, RegisterWorker, Submit, SubmitFlow, Task,
};
use ff_core::read::DescribeFlow;
use ff_core::state::EdgeKind;
use ff_engine::{Engine, EngineOptions, Shutdown};
use uuid::Uuid;

const LANE: &str = "etl";

#[tokio::main]
async fn main() -> Result<()> {
    let file = std::env::args().nth(1).unwrap_or_else(|| "pipeline.db".to_owned());
    let store = Arc::new(SqliteStore::open_url(&format!("sqlite:{file}"))?);
    let (stop, shutdown) = Shutdown::channel();
    let engine = Engine::new(Arc::clone(&store) as Arc<dyn Backend>, EngineOptions::default());
    let engine = tokio::spawn(engine.run(shutdown));

    let flow_id = submit(&*store).await?;
    loop {
        let Some(task) = claim(&*store).await?.into_iter().next() else { break };
        let result = run(&task);
        println!("{:<10} {result}", task.kind);
        store
            .call(Complete {
                execution_id: task.execution_id,
                authority: Authority::Fence(task.fence()),
                result: Some(Content::new(result)),
                next: None,
            })
            .await?;
    }
    if let Some(flow) = store.ask(DescribeFlow { flow_id }).await? {
        println!("the flow is {}", flow.state.as_str());
    }

    stop.send_replace(true);
    engine.await?;
    store.shutdown_prepare(Duration::from_secs(10)).await?;
    Ok(())
}

/// What a member does; the results of those it waited for are its inputs.
fn run(task: &Task) -> String {
    let result_of = |name: &str| {
        let result = task.extras.inputs.get(name).and_then(|input| input.result.as_ref());
        result.map(|result| String::from_utf8_lossy(&result.bytes).into_owned())
    };
    match task.kind.as_str() {
        "users" => "120 users".to_owned(),
        "orders" => "4500 orders".to_owned(),
        "load" => format!(
            "loaded {} and {}",
            result_of("users").unwrap_or_default(),
            result_of("orders").unwrap_or_default()
        ),
        "report" => format!("report: {}", result_of("load").unwrap_or_default()),
        _ => "cleaned up".to_owned(),
    }
}

async fn submit(store: &dyn Backend) -> Result<FlowId> {
    let flow_id = FlowId::mint();
    let partitions = &store.settings().partitions;
    let member = |name: &str| -> Result<GraphMember> {
        let id = ExecutionId::for_flow(Uuid::now_v7(), flow_id, partitions);
        let submit = Submit::new(id, LaneId::new(LANE)?, Kind::new(name)?);
        Ok(GraphMember { name: MemberName::new(name)?, submit })
    };
    let edge = |from: &str, to: &str, kind: EdgeKind| -> Result<GraphEdge> {
        let (from, to) = (MemberName::new(from)?, MemberName::new(to)?);
        Ok(GraphEdge { from, to, kind, name: None, data_passing_ref: None })
    };
    let names = ["users", "orders", "load", "report", "clean"];
    let graph = SubmitFlow {
        flow: CreateFlow::new(flow_id, Kind::new("nightly")?),
        members: names.into_iter().map(member).collect::<Result<_>>()?,
        edges: vec![
            edge("users", "load", EdgeKind::SuccessOnly)?,
            edge("orders", "load", EdgeKind::SuccessOnly)?,
            edge("load", "report", EdgeKind::SuccessOnly)?,
            edge("report", "clean", EdgeKind::Always)?,
        ],
        groups: Vec::new(),
        edge_seed: Uuid::now_v7(),
    };
    store.submit_graph(graph).await?;
    Ok(flow_id)
}

/// The next member that may run; none when nothing came for a while.
async fn claim(store: &dyn Backend) -> Result<Vec<Task>> {
    let claim =
        Claim::new(WorkerId::new("etl")?, WorkerInstanceId::new("etl-1")?, [LaneId::new(LANE)?]);
    store.call(RegisterWorker::for_claim(&claim, "example", 60_000)).await?;
    Ok(store.claim(claim, Duration::from_millis(200)).await?)
}
