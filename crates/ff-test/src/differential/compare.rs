//! What must be equal.

use std::fmt::Debug;
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt, Upkeep as _};
use ff_core::error::{EngineError, Refusal};
use ff_core::id::{ExecutionId, Namespace};
use ff_core::limits;
use ff_core::operation::{Claimed, Errand, Reply, Submitted};
use ff_core::read::{
    BudgetFilter, Describe, DescribeQuotaPolicy, Due, EdgeSnapshot, EventFilter, Explain, Filter,
    FlowFilter, FlowSnapshot, Follow, From, ListAttempts, ListBudgets, ListEvents, ListFlowEdges,
    ListFlowMembers, ListFlows, ListKids, ListQuotaPolicies, ListSignals, ListWaitpoints,
    MemberSnapshot, ReadContext, ReadResult, ReadStream, ReadSummary, Search, WaitingFilter,
};
use ff_core::state::{CancelNotice, EdgeState};

use crate::oracle::Oracle;
use crate::sound;
use crate::waits::{all_suspended, all_waitpoints};
use crate::world::World;

/// Replies, apart from event numbers, which only have an order.
pub(super) fn same_reply(
    expected: &Result<Reply, EngineError>,
    found: &Result<Reply, EngineError>,
) -> Result<(), String> {
    match (expected, found) {
        // A store that ticks one thing after another may see that there is more, and find it done.
        (Ok(Reply::Tick(expected)), Ok(Reply::Tick(found))) if found.more => {
            same(&expected.fired, &found.fired)
        }
        (Ok(expected), Ok(found)) => same(&without_number(expected), &without_number(found)),
        (Err(expected), Err(found)) => same_error(expected, found),
        (expected, found) => Err(different(expected, found)),
    }
}

pub(super) fn same_claimed(
    expected: &Result<Claimed, EngineError>,
    found: &Result<Claimed, EngineError>,
) -> Result<(), String> {
    match (expected, found) {
        (Ok(expected), Ok(found)) => same(expected, found),
        (Err(expected), Err(found)) => same_error(expected, found),
        (expected, found) => Err(different(expected, found)),
    }
}

/// Codes and what they say of the present; wording may differ between stores.
fn same_error(expected: &EngineError, found: &EngineError) -> Result<(), String> {
    let told = |error: &EngineError| {
        let told =
            |refusal: &Refusal| (refusal.current.clone(), refusal.missing_capabilities.clone());
        error.refusal().map(told)
    };
    if expected.code() == found.code() && told(expected) == told(found) {
        Ok(())
    } else {
        Err(different(expected, found))
    }
}

fn without_number(reply: &Reply) -> Reply {
    let mut reply = reply.clone();
    match &mut reply {
        Reply::Submit(Submitted::Created { event_id, .. }) => event_id.number = 0,
        // What one step of the oracle touches twice, a store may write twice.
        Reply::SetTags(set) | Reply::SetFlowTags(set) => set.revision = 0,
        // Homes have no order among each other.
        Reply::Tick(ticked) => {
            ticked.errands = ticked.errands.iter().flat_map(one_by_one).collect();
            ticked.errands.sort_by_cached_key(|errand| format!("{errand:?}"));
        }
        _ => {}
    }
    reply
}

/// A store that ticks one thing after another tells of each by itself.
fn one_by_one(errand: &Errand) -> Vec<Errand> {
    match errand {
        Errand::Tell { namespace, worker_instance_id, notices } => {
            let tell = |notice: &CancelNotice| Errand::Tell {
                namespace: namespace.clone(),
                worker_instance_id: worker_instance_id.clone(),
                notices: vec![notice.clone()],
            };
            notices.iter().map(tell).collect()
        }
        Errand::Disown { namespace, lane, budget_ids, execution_ids } => {
            let disown = |id: &ExecutionId| Errand::Disown {
                namespace: namespace.clone(),
                lane: lane.clone(),
                budget_ids: budget_ids.clone(),
                execution_ids: vec![*id],
            };
            execution_ids.iter().map(disown).collect()
        }
        other => vec![other.clone()],
    }
}

fn same<T: PartialEq + Debug>(expected: &T, found: &T) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(different(expected, found)) }
}

fn different(expected: &impl Debug, found: &impl Debug) -> String {
    format!("  expected {expected:?}\n  found    {found:?}")
}

/// Everything that can be asked, of everything there is.
pub(super) async fn same_state(oracle: &Oracle, world: &World) -> Result<(), String> {
    let expected = everything(oracle).await?;
    let found = everything(&*world.backend).await?;
    for (expected, found) in expected.iter().zip(&found) {
        same(expected, found)?;
    }
    same(&expected.len(), &found.len())?;
    same(&oracle.tally().counts(), &world.backend.tally().counts())?;
    let violations = sound::violations(&*world.backend).await.map_err(|error| error.to_string())?;
    if violations.is_empty() { Ok(()) } else { Err(format!("violated: {violations:#?}")) }
}

