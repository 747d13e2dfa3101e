//! Background work and soundness: what scanners do, what audits find.

use std::time::Duration;

use axum::response::Response;
use ff_api::system::{AuditReport, Invariants, RunAudit, ScannerRow, Scanners};
use ff_core::error::{Code, Refusal};
use ff_engine::{ScannerStatus, acts};

use crate::call::Call;
use crate::failure::Failed;
use crate::reply;
use crate::route::Route;
use crate::route::Verb::{Get, Post};
use ff_core::state::Scope::{Admin, ExecutionsRead};

/// An audit walks the whole store.
const AUDIT_MS: u64 = 600_000;

pub(super) const ROUTES: &[Route] = &[
    Route::new(
        Get,
        "/v1/system/scanners",
        ExecutionsRead,
        "What the background work of this process does",
        |call| Box::pin(scanners(call)),
    )
    .answers::<Scanners>(200),
    Route::new(Get, "/v1/system/invariants", ExecutionsRead, "What the last audit found", |call| {
        Box::pin(invariants(call))
    })
    .answers::<Invariants>(200),
    Route::new(Post, "/v1/system/audit", Admin, "Check the invariants of the store", |call| {
        Box::pin(audit(call))
    })
    .takes::<RunAudit>()
    .lasts(AUDIT_MS)
    .answers::<AuditReport>(200),
];

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn row(status: &ScannerStatus) -> ScannerRow {
    ScannerRow {
        scanner: status.name.to_owned(),
        cycles: status.cycles,
        processed: status.processed,
        errors: status.errors,
        skipped: status.skipped,
        left_to_others: status.left_to_others,
        violations: status.violations,
        restarts: status.restarts,
        lag_ms: ms(status.lag),
        last_duration_ms: ms(status.last_duration),
        last_cycle_age_ms: status.last_cycle_ago.map(ms),
    }
}

async fn scanners(call: Call) -> Result<Response, Failed> {
    let report = call.app.options.engine.as_ref();
    let items = report.map(|report| report.status().iter().map(row).collect());
    let (engine, items) = (items.is_some(), items.unwrap_or_default());
    reply::ok(&Scanners { engine, items, next_cursor: None })
}

async fn invariants(call: Call) -> Result<Response, Failed> {
    let report = call.app.options.engine.as_ref();
    let mended = report.map(|report| report.status().iter().map(|of| of.violations).sum());
    let last_audit = call.app.last_audit.lock().await.clone();
    reply::ok(&Invariants { last_audit, mended })
}

async fn audit(mut call: Call) -> Result<Response, Failed> {
    let RunAudit { repair } = call.body()?;
    let busy = || Refusal::new(Code::RateLimited, "another audit is under way");
    let _turn = call.app.auditing.try_lock().map_err(|_| busy())?;
    let found = acts::audit(call.backend(), repair).await?;
    let audited_at = call.backend().server_time_ms().await?.into();
    let report = AuditReport::new(call.backend().identity(), &found, audited_at);
    let (violations, trace_id) = (report.violations.len(), &call.trace.id);
    tracing::info!(target: "audit", repair, violations, %trace_id, "the store was audited");
    *call.app.last_audit.lock().await = Some(report.clone());
    reply::ok(&report)
}
