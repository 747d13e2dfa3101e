//! How a server is started.

use std::fmt::Write;

/// What a server keeps when it dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Persistence {
    /// Nothing.
    #[default]
    None,
    /// All but about the last second, in an append-only file.
    AppendEverySecond,
    /// Everything it acknowledged, in an append-only file.
    AppendAlways,
}

/// Options of one server. The default is a server alone, without a password, in memory.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    pub persistence: Persistence,
    /// The port of the primary, if this is to be a replica. It must have the same password.
    pub replica_of: Option<u16>,
    /// Whether it is a node of a cluster. [`super::Cluster`] makes nodes into one.
    pub cluster: bool,
    pub password: Option<String>,
    /// More lines of configuration, such as `maxmemory 10mb`. They win over the others.
    pub extra: Vec<String>,
}

impl ServerOptions {
    /// The configuration file. `bus_port` is where nodes of a cluster talk to each other.
    pub(super) fn configuration(&self, port: u16, bus_port: u16) -> String {
        let (append, fsync) = match self.persistence {
            Persistence::None => ("no", "no"),
            Persistence::AppendEverySecond => ("yes", "everysec"),
            Persistence::AppendAlways => ("yes", "always"),
        };
        // A replica's first copy starts when it asks and is loaded as it arrives: the defaults
        // wait for other replicas, and look for a finished file once a second.
        let mut text = format!(
            "bind 127.0.0.1\nport {port}\nprotected-mode no\nenable-debug-command yes\n\
             save \"\"\nappendonly {append}\nappendfsync {fsync}\nrepl-diskless-sync-delay 0\n\
             repl-diskless-load on-empty-db\n"
        );
        if let Some(primary) = self.replica_of {
            let _ = writeln!(text, "replicaof 127.0.0.1 {primary}");
        }
        if self.cluster {
            let _ = writeln!(text, "cluster-enabled yes\ncluster-port {bus_port}");
            let _ = writeln!(text, "cluster-announce-ip 127.0.0.1");
        }
        if let Some(password) = &self.password {
            let _ = writeln!(text, "requirepass \"{password}\"\nmasterauth \"{password}\"");
        }
        for line in &self.extra {
            let _ = writeln!(text, "{line}");
        }
        text
    }
}
