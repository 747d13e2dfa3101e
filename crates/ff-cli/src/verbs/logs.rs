//! `ff logs`: what attempts put out.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Args;
use ff_api::bytes::Base64;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::{Follow, Request, at};
use crate::session::Session;
use crate::show::plain;

/// Most frames of one page.
const PAGE: u32 = 1000;

/// Print the output of an execution
///
/// Frames of type stdout and stderr are written as they are, to standard output and standard error;
/// others on a line of their own with their type. With --follow it ends when the execution does.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ff logs '{fp:7}:0199…'\n  \
    ff logs '{fp:7}:0199…' --follow\n  \
    ff logs '{fp:7}:0199…' --attempt 0 --json | jq -r .type")]
pub(crate) struct Logs {
    /// Execution
    id: String,
    /// Only of this attempt; all of them, one after the other, when absent
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// Go on with what comes, to the end
    #[arg(long, short)]
    follow: bool,
}

/// A page of frames, each as it was sent.
#[derive(Deserialize)]
struct Page {
    frames: Vec<Box<RawValue>>,
    trimmed_before: Option<String>,
}

/// Prints frames, and remembers whether there was any and whether a line is open.
struct Printer<'a> {
    session: &'a Session,
    has_printed: bool,
    line_is_open: bool,
}

impl Logs {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<ExitCode> {
        let mut printer = Printer { session, has_printed: false, line_is_open: false };
        if self.follow {
            self.follow(&mut printer).await?;
        } else {
            let attempts = match self.attempt {
                Some(attempt) => attempt..attempt.saturating_add(1),
                None => 0..self.attempts(session).await?,
            };
            for attempt in attempts {
                self.print(attempt, &mut printer).await?;
            }
        }
        printer.end()?;
        if !printer.has_printed && !session.console.json {
            session.console.note("no output");
        }
        Ok(ExitCode::SUCCESS)
    }

    /// How many attempts there are.
    async fn attempts(&self, session: &Session) -> anyhow::Result<u32> {
        let record = session.client.ask(Request::get(at(&["executions", &self.id])?)).await?;
        let count = record["total_attempt_count"].as_u64().unwrap_or(0);
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    async fn follow(&self, printer: &mut Printer<'_>) -> anyhow::Result<()> {
        let index = self.attempt.map(|attempt| attempt.to_string());
        let path = match &index {
            Some(index) => at(&["executions", &self.id, "attempts", index, "stream"])?,
            None => at(&["executions", &self.id, "stream"])?,
        };
        let mut follow = Follow::begin(&printer.session.client, Request::get(path)).await?;
        loop {
            let event = follow.next().await?;
            match event.event.as_str() {
                "end" => return Ok(()),
                "gap" => printer.gap(),
                _ => printer.print(&event.data)?,
            }
        }
    }

    /// Prints what an attempt has put out so far.
    async fn print(&self, attempt: u32, printer: &mut Printer<'_>) -> anyhow::Result<()> {
        let index = attempt.to_string();
        let path = at(&["executions", &self.id, "attempts", &index, "stream", "tail"])?;
        let mut after = "0-0".to_owned();
        loop {
            let request = Request::get(path.clone()).query("limit", &PAGE).query("after", &after);
            let answer = printer.session.client.send(request).await?;
            let page: Page = serde_json::from_slice(&answer.body)?;
            if page.trimmed_before.is_some() {
                printer.gap();
            }
            let Some(last) = page.frames.last() else { return Ok(()) };
            let last: Value = serde_json::from_str(last.get())?;
            for frame in &page.frames {
                printer.print(frame.get())?;
            }
            last["id"].as_str().unwrap_or_default().clone_into(&mut after);
        }
    }
}

impl Printer<'_> {
    fn gap(&self) {
        self.session.console.note("here frames are missing: they were past their retention");
    }

    fn print(&mut self, frame: &str) -> anyhow::Result<()> {
        self.has_printed = true;
        let console = &self.session.console;
        if console.json {
            console.pass(frame.as_bytes())?;
            return Ok(());
        }
        let frame: Value = serde_json::from_str(frame)?;
        let Base64(bytes) = serde_json::from_value(frame["payload_b64"].clone())?;
        match frame["type"].as_str().unwrap_or_default() {
            "stdout" => {
                console.raw(&bytes)?;
                self.line_is_open = !bytes.is_empty() && !bytes.ends_with(b"\n");
            }
            // Nobody reads what goes wrong: that is no failure of this command.
            "stderr" => drop(io::stderr().lock().write_all(&bytes)),
            kind => {
                self.end()?;
                let text = String::from_utf8_lossy(&bytes);
                console.say(format_args!("[{}] {}", plain(kind), plain(text.trim_end())))?;
            }
        }
        Ok(())
    }

    /// Ends a line that is open, so that what follows has its own.
    fn end(&mut self) -> anyhow::Result<()> {
        if std::mem::take(&mut self.line_is_open) {
            self.session.console.raw(b"\n")?;
        }
        Ok(())
    }
}
