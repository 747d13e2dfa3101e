//! A request as its handler gets it.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use bytes::Bytes;
use ff_api::fence::Fence;
use ff_api::object::{Invalid, Object};
use ff_api::problem::{Failure, FieldError, Problem};
use ff_core::backend::{Backend, BackendExt as _};
use ff_core::content::Content;
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::id::{ExecutionId, FlowId, IdempotencyKey, LeaseFence, Namespace};
use ff_core::operation::Operation;
use ff_core::read::{Question, Record};
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::caller::Caller;
use crate::failure::{self, Failed};
use crate::trace::Trace;

pub(crate) struct Call {
    pub(crate) app: Arc<App>,
    pub(crate) caller: Caller,
    pub(crate) headers: HeaderMap,
    /// Path and query as they came.
    pub(crate) target: String,
    pub(crate) namespace: Namespace,
    /// The request names its namespace; otherwise it is the caller's own.
    pub(crate) names_namespace: bool,
    pub(crate) trace: Trace,
    /// How long it may wait.
    pub(crate) wait: Duration,
    pub(crate) path: Vec<(String, String)>,
    /// What of the query no part before has taken.
    pub(crate) query: Object,
    pub(crate) body: Body,
}

/// What came with a request.
pub(crate) enum Body {
    Object(Object),
    /// The bytes themselves; the fields came as parameters.
    Raw(Object, Content),
    /// A document on each line.
    Lines(Bytes),
}

impl Call {
    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.app.backend
    }

    /// A part of the path.
    pub(crate) fn part(&self, name: &str) -> &str {
        let part = self.path.iter().find(|(known, _)| known == name);
        part.map_or("", |(_, value)| value)
    }

    /// A part of the path, read.
    pub(crate) fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
        &self,
        name: &str,
    ) -> Result<T, Failed> {
        let parsed = self.part(name).parse();
        Ok(parsed.map_err(|error| Invalid(vec![FieldError::parameter(name, error)]))?)
    }

    /// The execution that the path names.
    pub(crate) fn execution_id(&self) -> Result<ExecutionId, Failed> {
        self.parsed("execution_id")
    }

    /// The flow that the path names.
    pub(crate) fn flow_id(&self) -> Result<FlowId, Failed> {
        self.parsed("flow_id")
    }

    /// The parameters, as the route's form.
    pub(crate) fn query<T: DeserializeOwned>(&self) -> Result<T, Invalid> {
        self.query.read()
    }

    /// The fields of the request and, where it came by itself, its content.
    pub(crate) fn fields(&mut self) -> (Object, Option<Content>) {
        match std::mem::replace(&mut self.body, Body::Object(Object::Body(Vec::new()))) {
            Body::Object(object) => (object, None),
            Body::Raw(object, content) => (object, Some(content)),
            Body::Lines(_) => (Object::Body(Vec::new()), None),
        }
    }

    /// The body, as the route's form.
    pub(crate) fn body<T: DeserializeOwned>(&mut self) -> Result<T, Invalid> {
        self.fields().0.read()
    }

    /// The fence and the rest of the body.
    pub(crate) fn fenced<T: DeserializeOwned>(&mut self) -> Result<(Fence, T), Invalid> {
        let (mut fields, _) = self.fields();
        let fence = Fence::take(&mut fields)?;
        Ok((fence, fields.read()?))
    }

    /// The record of an execution that is there for the caller.
    pub(crate) async fn record(&self, id: ExecutionId) -> Result<Box<Record>, EngineError> {
        let (namespaces, backend) = (&self.app.namespaces, self.backend());
        namespaces.record(backend, &self.caller, &self.namespace, id).await
    }

    /// Passes a call about an execution that shows a fence.
    pub(crate) async fn check(&self, id: ExecutionId) -> Result<(), EngineError> {
        let (namespaces, backend) = (&self.app.namespaces, self.backend());
        namespaces.check(backend, &self.caller, &self.namespace, id).await
    }

    /// The execution of the path, which must be there for the caller, with the fence that must
    /// be shown for it and the rest of the body.
    pub(crate) async fn leased<T: DeserializeOwned>(
        &mut self,
    ) -> Result<(ExecutionId, LeaseFence, T), Failed> {
        let id = self.execution_id()?;
        let (fence, form) = self.fenced()?;
        let fence = fence.required(id, self.app.store())?;
        self.check(id).await?;
        Ok((id, fence, form))
    }

    /// The key of the header, of the body, or of both if they agree.
    pub(crate) fn key(
        &self,
        in_body: Option<IdempotencyKey>,
        field: &str,
    ) -> Result<Option<IdempotencyKey>, Failed> {
        let Some(header) = self.headers.get("idempotency-key") else { return Ok(in_body) };
        let wrong = |message: &str| Invalid::at(field, message);
        let text = header.to_str().map_err(|_| wrong("Idempotency-Key is no text"))?;
        let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
        let key = IdempotencyKey::new(text).map_err(|error| Invalid::at(field, error))?;
        match in_body {
            Some(other) if other != key => {
                Err(wrong("Idempotency-Key and the body hold different keys").into())
            }
            _ => Ok(Some(key)),
        }
    }

    /// The revision that the caller has seen (`If-Match`), and without which nothing is changed.
    pub(crate) fn expected_revision(&self) -> Result<Option<u64>, Refusal> {
        let Some(header) = self.headers.get(header::IF_MATCH) else { return Ok(None) };
        let text = header.to_str().unwrap_or("").trim_matches('"');
        if text == "*" {
            return Ok(None);
        }
        let no_revision = || Refusal::new(Code::PreconditionFailed, "If-Match is no revision");
        text.parse().map(Some).map_err(|_| no_revision())
    }

    /// Carries out an operation.
    pub(crate) async fn act<O: Operation>(&self, operation: O) -> Result<O::Reply, EngineError> {
        self.backend().call(operation).await
    }

    /// Asks a question.
    pub(crate) async fn ask<Q: Question>(&self, question: Q) -> Result<Q::Answer, EngineError> {
        self.backend().ask(question).await
    }

    /// A problem of one item of many, in the words of the answer.
    pub(crate) fn problem(&self, error: &EngineError) -> Problem {
        failure::problem_of(error, &self.trace)
    }

    /// The same of a failure.
    pub(crate) fn failure(&self, failed: Failed) -> Failure {
        match failed {
            Failed::Problem(problem) | Failed::Method { problem, .. } => problem,
            Failed::Engine(error) => Failure::new(self.problem(&error)),
        }
    }

    /// Whether the caller asks for this media type.
    pub(crate) fn accepts(&self, media_type: &str) -> bool {
        let values = self.headers.get_all("accept").iter().filter_map(|value| value.to_str().ok());
        let mut types = values.flat_map(|value| value.split(','));
        types.any(|accepted| {
            let name = accepted.split(';').next().unwrap_or(accepted);
            name.trim().eq_ignore_ascii_case(media_type)
        })
    }
}
