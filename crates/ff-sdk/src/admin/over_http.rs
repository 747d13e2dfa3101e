//! Administrative calls to a server: a refusal comes back as the server told it.

use std::time::Duration;

use ff_api::grant::{ClaimForWorker as ForWorkerForm, Grant, Reclaim, Reclaimed};
use ff_api::secret::SecretRotated;
use ff_api::suspend::Waitpoint;
use ff_core::id::{ExecutionId, Namespace};
use ff_core::operation::{
    ClaimForWorker, ClaimGrant, IssueReclaimGrant, IssuedReclaimGrant, IssuedWaitpoint, Rotated,
    WaitpointRef,
};
use ff_remote::http::{Answer, Ends, Fault, Request, Transport, at};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::connection::CALL;
use crate::error::SdkError;
use crate::presence::millis;

/// The way to a server.
pub(super) struct OverHttp {
    transport: Transport,
}

impl OverHttp {
    pub(super) fn new(
        url: &str,
        token: Option<&str>,
        patience: Duration,
    ) -> Result<Self, SdkError> {
        let ends = Ends {
            url,
            key: token,
            agent: concat!("ff-sdk/", env!("CARGO_PKG_VERSION")),
            connect_timeout: CALL,
            call_timeout: patience,
            roots: &[],
        };
        let transport = Transport::new(&ends);
        let transport = transport.map_err(|error| SdkError::config("url", error.to_string()))?;
        Ok(Self { transport })
    }

    pub(super) async fn claim_for_worker(
        &self,
        claim: ClaimForWorker,
    ) -> Result<Option<ClaimGrant>, SdkError> {
        let namespace = claim.namespace.clone();
        let path = path(&["workers", claim.worker_id.as_str(), "claim"])?;
        let answer = self.ask(Request::post(path, &ForWorkerForm::from(claim)), &namespace);
        match answer.await? {
            Answer { status: 204, .. } => Ok(None),
            answer => form::<Grant, _>(&answer).map(Some),
        }
    }

    pub(super) async fn issue_reclaim_grant(
        &self,
        issue: IssueReclaimGrant,
        namespace: &Namespace,
    ) -> Result<IssuedReclaimGrant, SdkError> {
        let path = path(&["executions", &issue.execution_id.to_string(), "reclaim"])?;
        let request = Request::post(path, &Reclaim::from(issue));
        form::<Reclaimed, _>(&self.ask(request, namespace).await?)
    }

    pub(super) async fn rotate(
        &self,
        new_kid: &str,
        new_secret_hex: &str,
        grace: Duration,
        namespace: &Namespace,
    ) -> Result<Rotated, SdkError> {
        let grace_ms = millis(grace);
        let body =
            json!({ "new_kid": new_kid, "new_secret_hex": new_secret_hex, "grace_ms": grace_ms });
        let path = path(&["admin", "rotate-waitpoint-secret"])?;
        form::<SecretRotated, _>(&self.ask(Request::post(path, &body), namespace).await?)
    }

    /// None for an answer of 404.
    pub(super) async fn read_waitpoint_token(
        &self,
        execution_id: ExecutionId,
        waitpoint: &WaitpointRef,
        namespace: &Namespace,
    ) -> Result<Option<IssuedWaitpoint>, SdkError> {
        let name = match waitpoint {
            WaitpointRef::Id(id) => id.to_string(),
            WaitpointRef::Key(key) | WaitpointRef::Text(key) => key.to_string(),
        };
        let parts = ["executions", &execution_id.to_string(), "waitpoints", &name, "token"];
        match self.ask(Request::get(path(&parts)?), namespace).await {
            Ok(answer) => form::<Waitpoint, _>(&answer).map(Some),
            Err(SdkError::AdminApi { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn ask(&self, request: Request, namespace: &Namespace) -> Result<Answer, SdkError> {
        let request = request.namespace(Some(namespace));
        let answer = self.transport.send(&request).await.map_err(|fault| unanswered(&fault))?;
        if answer.is_well() { Ok(answer) } else { Err(refused(&answer)) }
    }
}

fn path(parts: &[&str]) -> Result<String, SdkError> {
    at(parts).map_err(|error| SdkError::config("path", error.to_string()))
}

fn form<F, T>(answer: &Answer) -> Result<T, SdkError>
where
    F: DeserializeOwned,
    T: TryFrom<F, Error: std::fmt::Display>,
{
    let unreadable = |error: &dyn std::fmt::Display| SdkError::Http {
        message: format!("the server's answer is not understood: {error}"),
    };
    let form: F = answer.form().map_err(|error| unreadable(&error))?;
    T::try_from(form).map_err(|error| unreadable(&error))
}

fn unanswered(fault: &Fault) -> SdkError {
    SdkError::Http { message: fault.to_string() }
}

/// The code is told as it came: a newer server may have one that is not known here.
fn refused(answer: &Answer) -> SdkError {
    let problem = answer.problem();
    let raw: Value = answer.form().unwrap_or_default();
    let code = raw["code"].as_str().map_or_else(|| problem.code.to_string(), str::to_owned);
    SdkError::AdminApi {
        status: answer.status,
        code,
        message: problem.detail,
        retryable: problem.retryable,
        body: String::from_utf8_lossy(&answer.body).into_owned(),
    }
}
