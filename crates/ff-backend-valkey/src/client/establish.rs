//! Opening: from a URL to a router whose every node was looked at.

use std::sync::{Arc, Mutex, PoisonError};

use ff_core::error::EngineError;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::address::Address;
use super::connection::Connection;
use super::connector::Connector;
use super::ground::Ground;
use super::load::{self, Found};
use super::node::Node;
use super::obstacle::Obstacle;
use super::patience::Patience;
use super::refresh;
use super::router::{Client, Inner};
use super::topology::{Share, Topology};
use crate::boot;
use crate::error::{OpenError, is_of_no_writes};
use crate::library::Library;
use crate::options::ValkeyOptions;

/// What a look at the server, or at every primary of the cluster, ended in.
pub(super) struct Survey {
    shares: Vec<Share>,
    connections: Vec<(Address, Connection)>,
    server_version: String,
    /// What was found on each, where it was only looked at.
    pub(super) libraries: Vec<Option<Found>>,
}

/// What becomes of the function libraries of those who are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Libraries {
    /// Each gets one that serves ours.
    Ensure,
    /// They stay as they are.
    Look,
}

/// A node that is in the way of a survey, and why.
type Halted = (Address, Obstacle);

impl Client {
    /// Waits for a server that is not there yet for as long as the options say. What somebody has
    /// to change first ends it at once.
    pub(crate) async fn connect(
        options: &ValkeyOptions,
        library: Arc<Library>,
        patience: &mut Patience,
    ) -> Result<Self, OpenError> {
        options.check()?;
        let (connector, all_gone) = Connector::new(options)?;
        let ground = Arc::new(Ground::new(options, library, connector));
        let seed = Address::new(&options.host, options.port);
        let survey = patiently(&ground, (&seed, options), Libraries::Ensure, patience).await?;
        let Survey { shares, connections, server_version, .. } = survey;
        let table = Topology::new(0, shares, |address| {
            let first = connections.iter().find(|(at, _)| at == address);
            Node::start(&ground, address, first.map(|(_, connection)| connection.clone()))
        });
        let inner = Arc::new(Inner {
            table: watch::Sender::new(Arc::new(table)),
            helpers: Mutex::default(),
            seed,
            server_version,
            refresher: Mutex::new(None),
            all_gone: tokio::sync::Mutex::new(all_gone),
            ground,
        });
        if options.cluster {
            let refresher = refresh::start(&inner);
            inner.refresher.lock().unwrap_or_else(PoisonError::into_inner).replace(refresher);
        }
        Ok(Self(inner))
    }

    /// Why an opening could not have an answer of the node that owns a slot.
    pub(crate) fn unopened(&self, slot: u16, error: EngineError) -> OpenError {
        match (error, self.table().owner(slot)) {
            (EngineError::Transport { detail, .. }, Some(node)) => {
                OpenError::Unreachable { address: node.address.to_string(), detail }
            }
            (EngineError::Unavailable { detail }, Some(node)) if is_of_no_writes(&detail) => {
                OpenError::Unreachable { address: node.address.to_string(), detail }
            }
            (error, _) => OpenError::Server(error.to_string()),
        }
    }
}

pub(super) async fn patiently(
    ground: &Ground,
    (seed, options): (&Address, &ValkeyOptions),
    libraries: Libraries,
    patience: &mut Patience,
) -> Result<Survey, OpenError> {
    loop {
        let surveyed = survey(ground, (seed, options), libraries, patience.of_a_try()).await;
        let (node, obstacle) = match surveyed {
            Ok(survey) => return Ok(survey),
            Err(halted) => halted,
        };
        let obstacle = match obstacle {
            Obstacle::Later(detail) if node != *seed => {
                Obstacle::Later(format!("{detail}; it is a primary of the cluster at {seed}"))
            }
            obstacle => obstacle,
        };
        let is_final = matches!(obstacle, Obstacle::Final(_));
        let error = obstacle.into_open_error(&node);
        if is_final || !patience.pause(&error).await {
            return Err(error);
        }
    }
}

/// One look at all nodes, which is over at `until`, whatever hangs.
async fn survey(
    ground: &Ground,
    (seed, options): (&Address, &ValkeyOptions),
    libraries: Libraries,
    until: Instant,
) -> Result<Survey, Halted> {
    let shares = within(until, seed, layout(ground, seed, options)).await?;
    let mut found = Survey {
        shares,
        connections: Vec::new(),
        server_version: String::new(),
        libraries: Vec::new(),
    };
    for Share { address, .. } in &found.shares {
        if found.connections.iter().any(|(known, _)| known == address) {
            continue;
        }
        let looking = async {
            let (mut connection, version) = look_at(ground, address, options).await?;
            let library = match libraries {
                Libraries::Ensure => {
                    load::ensure(&mut connection, address, &ground.library).await?;
                    None
                }
                Libraries::Look => Some(load::found(&mut connection, address).await?),
            };
            Ok((connection, version, library))
        };
        let (connection, version, library) = within(until, address, looking).await?;
        found.libraries.extend(library);
        found.server_version = version;
        found.connections.push((address.clone(), connection));
    }
    Ok(found)
}

