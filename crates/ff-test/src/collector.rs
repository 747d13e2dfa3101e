//! What a collector of traces takes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

/// Takes the next request, which is well: its first line and its body.
pub fn take(listener: &TcpListener) -> (String, Vec<u8>) {
    let (stream, _) = listener.accept().expect("somebody connects");
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).expect("a request");
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).expect("a header");
        let header = header.trim_end().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let ok = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    reader.into_inner().write_all(ok).expect("it listens");
    (line, body)
}

/// Whether bytes hold a part.
pub fn holds(body: &[u8], part: &[u8]) -> bool {
    body.windows(part.len()).any(|window| window == part)
}
