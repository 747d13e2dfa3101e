//! Answers questions about routes: which there is work for, and where workers are.

use ff_core::capability::Capabilities;
use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, LaneId, Namespace};
use ff_core::read::{Leaf, ListFleets, ListNamespaces, ListQueued, ListRoutes, Page, Seen};
use ff_core::state::{List, Route};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::fault;
use crate::load::id_at;
use crate::statements;

/// Routes in whose queues something stands, in the order in which their queues were made.
pub(crate) fn list(
    connection: &Connection,
    query: &ListRoutes,
) -> Result<Page<Route>, EngineError> {
    let mut behind: i64 = query.behind()?.unwrap_or(i64::MIN);
    let mut leaf = Leaf::new(query.limit);
    while let Some((id, text)) = next_queue(connection, behind)? {
        let route = parse(text)?;
        behind = id;
        if leaf.look(id, || ListRoutes::see(route)).is_break() {
            break;
        }
    }
    Ok(ListRoutes::page(leaf))
}

/// Namespace, lane and capabilities of a queue.
type QueueText = [String; 3];

fn next_queue(
    connection: &Connection,
    behind: i64,
) -> Result<Option<(i64, QueueText)>, EngineError> {
    let read = |row: &Row<'_>| Ok((row.get(0)?, [row.get(1)?, row.get(2)?, row.get(3)?]));
    connection
        .prepare_cached(statements::next_queue)
        .and_then(|mut next| next.query_row(params![behind], read).optional())
        .map_err(|error| fault(&error))
}

fn parse([namespace, lane, capabilities]: QueueText) -> Result<Route, EngineError> {
    let damaged = |what: String| EngineError::corruption(format!("queue: {what}"));
    Ok(Route {
        namespace: Namespace::new(namespace).map_err(|error| damaged(error.to_string()))?,
        lane: LaneId::new(lane).map_err(|error| damaged(error.to_string()))?,
        required: Capabilities::from_csv(&capabilities)?,
    })
}

/// The front of one queue.
pub(crate) fn queued(
    connection: &Connection,
    ListQueued { route, limit }: &ListQueued,
) -> Result<Vec<ExecutionId>, EngineError> {
    let (namespace, lane) = (route.namespace.as_str(), route.lane.as_str());
    let values = params![namespace, lane, route.required.as_csv(), limit];
    connection
        .prepare_cached(statements::front_of_queue)
        .and_then(|mut front| front.query_map(values, |row| id_at(row, 0))?.collect())
        .map_err(|error| fault(&error))
}

/// Namespaces in which something stands.
pub(crate) fn namespaces(
    connection: &Connection,
    query: &ListNamespaces,
) -> Result<Page<Namespace>, EngineError> {
    let mut behind = query.behind()?.map(|namespace| namespace.to_string()).unwrap_or_default();
    let mut leaf = Leaf::new(query.limit);
    while let Some(name) = next_inhabited(connection, &behind)? {
        let namespace = parsed(&name)?;
        if leaf.look(namespace.clone(), || Seen::Item(namespace)).is_break() {
            break;
        }
        behind = name;
    }
    Ok(ListNamespaces::page(leaf))
}

fn next_inhabited(connection: &Connection, behind: &str) -> Result<Option<String>, EngineError> {
    connection
        .prepare_cached(statements::next_inhabited)
        .and_then(|mut next| next.query_row(params![behind], |row| row.get(0)))
        .map_err(|error| fault(&error))
}

fn parsed(name: &str) -> Result<Namespace, EngineError> {
    let damaged = |error| EngineError::corruption(format!("namespace {name:?}: {error}"));
    Namespace::new(name).map_err(damaged)
}

/// Namespaces in which workers are registered.
pub(crate) fn fleets(
    connection: &Connection,
    query: &ListFleets,
) -> Result<Page<Namespace>, EngineError> {
    let mut behind = query.behind()?.map(|namespace| namespace.to_string()).unwrap_or_default();
    let mut leaf = Leaf::new(query.limit);
    while let Some((name, staffed)) = next_namespace(connection, &behind)? {
        let namespace = parsed(&name)?;
        let see = || if staffed { Seen::Item(namespace.clone()) } else { Seen::Passed };
        if leaf.look(namespace.clone(), see).is_break() {
            break;
        }
        behind = name;
    }
    Ok(ListFleets::page(leaf))
}

fn next_namespace(
    connection: &Connection,
    behind: &str,
) -> Result<Option<(String, bool)>, EngineError> {
    let read = |row: &Row<'_>| {
        let name: Option<String> = row.get(0)?;
        Ok((name, row.get(1)?))
    };
    let (name, staffed) = connection
        .prepare_cached(statements::next_namespace)
        .and_then(|mut next| next.query_row(params![behind, List::Worker.code()], read))
        .map_err(|error| fault(&error))?;
    Ok(name.map(|name| (name, staffed)))
}
