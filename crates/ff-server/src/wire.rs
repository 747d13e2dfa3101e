//! What the HTTP library says by itself, put into our words.
//!
//! A request that does not parse never reaches a handler: the library answers it with a status and
//! nothing else. [`Spoken`] stands between the library and the socket and completes such an answer
//! to a problem document, as all others are.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ff_api::object::Invalid;
use ff_api::problem::Problem;
use ff_core::error::Code;
use hyper::rt::{Read, ReadBufCursor, Write};

use crate::{failure, trace};

/// A stream on which every failure is a problem document.
pub(crate) struct Spoken<S> {
    stream: S,
    /// Of an answer in our words, what has not gone out yet.
    rest: Vec<u8>,
}

impl<S> Spoken<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, rest: Vec::new() }
    }
}

/// A whole answer, after which the connection ends. No request was read, so its name is a new one.
pub(crate) fn answer(problem: &Problem) -> Vec<u8> {
    let named = Problem { trace_id: Some(trace::new_id()), ..problem.clone() };
    let body = failure::body(&named);
    let status = hyper::StatusCode::from_u16(problem.status).unwrap_or_default();
    let retry = problem.retry_after_ms.map(|ms| format!("retry-after: {}\r\n", ms.div_ceil(1000)));
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\n\
         connection: close\r\n{}\r\n",
        body.len(),
        retry.unwrap_or_default(),
    );
    [head.into_bytes(), body].concat()
}

/// The problem that a bare answer stands for; none if it is no such answer. Our own failures always
/// have a body, so a failure without one is the library's.
fn bare(bytes: &[u8]) -> Option<Problem> {
    let head = bytes.strip_prefix(b"HTTP/1.1 4").or_else(|| bytes.strip_prefix(b"HTTP/1.0 4"))?;
    let text = std::str::from_utf8(head).ok()?;
    let is_bare = text.contains("\r\ncontent-length: 0\r\n") && text.ends_with("\r\n\r\n");
    match text.get(..2).filter(|_| is_bare)? {
        "31" | "14" => {
            let detail = "the line and the headers of a request have at most 16 KiB";
            Some(Problem::new(Code::HeadersTooLarge, detail))
        }
        _ => Some(Invalid::document("the request is no HTTP that is understood").into()),
    }
}

impl<S: Write + Unpin> Spoken<S> {
    /// Sends what is left of an answer in our words.
    fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.rest.is_empty() {
            let sent = ready!(Pin::new(&mut self.stream).poll_write(context, &self.rest))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.rest.drain(..sent);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: Write + Unpin> Write for Spoken<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_rest(context))?;
        if let Some(problem) = bare(bytes) {
            self.rest = answer(&problem);
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_rest(context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_rest(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [only] = slices {
            return self.poll_write(context, only);
        }
        ready!(self.poll_rest(context))?;
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
}

impl<S: Read + Unpin> Read for Spoken<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_failures_are_told_from_answers() {
        let bare_431 = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\
            content-length: 0\r\ndate: x\r\n\r\n";
        assert_eq!(bare(bare_431).map(|problem| problem.code), Some(Code::HeadersTooLarge));
        let bare_400 = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(bare(bare_400).map(|problem| problem.status), Some(400));
        for other in [
            &b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"[..],
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 7\r\n\r\n{\"a\":1}",
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK",
        ] {
            assert!(bare(other).is_none());
        }
    }
}
