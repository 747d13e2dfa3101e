//! Bodies are read whole, up to what their route takes.

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use ff_api::problem::{Failure, Problem};
use ff_core::error::{Code, Refusal};
use futures_util::StreamExt as _;

use crate::failure::Failed;
use crate::route::Route;

/// So much of a body that is too large is read and thrown away: a caller that is still writing would
/// not see the answer before its connection breaks.
const DISCARDED: u64 = 64 << 20;

pub(crate) async fn read(body: Body, headers: &HeaderMap, route: &Route) -> Result<Bytes, Failed> {
    check_encoding(headers)?;
    let declared = headers.get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let limit = route.body_bytes as u64;
    let too_large = || Failed::from(Failure::new(Problem::too_large(route.body_bytes, route.path)));
    if declared.is_some_and(|bytes| bytes > DISCARDED) {
        return Err(too_large());
    }
    let mut chunks = body.into_data_stream();
    let (mut read, mut seen) = (BytesMut::new(), 0);
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| broken())?;
        seen += chunk.len() as u64;
        if seen == chunk.len() as u64 && declared == Some(seen) && seen <= limit {
            return Ok(chunk);
        }
        if seen <= limit && declared.is_none_or(|bytes| bytes <= limit) {
            read.extend_from_slice(&chunk);
        } else if seen > DISCARDED {
            break;
        }
    }
    if seen > limit { Err(too_large()) } else { Ok(read.freeze()) }
}

fn check_encoding(headers: &HeaderMap) -> Result<(), Refusal> {
    let encodings = headers.get_all(header::CONTENT_ENCODING);
    if encodings.iter().all(|value| value.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Ok(());
    }
    Err(Refusal::new(Code::UnsupportedEncoding, "bodies are taken as they are, not compressed"))
}

fn broken() -> Failed {
    Refusal::new(Code::InvalidInput, "the body did not come to its end").into()
}
