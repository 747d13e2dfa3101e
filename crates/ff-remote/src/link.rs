//! What all requests of a connection share.

use std::fmt::Display;

use ff_core::backend::Identity;
use ff_core::errand::Errands;
use ff_core::error::{EngineError, Refusal};
use ff_core::id::{ExecutionId, Namespace};
use ff_core::machine::Settings;
use ff_core::operation::Task;
use ff_core::tally::Tally;
use uuid::Uuid;

use crate::exchange::Exchange;
use crate::http::{Answer, Request, Transport, at};
use crate::known::Known;

pub(crate) struct Link {
    pub(crate) transport: Transport,
    pub(crate) settings: Settings,
    pub(crate) identity: Identity,
    /// Always empty: a server carries out its own.
    pub(crate) errands: Errands,
    /// Always empty: a server counts its own steps.
    pub(crate) tally: Tally,
    pub(crate) known: Known,
}

impl Link {
    /// The kind of store, as handles name it.
    pub(crate) fn store(&self) -> &'static str {
        self.settings.store
    }

    /// Sends, and reads what comes back.
    pub(crate) async fn send<T>(&self, exchange: Exchange<T>) -> Result<T, EngineError> {
        let Exchange { request, read } = exchange;
        read(self, self.answer(&request).await)
    }

    async fn answer(&self, request: &Request) -> Result<Answer, EngineError> {
        let sent = self.transport.send(request).await;
        let answer = sent.map_err(|fault| fault.engine(request.changes()))?;
        if answer.is_well() { Ok(answer) } else { Err(answer.problem().into()) }
    }

    /// The namespace of a thing by its id, as cursors of lists name it.
    pub(crate) fn namespace_of(&self, id: Uuid) -> Namespace {
        self.known.of(id).unwrap_or_default()
    }

    /// Notes where a task that was handed out belongs.
    pub(crate) fn note_task(&self, task: &Task) {
        self.known.note(task.execution_id.uuid(), &task.namespace);
    }
}

/// A path, of ids that a caller has chosen.
pub(crate) fn path(parts: &[&str]) -> Result<String, EngineError> {
    at(parts).map_err(|error| Refusal::invalid("id", error).into())
}

/// A path of a thing: `/v1/<things>/<id>`, or a part of it.
pub(crate) fn of(things: &str, id: impl Display, part: &str) -> Result<String, EngineError> {
    let id = id.to_string();
    match part {
        "" => path(&[things, &id]),
        part => path(&[things, &id, part]),
    }
}

/// A path of an execution, or of a part of it.
pub(crate) fn of_execution(id: ExecutionId, part: &str) -> Result<String, EngineError> {
    of("executions", id, part)
}
