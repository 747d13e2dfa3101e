//! A server, as a backend.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ff_core::act::Acts;
use ff_core::backend::{Backend, Pending};
use ff_core::errand::Errands;
use ff_core::error::EngineError;
use ff_core::id::Namespace;
use ff_core::operation::{Claim, Claimed, Command, Reply};
use ff_core::read::{Answer, Followed, Query, Topic};
use ff_core::tally::Tally;

use crate::http::{Ends, Transport};
use crate::known::Known;
use crate::link::Link;
use crate::{ConnectError, Options, connect};

/// A connection to a server. It is cheap to share, and any number of calls may be under way at once.
pub struct Remote {
    pub(crate) link: Arc<Link>,
}

impl Remote {
    /// Asks the server at `url` who it is. The URL begins with `http://` or `https://`.
    ///
    /// The key needs the scope `executions:read` or `workers:claim` for that, and for each call the
    /// scope of its route.
    pub async fn connect(url: &str, options: Options) -> Result<Self, ConnectError> {
        let transport = Transport::new(&Ends {
            url,
            key: options.key.as_deref(),
            agent: concat!("ff-remote/", env!("CARGO_PKG_VERSION")),
            connect_timeout: options.connect_timeout,
            call_timeout: options.call_timeout,
            roots: &options.roots,
        })?;
        let (settings, identity) = connect::ask(&transport).await?;
        let link = Link {
            transport,
            settings,
            identity,
            errands: Errands::default(),
            tally: Tally::default(),
            known: Known::new(options.namespace),
        };
        Ok(Self { link: Arc::new(link) })
    }

    /// Where the server is.
    pub fn url(&self) -> &str {
        self.link.transport.base()
    }

    /// In which namespace things are looked for that an operation names by id alone and of which this
    /// connection knows nothing. None: the key's own.
    pub fn namespace(&self) -> Option<&Namespace> {
        self.link.known.own()
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("url", &self.url()).finish_non_exhaustive()
    }
}

impl Backend for Remote {
    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>> {
        Box::pin(self.link.apply(commands))
    }

    fn take(&self, claim: Claim, wait: Duration) -> Pending<'_, Result<Claimed, EngineError>> {
        Box::pin(self.link.take(claim, wait))
    }

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>> {
        Box::pin(self.link.ask(query))
    }

    fn follow(&self, topic: Topic, wait: Duration) -> Pending<'_, Result<Followed, EngineError>> {
        Box::pin(self.link.follow(topic, wait))
    }

    fn acts(&self) -> Option<&dyn Acts> {
        Some(&*self.link)
    }
}