/// One text for each fact, in an order that does not depend on the store.
async fn everything(backend: &dyn Backend) -> Result<Vec<String>, String> {
    let mut facts = Vec::new();
    let due = backend.ask(Due).await.map_err(|error| error.to_string())?;
    facts.push(format!("due {:?}", due.items.iter().map(|(_, at)| *at).min()));
    let kids = backend.ask(ListKids).await.map_err(|error| error.to_string())?;
    facts.push(format!("{kids:?}"));
    facts.extend(waiting(backend).await?);
    facts.extend(flows(backend).await?);
    facts.extend(budgets(backend).await?);
    facts.extend(quotas(backend).await?);
    facts.extend(budget_events(backend).await?);
    for id in all_ids(backend).await? {
        let query = Describe { execution_id: id };
        let record = backend.ask(query).await.map_err(|error| error.to_string())?;
        let record = record.ok_or_else(|| format!("{id} is listed and not there"))?;
        let mut record = *record;
        record.last_event_id.number = 0;
        if record.flow_id.is_some() {
            // What one step of the oracle touches twice, a store may write twice.
            record.revision = 0;
        }
        facts.push(format!("{id} {record:?}"));
        facts.extend(beside(backend, id).await?);
    }
    Ok(facts)
}

/// Who waits in each namespace that sequences use, walked in small pages.
async fn waiting(backend: &dyn Backend) -> Result<Vec<String>, String> {
    let mut facts = Vec::new();
    for namespace in [Namespace::default(), super::replay::namespace(1)] {
        let filter = WaitingFilter { namespace, ..WaitingFilter::default() };
        let waitpoints = all_waitpoints(backend, &filter, 7).await;
        let waitpoints = waitpoints.map_err(|error| error.to_string())?;
        let suspended = all_suspended(backend, &filter, 7).await;
        let suspended = suspended.map_err(|error| error.to_string())?;
        facts.extend(waitpoints.iter().map(|waitpoint| format!("{waitpoint:?}")));
        facts.extend(suspended.iter().map(|suspended| format!("{suspended:?}")));
    }
    Ok(facts)
}

/// Every flow with its members and edges.
async fn flows(backend: &dyn Backend) -> Result<Vec<String>, String> {
    let (mut facts, mut cursor) = (Vec::new(), None);
    loop {
        let list = ListFlows { filter: FlowFilter::default(), cursor, limit: 7 };
        let page = backend.ask(list).await.map_err(|error| error.to_string())?;
        for mut flow in page.items {
            // As of its members.
            flow.revision = 0;
            facts.push(format!("{flow:?}"));
            facts.extend(graph(backend, &flow).await?);
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(facts);
        }
    }
}

