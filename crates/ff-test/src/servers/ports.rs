//! Ports for servers.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Mutex;

/// Every port handed out. None is handed out twice: a server that is down for a moment keeps its
/// port, and its clients must not meet another test's server there.
static TAKEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// A port of the loopback that was free a moment ago. Another process may take it before the
/// server does; whoever starts the server tries again with another one.
pub(super) fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        if TAKEN.lock().unwrap().insert(port) {
            return port;
        }
    }
}
