//! Server-sent events, taken apart as their bytes come.

/// No event is longer; a server that sends one is none of ours.
const EVENT_BYTES_MAX: usize = 16 << 20;

/// An event that is longer than any of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stream holds an event of more than {EVENT_BYTES_MAX} bytes")]
pub struct TooLong;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    pub id: Option<String>,
    pub event: String,
    /// JSON text.
    pub data: String,
}

/// What has come and was not taken yet.
#[derive(Debug, Default)]
pub struct Parser {
    bytes: Vec<u8>,
    /// Up to where no end of an event is.
    searched: usize,
}

impl Parser {
    /// Takes in what has come.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), TooLong> {
        self.bytes.extend_from_slice(chunk);
        if self.bytes.len() > EVENT_BYTES_MAX {
            return Err(TooLong);
        }
        Ok(())
    }

    /// The next whole event; comments and hints are passed over.
    pub fn next_event(&mut self) -> Option<SseEvent> {
        loop {
            let from = self.searched.saturating_sub(1);
            let found = self.bytes[from..].windows(2).position(|pair| pair == b"\n\n");
            let Some(found) = found else {
                self.searched = self.bytes.len();
                return None;
            };
            let block: Vec<u8> = self.bytes.drain(..from + found + 2).collect();
            self.searched = 0;
            if let Some(event) = parse(&String::from_utf8_lossy(&block)) {
                return Some(event);
            }
        }
    }
}

fn parse(block: &str) -> Option<SseEvent> {
    let mut event = SseEvent::default();
    let mut data: Option<String> = None;
    for line in block.lines() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => event.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut event.event),
            "data" => match &mut data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => data = Some(value.to_owned()),
            },
            _ => {}
        }
    }
    event.data = data?;
    Some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_however_they_are_cut() {
        let text =
            "retry: 2000\n\n:\n\nid: 7\nevent: a\ndata: {\"x\":1}\n\nevent: end\ndata: {}\n\n";
        let first = SseEvent { id: Some("7".into()), event: "a".into(), data: "{\"x\":1}".into() };
        let last = SseEvent { id: None, event: "end".into(), data: "{}".into() };
        for size in 1..text.len() {
            let (mut parser, mut found) = (Parser::default(), Vec::new());
            for chunk in text.as_bytes().chunks(size) {
                assert_eq!(parser.push(chunk), Ok(()));
                found.extend(std::iter::from_fn(|| parser.next_event()));
            }
            assert_eq!(found, [first.clone(), last.clone()], "in pieces of {size}");
        }
    }
}
