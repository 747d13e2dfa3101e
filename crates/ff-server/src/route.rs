//! One route: all that is said of it stands together.

use std::future::Future;
use std::pin::Pin;

use axum::http::Method;
use axum::response::Response;
use ff_core::state::Scope;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use crate::call::Call;
use crate::failure::Failed;
use crate::options::ServerOptions;

/// Bodies that carry little besides names and numbers.
pub(crate) const SMALL: usize = 96 << 10;

/// Groups of routes that are about the whole store.
const BESIDE_NAMESPACES: &[&str] = &["admin", "capabilities", "keys", "system"];

/// Of them, what a key of some namespaces must not reach: the secrets of all, and reports that name
/// things of all.
const OF_ALL_NAMESPACES: &[&str] =
    &["/metrics", "/v1/admin/", "/v1/system/audit", "/v1/system/invariants"];

pub(crate) type Handled = Pin<Box<dyn Future<Output = Result<Response, Failed>> + Send>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// A form of the wire, for the description.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    pub(crate) name: fn() -> String,
    pub(crate) schema: fn() -> RefOr<Schema>,
    /// The forms that it is made of.
    pub(crate) parts: fn() -> Vec<(String, RefOr<Schema>)>,
}

/// What a route takes as its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// A JSON object, or nothing.
    Object,
    /// Also bytes as they are, with `?raw=true` and the fields as parameters.
    ObjectOrRaw,
    /// Also a JSON document on each line.
    ObjectOrLines,
}

/// One row of the table.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    pub(crate) verb: Verb,
    pub(crate) path: &'static str,
    /// What it does, in a few words.
    pub(crate) summary: &'static str,
    /// What a key must be allowed to do; none: the route is open.
    pub(crate) scope: Option<Scope>,
    /// What it must be allowed to do besides.
    pub(crate) also: Option<Scope>,
    /// What it may be allowed to do instead; the handler asks for the one that the request needs.
    pub(crate) or_scope: Option<Scope>,
    /// The token of a waitpoint may be enough.
    pub(crate) by_token: bool,
    /// Requests are noted in the audit log.
    pub(crate) audited: bool,
    pub(crate) takes: Takes,
    pub(crate) body_bytes: usize,
    pub(crate) request: Option<Form>,
    /// The request also carries the fields of a fence.
    pub(crate) fenced: bool,
    pub(crate) query: Option<Form>,
    /// Longest `wait_ms`; none: it does not wait.
    pub(crate) wait_ms: Option<u64>,
    /// `wait_ms` may stand in the body too.
    pub(crate) waits_in_body: bool,
    /// How long `?wait=true` waits, where the route knows it.
    pub(crate) wait_flag_ms: Option<u64>,
    /// How much longer than others it may take.
    pub(crate) lasts_ms: u64,
    /// Statuses and forms of replies.
    pub(crate) status: u16,
    pub(crate) reply: Option<Form>,
    pub(crate) run: fn(Call) -> Handled,
}

pub(crate) const fn form<T: ToSchema>() -> Form {
    Form {
        name: || T::name().into_owned(),
        schema: T::schema,
        parts: || {
            let mut parts = Vec::new();
            T::schemas(&mut parts);
            parts
        },
    }
}

impl Verb {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether a request of this method asks for it. Who asks for the head only gets what a GET gets,
    /// and the connection leaves the body out.
    pub(crate) fn serves(self, method: &Method) -> bool {
        method.as_str() == self.as_str() || (self == Self::Get && method == Method::HEAD)
    }

    pub(crate) const fn has_body(self) -> bool {
        !matches!(self, Self::Get)
    }
}

impl Route {
    pub(crate) const fn new(
        verb: Verb,
        path: &'static str,
        scope: Scope,
        summary: &'static str,
        run: fn(Call) -> Handled,
    ) -> Self {
        Self { scope: Some(scope), ..Self::open(verb, path, summary, run) }
    }

