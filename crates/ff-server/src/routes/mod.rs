//! The routes, group by group. Each file begins with its part of the table.

mod events;
mod executions;
mod grants;
mod keys;
mod leases;
mod manage;
mod metrics;
mod outcomes;
mod reads;
mod signals;
mod streams;
mod suspend;
mod system;
mod usage;
mod workers;

use crate::route::Route;

/// The table, in the order of the description.
pub(crate) const GROUPS: &[&[Route]] = &[
    executions::ROUTES,
    reads::ROUTES,
    manage::ROUTES,
    workers::ROUTES,
    leases::ROUTES,
    grants::ROUTES,
    outcomes::ROUTES,
    usage::ROUTES,
    suspend::ROUTES,
    signals::ROUTES,
    streams::ROUTES,
    events::ROUTES,
    keys::ROUTES,
    system::ROUTES,
    metrics::ROUTES,
];
