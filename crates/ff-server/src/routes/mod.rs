//! The routes, group by group. Each file begins with its part of the table.

mod budgets;
mod bulk;
mod engine;
mod events;
mod executions;
mod flows;
mod grants;
mod graphs;
mod keys;
mod lanes;
mod leases;
mod manage;
pub(crate) mod metrics;
mod outcomes;
mod quotas;
mod reads;
mod secrets;
mod signals;
mod streams;
mod suspend;
pub(crate) mod system;
mod usage;
mod workers;

use crate::route::Route;

/// The table, in the order of the description.
pub(crate) const GROUPS: &[&[Route]] = &[
    executions::ROUTES,
    reads::ROUTES,
    manage::ROUTES,
    bulk::ROUTES,
    workers::ROUTES,
    leases::ROUTES,
    grants::ROUTES,
    outcomes::ROUTES,
    usage::ROUTES,
    suspend::ROUTES,
    signals::ROUTES,
    secrets::ROUTES,
    flows::ROUTES,
    graphs::ROUTES,
    budgets::ROUTES,
    quotas::ROUTES,
    lanes::ROUTES,
    streams::ROUTES,
    events::ROUTES,
    keys::ROUTES,
    system::ROUTES,
    metrics::ROUTES,
    engine::ROUTES,
];
