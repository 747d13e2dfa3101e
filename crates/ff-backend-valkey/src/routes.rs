//! Answers questions about routes: which there is work for, and where workers are.

use std::collections::BTreeMap;
use std::sync::Arc;

use ff_core::capability::Capabilities;
use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, Home, LaneId, Namespace};
use ff_core::read::{Leaf, ListFleets, ListNamespaces, ListQueued, ListRoutes, Page, Seen};
use ff_core::state::{List, Route};
use redis::{Cmd, Value};

use crate::everywhere::{Missing, Tour};
use crate::keys::{class_of, lane_name};
use crate::listing::list_name;
use crate::store::{Shared, join_all};
use crate::{homes, reply};

/// Partitions of one call: each reads the names of all their queues that require something.
const TOGETHER: usize = 64;

/// Namespaces that are asked for at the same time.
const ASKED_AT_ONCE: usize = 64;

/// Routes in whose queues something stands, in the order of a digest of their names.
pub(crate) async fn list(
    shared: &Arc<Shared>,
    query: &ListRoutes,
) -> Result<Page<Route>, EngineError> {
    let behind: i64 = query.behind()?.unwrap_or(-1);
    // Each call brings one more than a page has, so what comes first of all is among them.
    let most = query.limit + 1;
    let arguments = |call: &mut Cmd, homes: &[Home]| {
        call.arg(behind).arg(most);
        homes.iter().for_each(|home| {
            call.arg(home.to_string());
        });
    };
    let mut found: BTreeMap<i64, Route> = BTreeMap::new();
    for part in shared.partitions().chunks(TOGETHER) {
        let tour = Tour::by("ff_routes", Missing::LeaveOut);
        for answered in shared.everywhere(tour, part.to_vec(), arguments).await?.answered {
            read_routes(answered.reply, &mut found)?;
        }
    }
    let mut leaf = Leaf::new(query.limit);
    for (digest, route) in found {
        if leaf.look(digest, || ListRoutes::see(route)).is_break() {
            break;
        }
    }
    Ok(ListRoutes::page(leaf))
}

fn read_routes(answered: Value, found: &mut BTreeMap<i64, Route>) -> Result<(), EngineError> {
    let mut items = reply::array(answered)?.into_iter();
    while let Some(digest) = items.next() {
        let name = reply::text(reply::next(&mut items)?)?;
        let required = reply::text(reply::next(&mut items)?)?;
        let route = parse(&name, &required);
        let broken = || EngineError::corruption(format!("queue {name:?} of {required:?}"));
        found.insert(reply::number(&digest)?, route.ok_or_else(broken)?);
    }
    Ok(())
}

/// The route of a queue by its name, `<namespace>/<lane>:<class>`, and what its class requires.
fn parse(name: &str, required: &str) -> Option<Route> {
    let (place, _) = name.rsplit_once(':')?;
    let (namespace, lane) = place.split_once('/')?;
    Some(Route {
        namespace: Namespace::new(namespace).ok()?,
        lane: LaneId::new(lane).ok()?,
        required: Capabilities::from_csv(required).ok()?,
    })
}

/// The front of one queue, over all partitions.
pub(crate) async fn queued(
    shared: &Arc<Shared>,
    ListQueued { route, limit }: &ListQueued,
) -> Result<Vec<ExecutionId>, EngineError> {
    let lane = lane_name(&route.namespace, &route.lane);
    let class = class_of(&route.required);
    let arguments = |call: &mut Cmd, homes: &[Home]| {
        let partitions: Vec<u16> = homes.iter().filter_map(Home::flow_partition).collect();
        call.arg(limit).arg(&class).arg(1).arg(&lane).arg(partitions);
    };
    let partitions = shared.partitions();
    let tour = Tour::by("ff_peek", Missing::LeaveOut).entries(*limit as usize);
    let replies = shared.everywhere(tour, partitions, arguments).await?;
    let mut front: Vec<(i64, ExecutionId)> = Vec::new();
    for answered in replies.answered {
        for queue in reply::array(answered.reply)? {
            read_front(queue, &mut front)?;
        }
    }
    front.sort_unstable_by_key(|(score, id)| (*score, id.uuid()));
    front.truncate(*limit as usize);
    Ok(front.into_iter().map(|(_, id)| id).collect())
}

/// As `lua/peek.lua` answers: partition, name, score of the front, whether that is all; then entries.
fn read_front(queue: Value, front: &mut Vec<(i64, ExecutionId)>) -> Result<(), EngineError> {
    let mut items = reply::array(queue)?.into_iter();
    let partition = reply::partition(&reply::next(&mut items)?)?;
    let mut items = items.skip(3);
    while let Some(score) = items.next() {
        let id = reply::execution_id(partition, reply::next(&mut items)?)?;
        front.push((reply::number(&score)?, id));
        reply::next(&mut items)?;
    }
    Ok(())
}

/// Namespaces in which something was ever written.
pub(crate) async fn namespaces(
    shared: &Arc<Shared>,
    query: &ListNamespaces,
) -> Result<Page<Namespace>, EngineError> {
    let behind = query.behind()?;
    let namespaces = homes::registered(shared).await?;
    let mut leaf = Leaf::new(query.limit);
    for namespace in
        namespaces.into_iter().filter(|name| behind.as_ref().is_none_or(|at| name > at))
    {
        if leaf.look(namespace.clone(), || Seen::Item(namespace)).is_break() {
            break;
        }
    }
    Ok(ListNamespaces::page(leaf))
}

/// Namespaces in which workers are registered.
pub(crate) async fn fleets(
    shared: &Arc<Shared>,
    query: &ListFleets,
) -> Result<Page<Namespace>, EngineError> {
    let behind = query.behind()?;
    let namespaces = homes::registered(shared).await?;
    let left = namespaces.into_iter().filter(|name| behind.as_ref().is_none_or(|at| name > at));
    let left: Vec<Namespace> = left.collect();
    let mut leaf = Leaf::new(query.limit);
    for part in left.chunks(ASKED_AT_ONCE) {
        let staffed = join_all(part.iter().map(|namespace| has_workers(shared, namespace))).await;
        for (namespace, staffed) in part.iter().zip(staffed) {
            let staffed = staffed?;
            let see = || if staffed { Seen::Item(namespace.clone()) } else { Seen::Passed };
            if leaf.look(namespace.clone(), see).is_break() {
                return Ok(ListFleets::page(leaf));
            }
        }
    }
    Ok(ListFleets::page(leaf))
}

async fn has_workers(shared: &Shared, namespace: &Namespace) -> Result<bool, EngineError> {
    let home = Home::Namespace(namespace.clone());
    let mut exists = redis::cmd("EXISTS");
    exists.arg(shared.keys.index_of(&home, &list_name(List::Worker, namespace)));
    Ok(reply::number(&shared.send_home(&home, &exists).await?)? == 1)
}
