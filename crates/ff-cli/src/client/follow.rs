//! A stream that is followed: it goes on where it was when the connection is lost.

use std::time::Duration;

use ff_core::error::Code;
use ff_remote::http::sse::Parser;
use reqwest::Response;

use super::{Client, Refused, Request, SseEvent};

/// How long to rest before coming back, and how often to try in a row.
pub(crate) const REST: Duration = Duration::from_secs(1);
pub(crate) const TRIES: u32 = 15;

/// Events as they happen.
pub(crate) struct Follow<'a> {
    client: &'a Client,
    request: Request,
    response: Response,
    parser: Parser,
    last_id: Option<String>,
}

impl<'a> Follow<'a> {
    pub(crate) async fn begin(client: &'a Client, request: Request) -> anyhow::Result<Self> {
        let request = request.events();
        let response = client.begin(&request).await?;
        Ok(Self { client, request, response, parser: Parser::default(), last_id: None })
    }

    /// The next event. Streams that have an end say so with one; all others go on until the server
    /// is gone for good.
    pub(crate) async fn next(&mut self) -> anyhow::Result<SseEvent> {
        loop {
            if let Some(event) = self.parser.next_event() {
                if event.id.is_some() {
                    self.last_id.clone_from(&event.id);
                }
                return Ok(event);
            }
            match self.client.chunk(&mut self.response).await {
                Ok(Some(chunk)) => self.parser.push(&chunk)?,
                Ok(None) => {
                    let detail = "the server ended the stream";
                    self.come_back(Refused::new(Code::Unavailable, detail)).await?;
                }
                Err(lost) => self.come_back(lost).await?,
            }
        }
    }

    async fn come_back(&mut self, lost: Refused) -> anyhow::Result<()> {
        if self.client.is_here() {
            return Err(lost.into());
        }
        let mut request = self.request.clone();
        if let Some(id) = &self.last_id {
            request = request.header("last-event-id", id);
        }
        let mut last = lost.into();
        for _ in 0..TRIES {
            tokio::time::sleep(REST).await;
            match self.client.begin(&request).await {
                Ok(response) => {
                    (self.response, self.parser) = (response, Parser::default());
                    return Ok(());
                }
                Err(error) if may_pass(&error) => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }
}

fn may_pass(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(Refused::may_pass)
}
