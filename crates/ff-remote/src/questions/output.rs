//! Output of attempts.

use ff_api::frame::{self, Stream, Summary};
use ff_core::error::EngineError;
use ff_core::id::ExecutionId;
use ff_core::read::{ReadStream, ReadSummary, StreamPage, SummaryRead};

use crate::exchange::Exchange;
use crate::http::Request;
use crate::link::{Link, path};
use crate::operations::Asked;

/// Frames of one answer at the most; a store gives more at once.
pub(crate) const FRAMES: u32 = 1_000;

fn get(link: &Link, id: ExecutionId, index: u32, part: &str) -> Result<Request, EngineError> {
    let path = path(&["executions", &id.to_string(), "attempts", &index.to_string(), part])?;
    Ok(Request::get(path).namespace(link.known.of(id.uuid()).as_ref()))
}

pub(crate) fn summary(link: &Link, question: &ReadSummary) -> Asked<SummaryRead> {
    let request = get(link, question.execution_id, question.attempt_index, "summary")?;
    Ok(Exchange::plain::<Summary>(request))
}

impl Link {
    /// A stretch of output, in as many pieces as it takes. One that is shorter than was asked for is
    /// as long as an answer may be, and so the stretch ends with it.
    pub(crate) async fn stream(&self, mut question: ReadStream) -> Result<StreamPage, EngineError> {
        let mut all: Option<StreamPage> = None;
        loop {
            let limit = question.limit.min(FRAMES);
            let piece = self.piece(&question, limit).await?;
            let count = u32::try_from(piece.frames.len()).unwrap_or(u32::MAX);
            question.limit = question.limit.saturating_sub(count);
            if let Some(last) = piece.frames.last() {
                question.from = last.id.successor().into();
            }
            let is_cut = piece.more && count == limit;
            let page = match all.take() {
                None => piece,
                Some(mut page) => {
                    page.frames.extend(piece.frames);
                    StreamPage { trimmed_before: page.trimmed_before, frames: page.frames, ..piece }
                }
            };
            if !is_cut || question.limit == 0 {
                return Ok(page);
            }
            all = Some(page);
        }
    }

    async fn piece(&self, question: &ReadStream, limit: u32) -> Result<StreamPage, EngineError> {
        let (id, index) = (question.execution_id, question.attempt_index);
        let request = get(self, id, index, "stream")?
            .query("from", &question.from)
            .query("to", &question.to)
            .query("limit", &limit)
            .query("visibility", frame::visibility(question.visibility));
        self.send(Exchange::plain::<Stream>(request)).await
    }
}
