//! Many commands at once, in few requests.

use std::collections::HashMap;
use std::time::Duration;

use ff_api::json::Json;
use ff_api::lease::{RenewMany, RenewedMany, Tasks};
use ff_api::submit::{Batch, BatchReply, Submit as SubmitForm};
use ff_core::error::EngineError;
use ff_core::id::{DocumentId, ExecutionId, Namespace};
use ff_core::limits;
use ff_core::operation::{Claim, Claimed, Command, Renew, Reply, Submit};
use futures_util::StreamExt as _;
use futures_util::stream;

use crate::command::exchange;
use crate::exchange::Exchange;
use crate::http::Request;
use crate::link::{Link, path};
use crate::no_route::refused;

/// Requests of one batch that are under way at once.
const AT_ONCE: usize = 32;
/// Payloads of one batch of submits, before they are put into base64: well below what a server takes.
const BATCH_BYTES: usize = 8 << 20;

type Replied = Result<Reply, EngineError>;

/// What a command acts on: those on one thing keep their order.
#[derive(PartialEq, Eq, Hash)]
enum Target {
    Execution(ExecutionId),
    Document(DocumentId),
    /// Nothing that is known by a name.
    Other(usize),
}

/// Commands that are sent as one, or one after the other, with their places.
enum Work {
    Submits(Namespace, Vec<(usize, Submit)>),
    Renewals(Option<Namespace>, Vec<(usize, Renew)>),
    InTurn(Vec<(usize, Command)>),
}

impl Link {
    /// Carries out commands and answers each, in the same order.
    pub(crate) async fn apply(&self, mut commands: Vec<Command>) -> Vec<Replied> {
        if commands.len() == 1 {
            let replies = commands.pop().map(|command| self.carry_out(command));
            return match replies {
                Some(reply) => vec![reply.await],
                None => Vec::new(),
            };
        }
        let count = commands.len();
        let work = stream::iter(self.plan(commands)).map(|work| self.work(work));
        let done: Vec<_> = work.buffer_unordered(AT_ONCE).collect().await;
        let mut replies: Vec<Option<Replied>> = (0..count).map(|_| None).collect();
        for (place, reply) in done.into_iter().flatten() {
            if let Some(slot) = replies.get_mut(place) {
                *slot = Some(reply);
            }
        }
        let absent = || Err(EngineError::bug("no reply to a command"));
        replies.into_iter().map(|reply| reply.unwrap_or_else(absent)).collect()
    }

    async fn carry_out(&self, command: Command) -> Replied {
        command.check()?;
        self.send(exchange(self, command)?).await
    }

    fn target(&self, place: usize, command: &Command) -> Target {
        let document = || command.document_id(&self.settings.partitions);
        match command.execution_id() {
            Some(id) => Target::Execution(id),
            None => document().map_or(Target::Other(place), Target::Document),
        }
    }

    /// Submits and renewals that are alone on their execution go together, as many as a route takes.
    fn plan(&self, commands: Vec<Command>) -> Vec<Work> {
        let mut order: Vec<Target> = Vec::new();
        let mut by_target: HashMap<Target, Vec<(usize, Command)>> = HashMap::new();
        for (place, command) in commands.into_iter().enumerate() {
            let target = self.target(place, &command);
            match by_target.get_mut(&target) {
                Some(queued) => queued.push((place, command)),
                None => {
                    order.push(self.target(place, &command));
                    by_target.insert(target, vec![(place, command)]);
                }
            }
        }
        let mut work = Vec::new();
        for target in order {
            let mut queued = by_target.remove(&target).unwrap_or_default();
            match (queued.len(), queued.pop()) {
                (1, Some((place, Command::Submit(submit)))) => add_submit(&mut work, place, submit),
                (1, Some((place, Command::Renew(renew)))) => {
                    let namespace = self.known.of(renew.execution_id.uuid());
                    add_renewal(&mut work, namespace, place, renew);
                }
                (_, last) => {
                    queued.extend(last);
                    work.push(Work::InTurn(queued));
                }
            }
        }
        work
    }

    async fn work(&self, work: Work) -> Vec<(usize, Replied)> {
        match work {
            Work::Submits(namespace, items) => self.submit_all(&namespace, items).await,
            Work::Renewals(namespace, items) => self.renew_all(namespace.as_ref(), items).await,
            Work::InTurn(items) => {
                let mut replies = Vec::with_capacity(items.len());
                for (place, command) in items {
                    replies.push((place, self.carry_out(command).await));
                }
                replies
            }
        }
    }

