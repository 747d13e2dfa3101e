//! A file of submits, in as few requests as the server takes.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;
use std::process::ExitCode;

use ff_core::error::Code;
use ff_core::limits;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::{Refused, Request, at};
use crate::failure::Usage;
use crate::progress;
use crate::session::Session;
use crate::show::shown;

/// Together less than the server takes in one body, and more than any submit has.
const CHUNK_BYTES: usize = 7 << 20;
const LINE_BYTES: u64 = 8 << 20;

/// What became of each, as it was sent.
#[derive(Deserialize)]
struct Replies {
    items: Vec<Box<RawValue>>,
}

/// Lines that are sent together, with the number of the first.
struct Chunk {
    first: usize,
    lines: Vec<usize>,
    body: Vec<u8>,
}

/// Submits every line of a file.
pub(super) async fn run(session: &Session, file: &Path) -> anyhow::Result<ExitCode> {
    let mut input: Box<dyn BufRead> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let opened = File::open(file).map_err(|error| Usage::unreadable(file, &error))?;
        Box::new(BufReader::new(opened))
    };
    let bar = session.console.is_live().then(|| progress::spinner("submitting"));
    let (mut number, mut replies, mut code) = (0, Vec::new(), None);
    while let Some(chunk) = next_chunk(&mut *input, &mut number)? {
        let path = at(&["executions", "batch"])?;
        let request = Request::post_text(path, chunk.body, "application/x-ndjson");
        let answer = session.client.send(request).await?;
        let Replies { items } = serde_json::from_slice(&answer.body)?;
        for (line, item) in chunk.lines.iter().zip(&items) {
            let failed = tell(session, chunk.first + line, item)?;
            code = code.or(failed);
        }
        if session.console.json {
            replies.extend(items);
        }
        if let Some(bar) = &bar {
            bar.set_message(format!("{number} lines"));
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    if number == 0 {
        return Err(Usage(format!("{} holds no line", file.display())).into());
    }
    if session.console.json {
        let items: Vec<&str> = replies.iter().map(|item| item.get()).collect();
        session.console.pass(format!("{{\"items\":[{}]}}", items.join(",")).as_bytes())?;
    }
    Ok(code.map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// The next lines, as many as go into one request. Empty ones are passed over.
fn next_chunk(input: &mut dyn BufRead, number: &mut usize) -> anyhow::Result<Option<Chunk>> {
    let mut chunk = Chunk { first: *number + 1, lines: Vec::new(), body: Vec::new() };
    while chunk.lines.len() < limits::BATCH_ITEMS && chunk.body.len() < CHUNK_BYTES {
        let begin = chunk.body.len();
        let read = (&mut *input).take(LINE_BYTES).read_until(b'\n', &mut chunk.body)?;
        if read == 0 {
            break;
        }
        *number += 1;
        if read as u64 == LINE_BYTES && !chunk.body.ends_with(b"\n") {
            let detail = format!("line {number} is over {LINE_BYTES} bytes");
            return Err(Refused::new(Code::PayloadTooLarge, detail).into());
        }
        if chunk.body[begin..].iter().all(u8::is_ascii_whitespace) {
            chunk.body.truncate(begin);
            continue;
        }
        chunk.lines.push(*number - chunk.first);
    }
    Ok(if chunk.lines.is_empty() { None } else { Some(chunk) })
}

/// Tells what became of a line: its exit code, if it was refused.
fn tell(session: &Session, line: usize, item: &RawValue) -> anyhow::Result<Option<u8>> {
    let reply: Value = serde_json::from_str(item.get())?;
    let Some(problem) = reply.get("problem") else {
        if !session.console.json {
            session.console.say(shown(&reply["execution_id"]))?;
        }
        return Ok(None);
    };
    let status = problem["status"].as_u64().and_then(|status| u16::try_from(status).ok());
    let refused = Refused::of(status.unwrap_or(500), problem.to_string().into());
    if !session.console.json {
        session.console.warn(format_args!("line {line}: {refused}"));
    }
    Ok(Some(refused.exit_code()))
}
