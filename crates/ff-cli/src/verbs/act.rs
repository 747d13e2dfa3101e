//! One request, and how a person is shown its reply.

use std::process::ExitCode;

use serde_json::Value;

use crate::client::Request;
use crate::session::Session;
use crate::show::{Column, fields, plain, shown, table};

/// A verb that is one request.
pub(crate) struct Act {
    pub(crate) request: Request,
    pub(crate) show: Show,
}

/// How a reply is shown.
pub(crate) enum Show {
    /// A list: its columns, and what to say when there is nothing in it.
    Table(&'static [Column], &'static str),
    /// A list under a name of its own.
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

    pub(crate) fn table(request: Request, columns: &'static [Column], none: &'static str) -> Self {
        Self::new(request, Show::Table(columns, none))
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
        let answer = self.client.send(act.request).await?;
        if self.console.json {
            self.console.pass(&answer.body)?;
        } else {
            self.show(&answer.json()?, &act.show)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    pub(crate) fn show(&self, reply: &Value, show: &Show) -> anyhow::Result<()> {
        let console = &self.console;
        match show {
            Show::Table(columns, none) => self.list(reply, columns, none)?,
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
            Show::Line(_) | Show::Said(_) if console.quiet => {}
            Show::Line(line) => console.say(line(reply))?,
            Show::Said(line) => console.say(line)?,
        }
        Ok(())
    }

    fn list(&self, reply: &Value, columns: &[Column], none: &str) -> anyhow::Result<()> {
        let console = &self.console;
        let rows = reply["items"].as_array().map_or(&[][..], Vec::as_slice);
        let more = reply["next_cursor"].as_str();
        if rows.is_empty() && more.is_none() {
            console.note(none);
            return Ok(());
        }
        self.rows(rows, columns)?;
        if let Some(cursor) = more {
            console.note(format_args!("there is more: add --cursor {}", plain(cursor)));
        }
        Ok(())
    }

    /// A table; of quiet commands its first column, which is the id.
    fn rows(&self, rows: &[Value], columns: &[Column]) -> anyhow::Result<()> {
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
