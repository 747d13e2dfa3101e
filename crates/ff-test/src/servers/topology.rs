//! What a node of a cluster knows of all nodes.

use std::ops::RangeInclusive;

use super::server::Server;

/// One line of `CLUSTER NODES`.
pub(super) struct Node {
    pub(super) id: String,
    flags: Vec<String>,
    pub(super) epoch: u64,
    connected: bool,
    slots: Vec<RangeInclusive<u16>>,
}

impl Node {
    /// `None` for a line that is not understood.
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [id, _address, flags, _primary, _ping, _pong, epoch, link, slots @ ..] = &words[..]
        else {
            return None;
        };
        let slots = slots.iter().filter(|slots| !slots.starts_with('['));
        Some(Self {
            id: (*id).to_owned(),
            flags: flags.split(',').map(str::to_owned).collect(),
            epoch: epoch.parse().ok()?,
            connected: *link == "connected",
            slots: slots.map(|slots| parse_range(slots)).collect::<Option<_>>()?,
        })
    }

    pub(super) fn is(&self, flag: &str) -> bool {
        self.flags.iter().any(|own| own == flag)
    }

    /// Whether this is a member that can be reached, and not one that is about to join or is
    /// suspected to be gone.
    pub(super) fn is_sound(&self) -> bool {
        let unsound = ["handshake", "noaddr", "fail", "fail?"];
        self.connected && !unsound.iter().any(|flag| self.is(flag))
    }

    pub(super) fn owns(&self, slot: u16) -> bool {
        self.slots.iter().any(|range| range.contains(&slot))
    }
}

/// All nodes as `server` sees them. A slot that is on its way still belongs to the old owner.
pub(super) fn nodes_seen_by(server: &Server) -> Vec<Node> {
    let text = server.must(&["CLUSTER", "NODES"]);
    let node = |line| Node::parse(line).unwrap_or_else(|| panic!("not understood: {line}"));
    text.lines().map(node).collect()
}

fn parse_range(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some(first.parse().ok()?..=last.parse().ok()?)
}
