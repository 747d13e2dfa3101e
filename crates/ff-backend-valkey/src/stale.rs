//! Compares entries of queues, timers and lists with the records that they name. An entry that its
//! record does not say goes: it would be met again and again, and hold up those behind it.
//!
//! An index may be long, and has no order in which a check could go on: some of its entries are drawn,
//! so that none stays unseen for ever.

use ff_core::error::EngineError;
use ff_core::id::{Home, Subject};
use ff_core::read::Audited;
use ff_core::state::{Document, Due, Listing};

use crate::audit::Places;
use crate::keys::queue_name;
use crate::keyspace::parse_key;
use crate::listing::{parse_member, parse_name};
use crate::reconcile::{Visit, member_score};
use crate::record::Entry;
use crate::{read, reply, subject};

/// Entries that are drawn of an index at least, however many indexes there are.
const DRAWN_LEAST: u32 = 10;

/// An index of a home, by what its entries mean.
enum Index<'a> {
    Timers,
    Leases,
    /// A queue, by its name.
    Queue(&'a str),
    /// A list: code and namespace.
    List(u8, &'a str),
}

impl<'a> Index<'a> {
    /// None: its entries are not of records, or only hints.
    fn of(name: &'a str) -> Option<Self> {
        match name {
            "timers" => Some(Self::Timers),
            "leases" => Some(Self::Leases),
            name => {
                let queue = name.strip_prefix("lane:").and_then(|q| q.strip_suffix(":eligible"));
                let list = || parse_name(name).map(|(code, namespace)| Self::List(code, namespace));
                queue.map(Self::Queue).or_else(list)
            }
        }
    }
}

/// An entry as it was drawn.
struct Drawn<'a> {
    home: &'a Home,
    name: &'a str,
    index: &'a Index<'a>,
    member: Vec<u8>,
    score: i64,
}

/// The record that an entry names, as it was read.
enum Named {
    Execution(Box<Entry>),
    Document(Box<Document>),
    Nothing,
}

pub(crate) async fn reconcile(visit: &mut Visit<'_>) -> Result<(), EngineError> {
    let family = format!("{}:idx:", visit.shared.keys.prefix);
    let keys = visit.keys(&format!("{family}{{*")).await?;
    let indexes: Vec<_> = keys.iter().filter_map(|key| parse_key(key, &family)).collect();
    let share = visit.page.limit / u32::try_from(indexes.len().max(1)).unwrap_or(u32::MAX);
    for (home, name) in &indexes {
        let Some(index) = Index::of(name) else { continue };
        let mut draw = redis::cmd("ZRANDMEMBER");
        draw.arg(visit.shared.keys.index_of(home, name)).arg(share.max(DRAWN_LEAST));
        draw.arg("WITHSCORES");
        let mut items = reply::pairs(visit.shared.send_home(home, &draw).await?)?.into_iter();
        while let Some(member) = items.next() {
            let score = reply::number(&reply::next(&mut items)?)?;
            let member = reply::some_bytes(member)?.to_vec();
            look(visit, &Drawn { home, name, index: &index, member, score }).await?;
        }
    }
    Ok(())
}

async fn look(visit: &mut Visit<'_>, drawn: &Drawn<'_>) -> Result<(), EngineError> {
    visit.done.found.checked += 1;
    let (subject, places) = drawn.named();
    let Some(subject) = subject else { return discard(visit, drawn).await };
    let record = read_record(visit, &subject).await?;
    if !record.is_admitted(visit) || drawn.is_said_by(&record) {
        return Ok(());
    }
    // The entry is still there, and the record still says otherwise.
    let (home, member) = (drawn.home, drawn.member.clone());
    let now = member_score(visit.shared, home, drawn.name, member).await?;
    if now != Some(drawn.score) || !is_unchanged(visit, &subject, &record).await? {
        return Ok(());
    }
    let (invariant, detail) = match record {
        Named::Nothing => ("I10", "names what is not there"),
        _ => ("I9", "is not what the record says"),
    };
    let mut found = Audited::default();
    found.report(invariant, Some(&subject), format!("its entry in {} {detail}", drawn.name));
    visit.mend(&subject, &places, found).await
}

