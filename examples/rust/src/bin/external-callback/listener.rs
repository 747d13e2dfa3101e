//! A web server that knows one request: a POST with JSON. Programs have a framework for this; here
//! it is small enough to be read.

use std::future::Future;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// More than any callback has.
const BODY_MAX: u64 = 64 * 1024;

/// Answers every request with the status that `handle` gives for its body.
pub(crate) async fn serve<F: Future<Output = u16>>(
    listener: TcpListener,
    handle: impl Fn(Vec<u8>) -> F,
) -> Result<()> {
    loop {
        let (mut stream, _) = listener.accept().await?;
        let status = match read_body(&mut stream).await {
            Ok(body) => handle(body).await,
            Err(_) => 400,
        };
        let rest = "content-length: 0\r\nconnection: close";
        let answer = format!("HTTP/1.1 {status} -\r\n{rest}\r\n\r\n");
        // A caller that has gone does not hear it, and sends its message again.
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}

/// The body, as long as the header says.
async fn read_body(stream: &mut TcpStream) -> Result<Vec<u8>> {
    let mut reader = BufReader::new(stream).take(BODY_MAX);
    let (mut line, mut length) = (String::new(), None);
    loop {
        line.clear();
        reader.read_line(&mut line).await?;
        let header = line.trim_end().to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = Some(value.trim().parse::<u64>()?);
        }
        if header.is_empty() {
            break;
        }
    }
    let length =
        length.filter(|length| *length <= BODY_MAX).context("no length that is allowed")?;
    let mut body = vec![0; usize::try_from(length)?];
    reader.read_exact(&mut body).await?;
    Ok(body)
}
