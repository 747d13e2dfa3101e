//! Executions, and parts of them.

use ff_api::attempt::Attempt as AttemptForm;
use ff_api::event::Event as EventForm;
use ff_api::execution::{Outcome, Record as RecordForm, State};
use ff_api::list::Page as PageForm;
use ff_api::reading::Unreadable;
use ff_api::search::Search as SearchForm;
use ff_core::content::Content;
use ff_core::error::{Code, EngineError};
use ff_core::event::Envelope;
use ff_core::id::ExecutionId;
use ff_core::read::{
    Attempts, Context, Describe, Events, ListAttempts, ListEvents, Page, ReadContext, ReadResult,
    ReadState, Record, Search,
};
use ff_core::state::StateVector;
use ff_core::tags::Tags;

use super::page::{Numbered, items};
use crate::exchange::Exchange;
use crate::http::Request;
use crate::link::{Link, of_execution, path};
use crate::operations::Asked;

/// A question about an execution, in the namespace that it is in.
pub(super) fn get(link: &Link, id: ExecutionId, part: &str) -> Result<Request, EngineError> {
    let namespace = link.known.of(id.uuid());
    Ok(Request::get(of_execution(id, part)?).namespace(namespace.as_ref()))
}

fn noted(form: RecordForm, link: &Link) -> Result<Record, Unreadable> {
    let record: Record = form.try_into()?;
    link.known.note(record.execution_id.uuid(), &record.namespace);
    Ok(record)
}

pub(crate) fn describe(link: &Link, question: &Describe) -> Asked<Option<Box<Record>>> {
    let request = get(link, question.execution_id, "")?;
    let found = Exchange::form(request, |form, link| noted(form, link).map(Box::new));
    Ok(found.or_none(Code::ExecutionNotFound))
}

pub(crate) fn state(link: &Link, question: &ReadState) -> Asked<Option<StateVector>> {
    let request = get(link, question.execution_id, "state")?;
    let found = Exchange::form(request, |form: State, _| form.state_vector.try_into());
    Ok(found.or_none(Code::ExecutionNotFound))
}

pub(crate) fn result(link: &Link, question: &ReadResult) -> Asked<Content> {
    let request = get(link, question.execution_id, "result")?;
    Ok(Exchange::plain::<Outcome>(request.each("attempt", question.attempt_index)))
}

pub(crate) fn context(link: &Link, question: &ReadContext) -> Asked<Option<Context>> {
    let request = get(link, question.execution_id, "")?.query("include", "payload");
    let found = Exchange::form(request, |form: RecordForm, _| {
        let payload = form.payload_b64.map(|payload| payload.0);
        let tags = Tags::new(form.tags).map_err(|refusal| Unreadable::new("tags", refusal))?;
        Ok(Context {
            payload: payload.ok_or_else(|| Unreadable::new("payload_b64", "it is absent"))?,
            content_type: form.content_type,
            kind: form.kind,
            tags,
        })
    });
    Ok(found.or_none(Code::ExecutionNotFound))
}

pub(crate) fn attempts(link: &Link, question: &ListAttempts) -> Asked<Attempts> {
    let ListAttempts { execution_id: id, after, limit } = *question;
    let list = Numbered::new("attempts", &link.namespace_of(id.uuid()), id);
    let page = list.page::<AttemptForm, _, u32>(get(link, id, "attempts")?, after, limit)?;
    Ok(page.map(|(items, next)| Attempts { items, next }))
}

/// Whether retention has removed something is told by the numbers, which have no holes.
pub(super) fn stretch(after_seq: u64, items: Vec<Envelope>, next: Option<u64>) -> Events {
    let gap = items.first().is_some_and(|first| first.event.seq > after_seq + 1);
    Events { items, next, gap }
}

pub(crate) fn events(link: &Link, question: &ListEvents) -> Asked<Events> {
    let ListEvents { execution_id: id, after_seq, limit } = *question;
    let list = Numbered::new("events", &link.namespace_of(id.uuid()), id);
    let request = get(link, id, "events")?;
    let page = list.page::<EventForm, _, u64>(request, Some(after_seq), limit)?;
    Ok(page.map(move |(items, next)| stretch(after_seq, items, next)))
}

pub(crate) fn search(link: &Link, question: Search) -> Asked<Page<Record>> {
    let namespace = question.filter.namespace.clone().or_else(|| link.known.own().cloned());
    let request = Request::post(path(&["executions", "search"])?, &SearchForm::from(question));
    let request = request.namespace(namespace.as_ref()).asking();
    Ok(Exchange::form(request, |form: PageForm<RecordForm>, link| {
        let found: Vec<Record> = items(form.items)?;
        found.iter().for_each(|it| link.known.note(it.execution_id.uuid(), &it.namespace));
        Ok(Page { items: found, next_cursor: form.next_cursor })
    }))
}
