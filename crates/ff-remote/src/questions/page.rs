//! Pages of lists.
//!
//! Some lists go on with a cursor that the store made; it is handed through. Others the server numbers
//! itself: their cursors are made, and read, as the server does.

use ff_api::list::{Page as PageForm, scope};
use ff_api::reading::Unreadable;
use ff_core::cursor;
use ff_core::id::Namespace;
use ff_core::read::Page;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::exchange::Exchange;
use crate::http::Request;
use crate::operations::Asked;

/// A page of a list that the store walks.
pub(super) fn walked<F, T>(request: Request, cursor: Option<String>, limit: u32) -> Asked<Page<T>>
where
    F: DeserializeOwned + 'static,
    T: TryFrom<F, Error: Into<Unreadable>> + 'static,
{
    let request = request.each("cursor", cursor).query("limit", &limit);
    Ok(Exchange::form(request, |form: PageForm<F>, _| {
        Ok(Page { items: items(form.items)?, next_cursor: form.next_cursor })
    }))
}

pub(super) fn items<F, T>(forms: Vec<F>) -> Result<Vec<T>, Unreadable>
where
    T: TryFrom<F, Error: Into<Unreadable>>,
{
    forms.into_iter().map(|form| form.try_into().map_err(Into::into)).collect()
}

/// A list that the server numbers itself, and where it goes on.
pub(super) struct Numbered {
    scope: String,
}

impl Numbered {
    pub(super) fn new(list: &str, namespace: &Namespace, of: impl std::fmt::Display) -> Self {
        Self { scope: scope(list, namespace, of) }
    }

    /// The page that begins at a place; none: the first one.
    pub(super) fn page<F, T, P>(
        self,
        request: Request,
        from: Option<P>,
        limit: u32,
    ) -> Asked<(Vec<T>, Option<P>)>
    where
        F: DeserializeOwned + 'static,
        T: TryFrom<F, Error: Into<Unreadable>> + 'static,
        P: Serialize + DeserializeOwned + 'static,
    {
        let from = from.map(|place| cursor::encode(&self.scope, &place));
        let request = request.each("cursor", from).query("limit", &limit);
        Ok(Exchange::form(request, move |form: PageForm<F>, _| {
            let next = form.next_cursor.map(|text| cursor::decode(&self.scope, &text));
            let next = next.transpose();
            let next = next.map_err(|refusal| Unreadable::new("next_cursor", refusal))?;
            Ok((items(form.items)?, next))
        }))
    }
}
