//! Boot, health and housekeeping, as far as they are a client's affair.

use std::future::ready;
use std::time::Duration;

use ff_api::system::Capabilities;
use ff_core::backend::{Identity, Pending, Upkeep};
use ff_core::errand::Errands;
use ff_core::error::EngineError;
use ff_core::machine::Settings;
use ff_core::operation::{Reconcile, Reconciled, Trim, Trimmed};
use ff_core::read::Repaired;
use ff_core::tally::Tally;
use ff_core::time::TimestampMs;
use ff_core::turns::Turn;

use crate::Remote;
use crate::exchange::{Exchange, unreadable};
use crate::http::Request;
use crate::no_route::refused;

/// Why a client cannot do it.
const ENGINE: &str = "the server's engine does this by itself";
const OPERATOR: &str = "an operator asks the server for it: POST /v1/system/audit with repair";

fn refuse<T: Send + 'static>(name: &str, why: &str) -> Pending<'static, Result<T, EngineError>> {
    Box::pin(ready(Err(refused(name, why))))
}

/// The store is the one behind the server, and so are its name, its settings and its clock.
impl Upkeep for Remote {
    fn backend_label(&self) -> &'static str {
        self.link.store()
    }

    fn identity(&self) -> Identity {
        self.link.identity.clone()
    }

    fn settings(&self) -> &Settings {
        &self.link.settings
    }

    fn errands(&self) -> &Errands {
        &self.link.errands
    }

    fn tally(&self) -> &Tally {
        &self.link.tally
    }

    fn ping(&self) -> Pending<'_, Result<(), EngineError>> {
        let ready = Exchange::answer(Request::get("/readyz".to_owned()), |_| Ok(()));
        Box::pin(self.link.send(ready))
    }

    fn server_time_ms(&self) -> Pending<'_, Result<TimestampMs, EngineError>> {
        let request = Request::get("/v1/capabilities".to_owned());
        let time = Exchange::answer(request, |answer| {
            let found: Capabilities = answer.form().map_err(unreadable)?;
            let absent = || unreadable("it tells no server_time");
            found.server_time.map(Into::into).ok_or_else(absent)
        });
        Box::pin(self.link.send(time))
    }

    fn trim(&self, _: Trim) -> Pending<'_, Result<Trimmed, EngineError>> {
        refuse("trim", ENGINE)
    }

    fn repair(&self) -> Pending<'_, Result<Repaired, EngineError>> {
        refuse("repair", OPERATOR)
    }

    fn reconcile(&self, _: Reconcile) -> Pending<'_, Result<Reconciled, EngineError>> {
        refuse("reconcile", ENGINE)
    }

    fn take_turn(&self, _: Turn) -> Pending<'_, Result<bool, EngineError>> {
        refuse("take_turn", ENGINE)
    }

    /// Nothing of what was acknowledged is here: it is durable where the server says so.
    fn shutdown_prepare(&self, _: Duration) -> Pending<'_, Result<(), EngineError>> {
        Box::pin(ready(Ok(())))
    }
}