/// Every budget of the namespaces that sequences use.
async fn budgets(backend: &dyn Backend) -> Result<Vec<String>, String> {
    let mut facts = Vec::new();
    for namespace in [Namespace::default(), super::replay::namespace(1)] {
        let mut cursor = None;
        loop {
            let filter = BudgetFilter { namespace: namespace.clone(), scope: None };
            let list = ListBudgets { filter, cursor, limit: 3 };
            let page = backend.ask(list).await.map_err(|error| error.to_string())?;
            facts.extend(page.items.iter().map(|budget| format!("{budget:?}")));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
    }
    Ok(facts)
}

/// Every quota policy with those that hold its slots.
async fn quotas(backend: &dyn Backend) -> Result<Vec<String>, String> {
    let mut facts = Vec::new();
    for namespace in [Namespace::default(), super::replay::namespace(1)] {
        let mut cursor = None;
        loop {
            let list = ListQuotaPolicies { namespace: namespace.clone(), cursor, limit: 3 };
            let page = backend.ask(list).await.map_err(|error| error.to_string())?;
            for policy in &page.items {
                let quota_policy_id = policy.quota_policy_id;
                let limit = limits::PAGE_MAX;
                let query = DescribeQuotaPolicy { quota_policy_id, holders_from: 0, limit };
                let described = backend.ask(query).await.map_err(|error| error.to_string())?;
                facts.push(format!("{policy:?} {described:?}"));
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
    }
    Ok(facts)
}

/// Events about what has no list of its own, by what they are about.
async fn budget_events(backend: &dyn Backend) -> Result<Vec<String>, String> {
    let (mut events, mut from) = (Vec::new(), From::Start);
    loop {
        let page =
            Follow { filter: EventFilter::default(), from, limit: limits::PAGE_MAX, each: false };
        let page = backend.events(page, Duration::ZERO).await.map_err(|error| error.to_string())?;
        if page.items.is_empty() {
            break;
        }
        events.extend(page.items.into_iter().map(|item| item.event));
        from = From::Cursor(page.cursor);
    }
    events.retain(|event| event.kind.as_str().starts_with("budget."));
    events.sort_by_key(|event| (event.subject.clone(), event.seq));
    for event in &mut events {
        (event.number, event.previous) = (0, 0);
    }
    Ok(events.iter().map(|event| format!("{event:?}")).collect())
}

async fn graph(backend: &dyn Backend, flow: &FlowSnapshot) -> Result<Vec<String>, String> {
    let flow_id = flow.flow_id;
    let (mut members, mut from) = (Vec::new(), Some(0));
    while let Some(number) = from {
        let list = ListFlowMembers { flow_id, from: number, limit: 50 };
        // One that is on its way out is listed and has nothing to show.
        let Ok(page) = backend.ask(list).await else { return Ok(Vec::new()) };
        members.extend(page.items);
        from = page.next;
    }
    let (mut edges, mut from) = (Vec::new(), Some((0, 0)));
    while let Some(place) = from {
        let list = ListFlowEdges { flow_id, from: place, limit: 50 };
        let page = backend.ask(list).await.map_err(|error| error.to_string())?;
        edges.extend(page.items);
        from = page.next;
    }
    check_counts(flow, &members, &edges)?;
    let members = members.iter().map(|member| format!("{member:?}"));
    Ok(members.chain(edges.iter().map(|edge| format!("{edge:?}"))).collect())
}

/// A flow that has ended counts what it lists, and groups count what their edges say. Edges of upstreams
/// that were removed stay counted, and are not listed.
fn check_counts(
    flow: &FlowSnapshot,
    members: &[MemberSnapshot],
    edges: &[EdgeSnapshot],
) -> Result<(), String> {
    if flow.completed_at.is_some() {
        let counted = (flow.node_count as usize, flow.edge_count as usize);
        same(&counted, &(members.len(), edges.len()))?;
    }
    for member in members {
        let into = |edge: &&EdgeSnapshot| edge.applied && edge.downstream == member.execution_id;
        let edges: Vec<_> = edges.iter().filter(into).collect();
        let count = |state| edges.iter().filter(|edge| edge.state == state).count();
        let listed = (count(EdgeState::Satisfied), count(EdgeState::Impossible));
        let group = member.group;
        if group.edges as usize == edges.len() {
            same(&(group.satisfied as usize, group.impossible as usize), &listed)?;
        }
    }
    Ok(())
}

async fn all_ids(backend: &dyn Backend) -> Result<Vec<ExecutionId>, String> {
    let mut ids = Vec::new();
    let mut cursor = None;
    loop {
        let search = Search { filter: Filter::default(), cursor, limit: 7 };
        let page = backend.ask(search).await.map_err(|error| error.to_string())?;
        ids.extend(page.items.iter().map(|record| record.execution_id));
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(ids);
        }
    }
}

async fn beside(backend: &dyn Backend, id: ExecutionId) -> Result<Vec<String>, String> {
    let attempts = ListAttempts { execution_id: id, after: None, limit: limits::PAGE_MAX };
    let events = ListEvents { execution_id: id, after_seq: 0, limit: limits::PAGE_MAX };
    let result = ReadResult { execution_id: id, attempt_index: None };
    let attempts = backend.ask(attempts).await.map_err(|error| error.to_string())?;
    let mut events = backend.ask(events).await.map_err(|error| error.to_string())?;
    for envelope in &mut events.items {
        envelope.event.number = 0;
        envelope.event.previous = 0;
    }
    let result = backend.ask(result).await.map_err(|error| error.code());
    let signals = ListSignals { execution_id: id, from: 0, limit: limits::PAGE_MAX };
    let signals = backend.ask(signals).await;
    let waitpoints = backend.ask(ListWaitpoints { execution_id: id }).await;
    let context = backend.ask(ReadContext { execution_id: id }).await;
    let explained = backend.ask(Explain { execution_id: id }).await;
    let mut output = Vec::new();
    for attempt in &attempts.items {
        let page = backend.ask(ReadStream::all(id, attempt.index)).await;
        let summary = ReadSummary { execution_id: id, attempt_index: attempt.index };
        let summary = backend.ask(summary).await;
        output.push(format!("{id} attempt {} {page:?} {summary:?}", attempt.index));
    }
    let facts = vec![
        format!("{id} {attempts:?}"),
        format!("{id} {events:?}"),
        format!("{id} {result:?}"),
        format!("{id} {context:?}"),
        format!("{id} {explained:?}"),
        format!("{id} {signals:?}"),
        format!("{id} {waitpoints:?}"),
    ];
    Ok([facts, output].concat())
}
