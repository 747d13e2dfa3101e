//! Lists, walked page by page. A server looks a bounded way ahead for each page, so a page may be short,
//! or empty, while there is more.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::{Answer, Request};
use crate::progress;
use crate::session::Session;
use crate::show::{Column, plain, table};

/// Rows that are shown when nobody says how many.
const USUAL: u32 = 50;
/// The longest page that a server gives.
pub(crate) const LONGEST: u32 = 500;
/// How long to look before somebody is told how far that went.
const LOOK: Duration = Duration::from_secs(30);

/// Which part of a list.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Page {
    /// At most so many, up to 500; 50 when absent, and all of them with --quiet
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Where the page before ended
    #[arg(long)]
    cursor: Option<String>,
}

/// A list, and how a person is shown it.
pub(crate) struct List {
    pub(crate) page: Page,
    pub(crate) columns: &'static [Column],
    /// What to say when there is nothing in it.
    pub(crate) none: &'static str,
}

/// How far to walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// None: all rows.
    rows: Option<u32>,
    until: Option<Instant>,
}

impl Bounds {
    /// So many rows, or as many as are found in a time that a person waits.
    pub(crate) fn of(rows: u32) -> Self {
        Self { rows: Some(rows), until: Some(Instant::now() + LOOK) }
    }

    fn are_over(self, rows: u32) -> bool {
        let late = self.until.is_some_and(|until| Instant::now() >= until);
        late || self.rows.is_some_and(|most| rows >= most)
    }
}

/// How far a walk went.
pub(crate) struct Walked {
    first: Answer,
    pages: u32,
    pub(crate) rows: u32,
    /// Where to go on; none at the end of the list.
    pub(crate) next: Option<String>,
}

/// A page, each row as it was sent.
#[derive(Deserialize)]
struct Rows {
    items: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

/// Walks along a list and hands on every row as soon as it is there.
pub(crate) async fn walk(
    session: &Session,
    request: &Request,
    from: Option<String>,
    bounds: Bounds,
    mut each: impl FnMut(&RawValue) -> anyhow::Result<()>,
) -> anyhow::Result<Walked> {
    let ask = async |cursor: &Option<String>, limit: u32| {
        let request = request.clone().query("limit", &limit).each("cursor", cursor);
        session.client.send(request).await
    };
    let looking = session.console.is_live().then(|| progress::spinner("looking"));
    let most = bounds.rows.unwrap_or(LONGEST);
    let mut walked = Walked { first: ask(&from, most).await?, pages: 1, rows: 0, next: None };
    let mut page: Rows = serde_json::from_slice(&walked.first.body)?;
    loop {
        for row in &page.items {
            each(row)?;
        }
        walked.rows += u32::try_from(page.items.len()).unwrap_or(u32::MAX);
        walked.next = page.next_cursor;
        if walked.next.is_none() || bounds.are_over(walked.rows) {
            break;
        }
        let limit = bounds.rows.map_or(LONGEST, |most| most - walked.rows);
        page = serde_json::from_slice(&ask(&walked.next, limit).await?.body)?;
        walked.pages += 1;
    }
    if let Some(looking) = looking {
        looking.finish_and_clear();
    }
    Ok(walked)
}

impl Session {
    /// Prints a list.
    pub(super) async fn list(&self, request: &Request, list: &List) -> anyhow::Result<ExitCode> {
        let Page { limit, cursor } = list.page.clone();
        if self.console.json {
            self.list_document(request, cursor, Bounds::of(limit.unwrap_or(USUAL))).await?;
        } else if self.console.quiet {
            // Nobody would be told that rows are missing, so none are.
            let bounds = Bounds { rows: limit, until: None };
            let say = |row: &RawValue| {
                let row: Value = serde_json::from_str(row.get())?;
                Ok(self.console.say(list.columns[0].cell(&row))?)
            };
            walk(self, request, cursor, bounds, say).await?;
        } else {
            self.list_table(request, list).await?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The reply as it came; of several pages one document.
    async fn list_document(
        &self,
        request: &Request,
        from: Option<String>,
        bounds: Bounds,
    ) -> anyhow::Result<()> {
        let mut rows: Vec<String> = Vec::new();
        let keep = |row: &RawValue| {
            rows.push(row.get().to_owned());
            Ok(())
        };
        let walked = walk(self, request, from, bounds, keep).await?;
        if walked.pages == 1 {
            self.console.pass(&walked.first.body)?;
            return Ok(());
        }
        let (items, next) = (rows.join(","), serde_json::to_string(&walked.next)?);
        self.console.say(format_args!("{{\"items\":[{items}],\"next_cursor\":{next}}}"))?;
        Ok(())
    }

    async fn list_table(&self, request: &Request, list: &List) -> anyhow::Result<()> {
        let Page { limit, cursor } = list.page.clone();
        let limit = limit.unwrap_or(USUAL);
        let mut rows: Vec<Value> = Vec::new();
        let keep = |row: &RawValue| {
            rows.push(serde_json::from_str(row.get())?);
            Ok(())
        };
        let walked = walk(self, request, cursor, Bounds::of(limit), keep).await?;
        if !rows.is_empty() {
            self.rows(&rows, list.columns)?;
        }
        let Some(cursor) = walked.next else {
            if rows.is_empty() {
                self.console.note(list.none);
            }
            return Ok(());
        };
        let more = match walked.rows < limit {
            true => None,
            false => self.is_more_behind(request, &cursor).await?,
        };
        let (seconds, cursor) = (LOOK.as_secs(), plain(&cursor));
        match more {
            Some(true) => self.console.note(format_args!("there is more: add --cursor {cursor}")),
            Some(false) => {}
            None => self.console.note(format_args!(
                "not all was looked at in {seconds} s; to look further, add --cursor {cursor}"
            )),
        }
        Ok(())
    }

    /// Whether a row stands behind a cursor; none: that was not found out in time.
    async fn is_more_behind(&self, request: &Request, at: &str) -> anyhow::Result<Option<bool>> {
        let walked = walk(self, request, Some(at.to_owned()), Bounds::of(1), |_| Ok(())).await?;
        Ok(match walked.rows {
            0 => walked.next.is_none().then_some(false),
            _ => Some(true),
        })
    }

    /// A table; of quiet commands its first column, which is the id.
    pub(super) fn rows(&self, rows: &[Value], columns: &[Column]) -> anyhow::Result<()> {
        if self.console.quiet {
            for row in rows {
                self.console.say(columns[0].cell(row))?;
            }
            return Ok(());
        }
        for line in table(columns, rows, self.console.colour) {
            self.console.say(line)?;
        }
        Ok(())
    }
}
