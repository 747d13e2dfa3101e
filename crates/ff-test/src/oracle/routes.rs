//! The oracle's answers about routes.

use std::collections::BTreeSet;

use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, Namespace};
use ff_core::machine::QueueView;
use ff_core::read::{
    Answer, Leaf, ListFleets, ListNamespaces, ListQueued, ListRoutes, Page, Query, Seen,
};
use ff_core::state::Route;

use super::State;

pub(super) fn answer(state: &State, query: &Query) -> Result<Answer, EngineError> {
    Ok(match query {
        Query::ListRoutes(q) => Answer::ListRoutes(list(state, q)?),
        Query::ListQueued(q) => Answer::ListQueued(queued(state, q)),
        Query::ListFleets(q) => Answer::ListFleets(fleets(state, q)?),
        Query::ListNamespaces(q) => Answer::ListNamespaces(namespaces(state, q)?),
        other => return Err(EngineError::bug(format!("{} is not about routes", other.name()))),
    })
}

fn list(state: &State, query: &ListRoutes) -> Result<Page<Route>, EngineError> {
    let behind: Option<Route> = query.behind()?;
    let queued = state.executions.values().filter(|execution| execution.queue_place().is_some());
    let routes: BTreeSet<_> = queued.map(|execution| Route::of(execution)).collect();
    let mut leaf = Leaf::new(query.limit);
    for route in routes.into_iter().filter(|route| behind.as_ref().is_none_or(|at| route > at)) {
        if leaf.look(route.clone(), || ListRoutes::see(route)).is_break() {
            break;
        }
    }
    Ok(ListRoutes::page(leaf))
}

fn queued(state: &State, query: &ListQueued) -> Vec<ExecutionId> {
    let Route { namespace, lane, required } = &query.route;
    let view = QueueView {
        namespace: namespace.clone(),
        lane: lane.clone(),
        capabilities: required.clone(),
    };
    let ids = state.queue(&view).into_iter().map(|(_, id)| id);
    let is_of = |id: &ExecutionId| {
        let execution = state.executions.get(id);
        execution.is_some_and(|execution| execution.policy().required_capabilities == *required)
    };
    ids.filter(is_of).take(query.limit as usize).collect()
}

fn fleets(state: &State, query: &ListFleets) -> Result<Page<Namespace>, EngineError> {
    let behind = query.behind()?;
    let workers = state.documents.values().filter_map(|document| document.worker());
    let registered = workers.filter(|worker| worker.registration.is_some());
    let names: BTreeSet<_> = registered.map(|worker| worker.namespace.clone()).collect();
    let mut leaf = Leaf::new(query.limit);
    for name in names.into_iter().filter(|name| behind.as_ref().is_none_or(|at| name > at)) {
        if leaf.look(name.clone(), || Seen::Item(name)).is_break() {
            break;
        }
    }
    Ok(ListFleets::page(leaf))
}

fn namespaces(state: &State, query: &ListNamespaces) -> Result<Page<Namespace>, EngineError> {
    let behind = query.behind()?;
    let live = state.executions.values().filter(|execution| !execution.is_terminal());
    let mut names: BTreeSet<_> = live.map(|execution| execution.about.namespace.clone()).collect();
    names.extend(state.documents.values().map(|document| document.namespace().clone()));
    let mut leaf = Leaf::new(query.limit);
    for name in names.into_iter().filter(|name| behind.as_ref().is_none_or(|at| name > at)) {
        if leaf.look(name.clone(), || Seen::Item(name)).is_break() {
            break;
        }
    }
    Ok(ListNamespaces::page(leaf))
}
