//! A request with what its answer means.

use ff_api::reading::Unreadable;
use ff_core::error::{Code, EngineError};
use ff_core::id::Namespace;
use ff_core::operation::Settled;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::http::{Answer, Request};
use crate::link::Link;

type Reading<T> =
    Box<dyn FnOnce(&Link, Result<Answer, EngineError>) -> Result<T, EngineError> + Send>;

pub(crate) struct Exchange<T> {
    pub(crate) request: Request,
    pub(crate) read: Reading<T>,
}

/// An answer that this side cannot read.
pub(crate) fn unreadable(error: impl std::fmt::Display) -> EngineError {
    EngineError::bug(format!("the server's answer is not understood: {error}"))
}

impl<T: 'static> Exchange<T> {
    /// The answer is a form.
    pub(crate) fn form<F: DeserializeOwned + 'static>(
        request: Request,
        read: impl FnOnce(F, &Link) -> Result<T, Unreadable> + Send + 'static,
    ) -> Self {
        let read: Reading<T> = Box::new(move |link, answer| {
            read(answer?.form().map_err(unreadable)?, link).map_err(unreadable)
        });
        Self { request, read }
    }

    /// The answer is a form that becomes the reply by itself.
    pub(crate) fn plain<F>(request: Request) -> Self
    where
        F: DeserializeOwned + 'static,
        T: TryFrom<F, Error: Into<Unreadable>>,
    {
        Self::form(request, |form: F, _| form.try_into().map_err(Into::into))
    }

    /// What the answer says, whatever it is.
    pub(crate) fn answer(
        request: Request,
        read: impl FnOnce(Answer) -> Result<T, EngineError> + Send + 'static,
    ) -> Self {
        Self { request, read: Box::new(move |_, answer| read(answer?)) }
    }

    pub(crate) fn map<U: 'static>(self, to: impl FnOnce(T) -> U + Send + 'static) -> Exchange<U> {
        let Self { request, read } = self;
        Exchange { request, read: Box::new(move |link, answer| read(link, answer).map(to)) }
    }

    /// A refusal with this code is an answer too.
    pub(crate) fn or(self, code: Code, instead: impl FnOnce() -> T + Send + 'static) -> Self {
        self.or_else(move |error| if error.code() == code { Ok(instead()) } else { Err(error) })
    }

    /// Some failures are answers too.
    pub(crate) fn or_else(
        self,
        instead: impl FnOnce(EngineError) -> Result<T, EngineError> + Send + 'static,
    ) -> Self {
        let Self { request, read } = self;
        let read: Reading<T> = Box::new(move |link, answer| match answer {
            Err(error) => instead(error),
            answer => read(link, answer),
        });
        Self { request, read }
    }

    /// Once it has gone well it is known where these things are.
    pub(crate) fn noting(self, ids: Vec<Uuid>, namespace: Namespace) -> Self {
        let Self { request, read } = self;
        let read: Reading<T> = Box::new(move |link, answer| {
            let read = read(link, answer)?;
            ids.into_iter().for_each(|id| link.known.note(id, &namespace));
            Ok(read)
        });
        Self { request, read }
    }

    /// What is not there is none.
    pub(crate) fn or_none(self, code: Code) -> Exchange<Option<T>> {
        self.map(Some).or(code, || None)
    }
}

impl Exchange<Settled> {
    /// The answer tells whether it was so before.
    pub(crate) fn settled(request: Request) -> Self {
        Self::answer(request, |answer| {
            Ok(if answer.is_replayed() { Settled::AlreadySatisfied } else { Settled::Done })
        })
    }
}
