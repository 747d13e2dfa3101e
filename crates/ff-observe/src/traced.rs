//! The layer that puts a span around every call of a store.

use std::sync::Arc;
use std::time::Duration;

use ff_core::act::{Act, Acted, Acts};
use ff_core::backend::{Backend, Pending};
use ff_core::error::EngineError;
use ff_core::layer::{Layer, Layered};
use ff_core::operation::{Claim, Claimed, Command, Reply};
use ff_core::read::{Answer, Query};
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use crate::traces::TARGET;

struct Traced {
    inner: Arc<dyn Backend>,
}

/// The same store, each of whose calls is a span `ff.<operation>` from now on.
pub fn traced(backend: Arc<dyn Backend>) -> Arc<dyn Backend> {
    Arc::new(Layered(Traced { inner: backend }))
}

/// Spans have their name when they are made; this field is the one that tracing systems show.
fn span(operation: &str) -> Span {
    tracing::debug_span!(
        target: TARGET,
        "ff.operation",
        otel.name = format!("ff.{operation}"),
        otel.status_code = Empty,
        code = Empty,
        count = Empty,
        execution_id = Empty,
    )
}

/// Notes a fault. A refusal is a legal answer, and is noted without being an error.
fn note(span: &Span, error: &EngineError) {
    span.record("code", error.code().as_str());
    if error.refusal().is_none() {
        span.record("otel.status_code", "ERROR");
    }
}

impl Layer for Traced {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>> {
        let name = commands.first().map_or("nothing", Command::name);
        let same = commands.iter().all(|command| command.name() == name);
        let span = span(if same { name } else { "batch" });
        span.record("count", commands.len());
        if let [command] = commands.as_slice()
            && let Some(id) = command.execution_id()
        {
            span.record("execution_id", tracing::field::display(id));
        }
        let noted = span.clone();
        let applied = async move {
            let replies = self.inner.apply(commands).await;
            replies.iter().filter_map(|reply| reply.as_ref().err()).for_each(|e| note(&noted, e));
            replies
        };
        Box::pin(applied.instrument(span))
    }

    fn take(&self, claim: Claim, wait: Duration) -> Pending<'_, Result<Claimed, EngineError>> {
        let span = span("claim_executions");
        let noted = span.clone();
        let taken = async move {
            let taken = self.inner.take(claim, wait).await;
            match &taken {
                Ok(claimed) => drop(noted.record("count", claimed.tasks.len())),
                Err(error) => note(&noted, error),
            }
            taken
        };
        Box::pin(taken.instrument(span))
    }

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>> {
        let span = span(query.name());
        let noted = span.clone();
        let asked = async move {
            let answer = self.inner.query(query).await;
            answer.as_ref().err().into_iter().for_each(|error| note(&noted, error));
            answer
        };
        Box::pin(asked.instrument(span))
    }

    fn act<'a>(
        &'a self,
        behind: &'a dyn Acts,
        act: Act,
    ) -> Pending<'a, Result<Acted, EngineError>> {
        let span = span(act.name());
        let noted = span.clone();
        let acting = async move {
            let acted = behind.act(act).await;
            acted.as_ref().err().into_iter().for_each(|error| note(&noted, error));
            acted
        };
        Box::pin(acting.instrument(span))
    }
}
