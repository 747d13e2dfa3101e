//! One request, and how a person is shown its reply.

use std::process::ExitCode;

use serde_json::Value;

use super::list::{List, Page};
use crate::client::Request;
use crate::session::Session;
use crate::show::{Column, fields, plain, shown};

/// A verb that is one request.
pub(crate) struct Act {
    pub(crate) request: Request,
    pub(crate) show: Show,
}

/// How a reply is shown.
pub(crate) enum Show {
    /// A list, page by page.
    Table(List),
    /// A list that is a field of the reply.
    Rows(&'static str, &'static [Column]),
    /// A line for every field.
    Fields,
    /// Something new: the same, or with --quiet its id, which is in this field.
    New(&'static str),
    /// One line.
    Line(fn(&Value) -> String),
    /// One field alone, to be handed on to another command.
    Only(&'static str),
    /// A line that needs no reply.
    Said(String),
}

impl Act {
    pub(crate) fn new(request: Request, show: Show) -> Self {
        Self { request, show }
    }

    pub(crate) fn table(
        request: Request,
        page: &Page,
        columns: &'static [Column],
        none: &'static str,
    ) -> Self {
        Self::new(request, Show::Table(List { page: page.clone(), columns, none }))
    }

    pub(crate) fn fields(request: Request) -> Self {
        Self::new(request, Show::Fields)
    }

    pub(crate) fn new_thing(request: Request, id: &'static str) -> Self {
        Self::new(request, Show::New(id))
    }

    pub(crate) fn line(request: Request, line: fn(&Value) -> String) -> Self {
        Self::new(request, Show::Line(line))
    }

    pub(crate) fn said(request: Request, line: impl Into<String>) -> Self {
        Self::new(request, Show::Said(line.into()))
    }
}

impl Session {
    /// Does it and shows the reply.
    pub(crate) async fn perform(&self, act: Act) -> anyhow::Result<ExitCode> {
        if let Show::Table(list) = &act.show {
            return self.list(&act.request, list).await;
        }
        let answer = self.client.send(act.request).await?;
        if self.console.json {
            self.console.pass(&answer.body)?;
        } else {
            self.show(&answer.json()?, &act.show)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn show(&self, reply: &Value, show: &Show) -> anyhow::Result<()> {
        let console = &self.console;
        match show {
            Show::Rows(field, columns) => {
                let rows = reply[*field].as_array().map_or(&[][..], Vec::as_slice);
                self.rows(rows, columns)?;
            }
            Show::New(id) if console.quiet => console.say(shown(&reply[*id]))?,
            Show::Fields | Show::New(_) => {
                for line in fields(reply, console.colour) {
                    console.say(line)?;
                }
            }
            Show::Only(field) => console.say(plain(reply[*field].as_str().unwrap_or_default()))?,
            Show::Table(_) => {}
            Show::Line(_) | Show::Said(_) if console.quiet => {}
            Show::Line(line) => console.say(line(reply))?,
            Show::Said(line) => console.say(line)?,
        }
        Ok(())
    }
}