/// A step that one node answers in time.
async fn within<T>(
    until: Instant,
    address: &Address,
    step: impl Future<Output = Result<T, Obstacle>>,
) -> Result<T, Halted> {
    let silent = |_| Err(Obstacle::Later("it does not answer".to_owned()));
    let outcome = timeout_at(until, step).await.unwrap_or_else(silent);
    outcome.map_err(|obstacle| (address.clone(), obstacle))
}

/// Who has which slots.
async fn layout(
    ground: &Ground,
    seed: &Address,
    options: &ValkeyOptions,
) -> Result<Vec<Share>, Obstacle> {
    let mut at_seed = ground.connector.open(seed).await?;
    boot::check_mode(&mut at_seed, seed, options).await?;
    match options.cluster {
        true => whole(refresh::ask(&mut at_seed, seed).await),
        false => Ok(vec![Share::of_all_slots(seed.clone())]),
    }
}

async fn look_at(
    ground: &Ground,
    address: &Address,
    options: &ValkeyOptions,
) -> Result<(Connection, String), Obstacle> {
    let mut connection = ground.connector.open(address).await?;
    let version = boot::check(&mut connection, address, options).await?;
    Ok((connection, version))
}

/// A cluster that is being made has slots without a node for a moment.
fn whole(shares: Option<Vec<Share>>) -> Result<Vec<Share>, Obstacle> {
    let shares =
        shares.ok_or_else(|| Obstacle::Later("the cluster has no slots yet".to_owned()))?;
    if Share::cover_all(&shares) {
        Ok(shares)
    } else {
        Err(Obstacle::Later("slots of the cluster have no node; see CLUSTER INFO".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::client::fake::{self, Fake, Say};

    async fn opened(fake: &Fake, cluster: bool) -> Result<Client, OpenError> {
        let options = ValkeyOptions { cluster, ..fake.options() };
        fake::connect(&options).await
    }

    #[tokio::test]
    async fn a_server_that_is_not_ready_is_waited_for() {
        let fake = Fake::start(|command, before| match (command, before) {
            ("INFO default", 0) => fake::error("LOADING x"),
            ("FCALL_RO ff_version 0", 0) => Say::Nothing,
            _ => Say::Usual,
        });
        let client = opened(&fake, false).await.unwrap();
        assert_eq!(client.server_version(), "valkey 9.0.0");
    }

    #[tokio::test]
    async fn patience_ends() {
        let fake = Fake::start(|_, _| Say::Nothing);
        let connect_patience = Duration::from_millis(100);
        let options = ValkeyOptions { connect_patience, ..fake.options() };
        let error = fake::connect(&options).await.err().unwrap();
        assert!(matches!(error, OpenError::Unreachable { .. }), "{error}");
    }

    #[tokio::test]
    async fn what_somebody_has_to_change_ends_it_at_once() {
        let cases: [(&str, &str, &str); 6] = [
            ("HELLO 3", "WRONGPASS no", "does not let us in"),
            ("INFO cluster", "NOPERM no", "does not let us in"),
            ("FUNCTION STATS", "ERR unknown command", "functions cannot be used"),
            ("FCALL_RO ff_version 0", "ERR no engine", "functions cannot be used"),
            ("INFO default", "ERR broken", "valkey answered: ERR broken"),
            ("HELLO 3", "ERR unknown command `HELLO`, with args", "too old"),
        ];
        for (command, line, text) in cases {
            let fake = Fake::start(
                move |asked, _| {
                    if asked == command { fake::error(line) } else { Say::Usual }
                },
            );
            let error = opened(&fake, false).await.err().unwrap().to_string();
            assert!(error.contains(text), "{command} {line}: {error}");
            assert_eq!(fake.asked(command).len(), 1, "{command} {line}");
        }
    }

    #[tokio::test]
    async fn the_url_must_know_of_the_cluster() {
        let alone = Fake::start(|_, _| Say::Usual);
        let error = opened(&alone, true).await.err().unwrap().to_string();
        assert!(error.contains("leave cluster=1 out"), "{error}");
        let member = Fake::start(|_, _| fake::cluster_info());
        let error = opened(&member, false).await.err().unwrap().to_string();
        assert!(error.contains("add cluster=1"), "{error}");
    }

    #[tokio::test]
    async fn a_library_two_steps_newer_is_refused() {
        let fake = Fake::start(|command, _| match command {
            "FCALL_RO ff_version 0" => fake::version(7, "other"),
            _ => Say::Usual,
        });
        let error = opened(&fake, false).await.err().unwrap();
        assert!(matches!(error, OpenError::LibraryTooNew { found: 7, served: 6 }), "{error}");
    }
}