    async fn submit_all(
        &self,
        namespace: &Namespace,
        items: Vec<(usize, Submit)>,
    ) -> Vec<(usize, Replied)> {
        let (mut places, mut forms, mut replies) = (Vec::new(), Vec::new(), Vec::new());
        for (place, submit) in items {
            let checked = Command::Submit(submit);
            match (checked.check(), checked) {
                (Ok(()), Command::Submit(submit)) => {
                    forms.extend(Json::from_value(&SubmitForm::from(submit)));
                    places.push(place);
                }
                (Err(refusal), _) => replies.push((place, Err(refusal.into()))),
                (Ok(()), _) => {}
            }
        }
        if places.is_empty() {
            return replies;
        }
        let told = match path(&["executions", "batch"]) {
            Ok(path) => {
                let request = Request::post(path, &Batch { items: forms });
                let request = request.namespace(Some(namespace));
                self.send(Exchange::form(request, |form: BatchReply, _| Ok(form.items))).await
            }
            Err(error) => Err(error),
        };
        replies.extend(spread(places, told, |item| {
            let submitted = item.outcome()?;
            self.known.note(submitted.execution_id().uuid(), namespace);
            Ok(Reply::Submit(submitted))
        }));
        replies
    }

    async fn renew_all(
        &self,
        namespace: Option<&Namespace>,
        items: Vec<(usize, Renew)>,
    ) -> Vec<(usize, Replied)> {
        let (places, items): (Vec<_>, Vec<_>) =
            items.into_iter().map(|(place, renew)| (place, renew.into())).unzip();
        let told = match path(&["leases", "renew"]) {
            Ok(path) => {
                let request = Request::post(path, &RenewMany { items }).namespace(namespace);
                self.send(Exchange::form(request, |form: RenewedMany, _| Ok(form.items))).await
            }
            Err(error) => Err(error),
        };
        spread(places, told, |item| item.outcome().map(Reply::Renew))
    }

    /// Tasks for a worker. The server has asked all limits, so nobody applies any more.
    pub(crate) async fn take(&self, claim: Claim, wait: Duration) -> Result<Claimed, EngineError> {
        if claim.sets_aside {
            let why = "the server sets executions aside by itself, with the claim";
            return Err(refused(Claim::NAME, why));
        }
        claim.check_wait(wait)?;
        let (namespace, ms) = (claim.namespace.clone(), wait.as_millis());
        let form = ff_api::lease::Claim::from(claim);
        let request = Request::post(path(&["leases"])?, &form).namespace(Some(&namespace));
        let request = request.wait_ms(u64::try_from(ms).unwrap_or(u64::MAX));
        let tasks = self.send(Exchange::form(request, |form: Tasks, link| form.read(link.store())));
        let tasks = tasks.await?;
        tasks.iter().for_each(|task| self.note_task(task));
        Ok(Claimed { tasks, applicants: Vec::new() })
    }
}

/// Gives each command its item of an answer to all, or all of them the same failure.
fn spread<I>(
    places: Vec<usize>,
    told: Result<Vec<I>, EngineError>,
    outcome: impl Fn(I) -> Replied,
) -> Vec<(usize, Replied)> {
    match told {
        Ok(items) => places.into_iter().zip(items.into_iter().map(outcome)).collect(),
        Err(error) => places.into_iter().map(|place| (place, Err(error.clone()))).collect(),
    }
}

fn add_submit(work: &mut Vec<Work>, place: usize, submit: Submit) {
    let fits = work.iter_mut().rev().find_map(|work| match work {
        Work::Submits(namespace, items) if *namespace == submit.namespace => {
            let bytes: usize = items.iter().map(|(_, submit)| submit.payload.bytes.len()).sum();
            let bytes = bytes + submit.payload.bytes.len();
            (items.len() < limits::BATCH_ITEMS && bytes <= BATCH_BYTES).then_some(items)
        }
        _ => None,
    });
    match fits {
        Some(items) => items.push((place, submit)),
        None => work.push(Work::Submits(submit.namespace.clone(), vec![(place, submit)])),
    }
}

fn add_renewal(work: &mut Vec<Work>, of: Option<Namespace>, place: usize, renew: Renew) {
    let fits = work.iter_mut().find_map(|work| match work {
        Work::Renewals(namespace, items)
            if *namespace == of && items.len() < limits::BATCH_ITEMS =>
        {
            Some(items)
        }
        _ => None,
    });
    match fits {
        Some(items) => items.push((place, renew)),
        None => work.push(Work::Renewals(of, vec![(place, renew)])),
    }
}
