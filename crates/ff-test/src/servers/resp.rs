//! A client that is just enough for a test's own commands.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result as IoResult, Write};
use std::net::{Ipv4Addr, TcpStream};

use crate::world::PATIENCE;

pub(super) enum Reply {
    /// Text of any kind, and numbers.
    Text(Vec<u8>),
    Nothing,
    List(Vec<Self>),
    Error(String),
}

impl Reply {
    /// Text as it is, nothing as the empty text, a list as one line for each item.
    fn into_text(self) -> String {
        match self {
            Self::Text(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Self::Nothing => String::new(),
            Self::List(items) => {
                items.into_iter().map(Self::into_text).collect::<Vec<_>>().join("\n")
            }
            Self::Error(error) => error,
        }
    }

    /// Every text of the reply as its bytes, lists inside lists included.
    pub(super) fn into_pieces(self) -> Vec<Vec<u8>> {
        match self {
            Self::Text(bytes) => vec![bytes],
            Self::Nothing => Vec::new(),
            Self::List(items) => items.into_iter().flat_map(Self::into_pieces).collect(),
            Self::Error(error) => vec![error.into_bytes()],
        }
    }
}

pub(super) struct Connection {
    port: u16,
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub(super) fn open(port: u16, password: Option<&str>) -> Result<Self, String> {
        let stream = connect(port).map_err(|error| told(port, &error))?;
        let mut connection = Self { port, stream: BufReader::new(stream) };
        if let Some(password) = password {
            connection.call(&[b"AUTH", password.as_bytes()])?;
        }
        Ok(connection)
    }

    /// Sends one command and reads its reply. An error reply is an error.
    pub(super) fn call(&mut self, words: &[&[u8]]) -> Result<Reply, String> {
        let sent = self.stream.get_mut().write_all(&encode(words));
        let reply = sent.and_then(|()| read_reply(&mut self.stream));
        match reply.map_err(|error| told(self.port, &error))? {
            Reply::Error(error) => Err(error),
            reply => Ok(reply),
        }
    }

    pub(super) fn call_for_text(&mut self, words: &[&str]) -> Result<String, String> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.call(&words).map(Reply::into_text)
    }
}

fn connect(port: u16) -> IoResult<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    // A paused server keeps its connections and answers none of them.
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn told(port: u16, error: &Error) -> String {
    format!("127.0.0.1:{port}: {error}")
}

fn encode(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).bytes());
        bytes.extend(*word);
        bytes.extend(b"\r\n");
    }
    bytes
}

fn read_reply(source: &mut impl BufRead) -> IoResult<Reply> {
    let mut line = String::new();
    source.read_line(&mut line)?;
    let line = line.strip_suffix("\r\n").ok_or(ErrorKind::UnexpectedEof)?;
    let (kind, rest) = line.split_at_checked(1).ok_or(ErrorKind::InvalidData)?;
    let length = || rest.parse::<i64>().map_err(Error::other);
    Ok(match kind {
        "-" => Reply::Error(rest.to_owned()),
        "+" | ":" => Reply::Text(rest.as_bytes().to_vec()),
        "$" => match usize::try_from(length()?) {
            Ok(length) => Reply::Text(read_bulk(source, length)?),
            Err(_) => Reply::Nothing,
        },
        "*" => match usize::try_from(length()?) {
            Ok(length) => {
                Reply::List((0..length).map(|_| read_reply(source)).collect::<IoResult<_>>()?)
            }
            Err(_) => Reply::Nothing,
        },
        _ => return Err(ErrorKind::InvalidData.into()),
    })
}

fn read_bulk(source: &mut impl Read, length: usize) -> IoResult<Vec<u8>> {
    let mut bytes = vec![0; length + 2];
    source.read_exact(&mut bytes)?;
    bytes.truncate(length);
    Ok(bytes)
}
