//! Lets commands gather before they are written.
//!
//! The connection's task writes as soon as it has a command, and many callers wake it one by one:
//! each command would be a system call here and another on the server. A write that steps back once
//! behind the tasks that are ready to run carries what they send too. Under load this doubles what
//! one connection carries; a caller alone does not pay for it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub(super) struct Gather<S> {
    stream: S,
    /// How many calls are under way on this connection.
    calls: Arc<AtomicUsize>,
    has_stepped_back: bool,
}

impl<S> Gather<S> {
    pub(super) fn new(stream: S, calls: Arc<AtomicUsize>) -> Self {
        Self { stream, calls, has_stepped_back: false }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gather<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !self.has_stepped_back && self.calls.load(Ordering::Relaxed) > 1 {
            self.has_stepped_back = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if written.is_ready() {
            self.has_stepped_back = false;
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gather<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Takes everything.
    struct Sink;

    impl AsyncWrite for Sink {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn only_a_crowd_steps_back_and_only_once() {
        for (calls, tries) in [(0, [true, true]), (1, [true, true]), (2, [false, true])] {
            let mut gather = Gather::new(Sink, Arc::new(AtomicUsize::new(calls)));
            let mut context = Context::from_waker(Waker::noop());
            for _ in 0..2 {
                let written = tries
                    .map(|_| Pin::new(&mut gather).poll_write(&mut context, b"PING").is_ready());
                assert_eq!(written, tries, "{calls} calls");
            }
        }
    }
}