/// Takes out what is the name of nothing.
async fn discard(visit: &mut Visit<'_>, drawn: &Drawn<'_>) -> Result<(), EngineError> {
    let detail = format!("{} of {} holds {:?}", drawn.name, drawn.home, drawn.member);
    visit.done.found.report("I10", None::<String>, detail);
    let mut remove = redis::cmd("ZREM");
    remove.arg(visit.shared.keys.index_of(drawn.home, drawn.name)).arg(&drawn.member);
    visit.shared.send_home(drawn.home, &remove).await?;
    visit.done.mended += 1;
    Ok(())
}

impl Drawn<'_> {
    /// What it names, and where that is to be taken out.
    fn named(&self) -> (Option<Subject>, Places) {
        let mut places = Places::default();
        let subject = match self.index {
            Index::List(..) => parse_member(self.home, &self.member).map(|(name, subject)| {
                places.lists.push((self.name.to_owned(), name));
                subject
            }),
            Index::Queue(queue) => {
                places.queues.push((*queue).to_owned());
                subject::parse(self.home, &self.member)
            }
            Index::Timers | Index::Leases => subject::parse(self.home, &self.member),
        };
        (subject, places)
    }

    fn is_said_by(&self, record: &Named) -> bool {
        let at = |due: Option<Due>| due.map(|due| due.at.0) == Some(self.score);
        match (self.index, record) {
            (_, Named::Nothing) => false,
            (Index::Timers, Named::Execution(entry)) => at(entry.execution.other_due()),
            (Index::Leases, Named::Execution(entry)) => at(entry.execution.lease_due()),
            (Index::Queue(queue), Named::Execution(entry)) => {
                let place = entry.execution.queue_place();
                place.is_some_and(|p| queue_name(&p) == *queue && p.score == self.score)
            }
            (Index::List(..), Named::Execution(entry)) => self.is_among(entry.execution.listings()),
            (Index::Timers, Named::Document(document)) => at(document.due()),
            (Index::List(..), Named::Document(document)) => self.is_among(document.listings()),
            (Index::Leases | Index::Queue(_), Named::Document(_)) => false,
        }
    }

    fn is_among<'b>(&self, mut listings: impl Iterator<Item = Listing<'b>>) -> bool {
        let Index::List(code, namespace) = self.index else { return false };
        let name = parse_member(self.home, &self.member).map(|(name, _)| name);
        listings.any(|entry| {
            (entry.list.code(), entry.namespace.as_str(), entry.at.0, Some(entry.name))
                == (*code, *namespace, self.score, name)
        })
    }
}

impl Named {
    fn is_admitted(&self, visit: &Visit<'_>) -> bool {
        let filter = &visit.page.filter;
        match self {
            Self::Execution(entry) => filter.admits_execution(&entry.execution),
            Self::Document(document) => filter.admits_document(document),
            // Whose it was cannot be checked.
            Self::Nothing => filter.is_empty(),
        }
    }
}

async fn read_record(visit: &Visit<'_>, subject: &Subject) -> Result<Named, EngineError> {
    match subject {
        Subject::Execution(id) => {
            let mut found = read::executions(visit.shared, id.partition(), &[*id]).await?.1;
            Ok(found.pop().flatten().map_or(Named::Nothing, |it| Named::Execution(Box::new(it))))
        }
        Subject::Document(id) => {
            let ids = std::slice::from_ref(id);
            let found = read::documents(visit.shared, &id.home, ids).await?.1.pop().flatten();
            Ok(found.map_or(Named::Nothing, |(document, _)| Named::Document(Box::new(document))))
        }
    }
}

async fn is_unchanged(
    visit: &Visit<'_>,
    subject: &Subject,
    before: &Named,
) -> Result<bool, EngineError> {
    Ok(match (before, read_record(visit, subject).await?) {
        (Named::Execution(before), Named::Execution(now)) => *before == now,
        (Named::Document(before), Named::Document(now)) => *before == now,
        (Named::Nothing, Named::Nothing) => true,
        _ => false,
    })
}