    /// A route that needs no key.
    pub(crate) const fn open(
        verb: Verb,
        path: &'static str,
        summary: &'static str,
        run: fn(Call) -> Handled,
    ) -> Self {
        Self {
            verb,
            path,
            summary,
            scope: None,
            also: None,
            or_scope: None,
            by_token: false,
            audited: false,
            takes: Takes::Object,
            body_bytes: SMALL,
            request: None,
            fenced: false,
            query: None,
            wait_ms: None,
            waits_in_body: false,
            wait_flag_ms: None,
            lasts_ms: 0,
            status: 200,
            reply: None,
            run,
        }
    }

    pub(crate) const fn also(mut self, scope: Scope) -> Self {
        self.also = Some(scope);
        self
    }

    pub(crate) const fn or(mut self, scope: Scope) -> Self {
        self.or_scope = Some(scope);
        self
    }

    pub(crate) const fn by_token(mut self) -> Self {
        self.by_token = true;
        self
    }

    pub(crate) const fn audited(mut self) -> Self {
        self.audited = true;
        self
    }

    pub(crate) const fn takes<T: ToSchema>(mut self) -> Self {
        self.request = Some(form::<T>());
        self
    }

    pub(crate) const fn up_to(mut self, body_bytes: usize) -> Self {
        self.body_bytes = body_bytes;
        self
    }

    pub(crate) const fn or_raw(mut self) -> Self {
        self.takes = Takes::ObjectOrRaw;
        self
    }

    pub(crate) const fn or_lines(mut self) -> Self {
        self.takes = Takes::ObjectOrLines;
        self
    }

    pub(crate) const fn fenced(mut self) -> Self {
        self.fenced = true;
        self
    }

    pub(crate) const fn asks<T: ToSchema>(mut self) -> Self {
        self.query = Some(form::<T>());
        self
    }

    pub(crate) const fn waits(mut self, most_ms: u64) -> Self {
        self.wait_ms = Some(most_ms);
        self
    }

    pub(crate) const fn waits_in_body(mut self, most_ms: u64) -> Self {
        self.waits_in_body = true;
        self.waits(most_ms)
    }

    /// `?wait=true` stands for so long.
    pub(crate) const fn waits_if_told(mut self, ms: u64) -> Self {
        self.wait_flag_ms = Some(ms);
        self
    }

    /// Its work may take so much longer than that of others.
    pub(crate) const fn lasts(mut self, ms: u64) -> Self {
        self.lasts_ms = ms;
        self
    }

    pub(crate) const fn answers<T: ToSchema>(mut self, status: u16) -> Self {
        self.reply = Some(form::<T>());
        self.status = status;
        self
    }

    pub(crate) const fn answers_nothing(mut self) -> Self {
        self.status = 204;
        self
    }

    /// Whether `/v1/namespaces/{namespace}` may stand before it.
    pub(crate) fn is_namespaced(&self) -> bool {
        self.is_of_namespace() && !self.path.starts_with("/v1/namespaces/")
    }

    /// Whether it is about one namespace, which may be named in several ways.
    pub(crate) fn is_of_namespace(&self) -> bool {
        let group = self.path.strip_prefix("/v1/").and_then(|rest| rest.split('/').next());
        group.is_some_and(|group| !BESIDE_NAMESPACES.contains(&group))
    }

    /// Whether it tells of, or changes, what belongs to all namespaces.
    pub(crate) fn is_of_all_namespaces(&self) -> bool {
        OF_ALL_NAMESPACES.iter().any(|prefix| self.path.starts_with(prefix))
    }

    /// Whether the token of a waitpoint is enough for it.
    pub(crate) fn is_public(&self, options: &ServerOptions) -> bool {
        self.by_token && options.public_signals
    }

    /// What is removed is noted, whatever it is.
    pub(crate) fn is_audited(&self) -> bool {
        self.audited || self.verb == Verb::Delete
    }
}
