//! Opening: from a URL to a router whose every node was looked at.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::address::Address;
use super::backoff::Backoff;
use super::connection::Connection;
use super::connector::Connector;
use super::ground::Ground;
use super::load::{self, Found};
use super::node::Node;
use super::obstacle::Obstacle;
use super::refresh;
use super::router::{Client, Inner};
use super::topology::{Share, Topology};
use crate::boot;
use crate::error::OpenError;
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

impl Client {
    /// Waits for a server that is not there yet for as long as the options say. What somebody has
    /// to change first ends it at once.
    pub(crate) async fn connect(
        options: &ValkeyOptions,
        library: Arc<Library>,
    ) -> Result<Self, OpenError> {
        options.check()?;
        let (connector, all_gone) = Connector::new(options)?;
        let ground = Arc::new(Ground::new(options, library, connector));
        let seed = Address::new(&options.host, options.port);
        let survey = patiently(&ground, &seed, options, Libraries::Ensure).await?;
        let Survey { shares, connections, server_version, .. } = survey;
        let table = Topology::new(0, shares, |address| {
            let first = connections.iter().find(|(at, _)| at == address);
            Node::start(&ground, address, first.map(|(_, connection)| connection.clone()))
        });
        let inner = Arc::new(Inner {
            table: watch::Sender::new(Arc::new(table)),
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
}

pub(super) async fn patiently(
    ground: &Ground,
    seed: &Address,
    options: &ValkeyOptions,
    libraries: Libraries,
) -> Result<Survey, OpenError> {
    let deadline = Instant::now() + options.connect_patience;
    let mut backoff = Backoff::new();
    let mut told = false;
    loop {
        let obstacle = match survey(ground, seed, options, libraries).await {
            Ok(survey) => return Ok(survey),
            Err(obstacle) => obstacle,
        };
        let is_over = Instant::now() >= deadline || matches!(obstacle, Obstacle::Final(_));
        if is_over {
            return Err(obstacle.into_open_error(seed));
        }
        if !told {
            tracing::warn!(address = %seed, reason = %obstacle, "waiting for valkey");
            told = true;
        }
        sleep_until(deadline.min(Instant::now() + backoff.pause())).await;
    }
}

async fn survey(
    ground: &Ground,
    seed: &Address,
    options: &ValkeyOptions,
    libraries: Libraries,
) -> Result<Survey, Obstacle> {
    let mut at_seed = ground.connector.open(seed).await?;
    boot::check_mode(&mut at_seed, seed, options).await?;
    let shares = if options.cluster {
        whole(refresh::ask(&mut at_seed, seed).await)?
    } else {
        vec![Share::of_all_slots(seed.clone())]
    };
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
        let looked_at = look_at(ground, address, options).await;
        let (mut connection, version) = looked_at.map_err(|obstacle| obstacle.at(address))?;
        match libraries {
            Libraries::Ensure => load::ensure(&mut connection, address, &ground.library).await,
            Libraries::Look => {
                let library = load::found(&mut connection, address).await;
                library.map(|library| found.libraries.push(library))
            }
        }
        .map_err(|obstacle| obstacle.at(address))?;
        found.server_version = version;
        found.connections.push((address.clone(), connection));
    }
    Ok(found)
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
        Client::connect(&options, fake::library()).await
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
        let error = Client::connect(&options, fake::library()).await.err().unwrap();
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
