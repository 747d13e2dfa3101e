//! Where the store is and what an acknowledgement means.
//!
//! The password lives in [`Password`] only, which does not print itself; whatever shows a URL, in
//! an error too, shows it without.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use ff_core::partition::GivenPartitions;
use ff_core::policy::Retention;
use ff_core::token::Secret;

use crate::error::OpenError;

const PORT: u16 = 6379;
const PREFIX: &str = "ff";
const PREFIX_LENGTH_MAX: usize = 32;
const HIDDEN: &str = "***";

/// The schemes, and whether they mean TLS.
const SCHEMES: [(&str, bool); 4] =
    [("valkey", false), ("valkeys", true), ("redis", false), ("rediss", true)];

/// How to open a store. From a URL: `valkey://[user:password@]host[:port][/db]` or `valkeys://`
/// for TLS, with `?cluster=1`, `durability=memory|fsync|replica`, `ca=file` and `prefix=ff`.
#[derive(Debug, Clone)]
pub struct ValkeyOptions {
    /// In a cluster any node of it, from which the others are learned.
    pub host: String,
    pub port: u16,
    /// A cluster has only number 0.
    pub db: i64,
    /// None: the server's default user.
    pub username: Option<String>,
    pub password: Option<Password>,
    pub tls: bool,
    /// A file of root certificates to trust instead of the system's.
    pub ca: Option<PathBuf>,
    pub cluster: bool,
    pub durability: Durability,
    /// What every key begins with, so that stores can share a server.
    pub prefix: String,
    /// A given count must be equal to the stored one. Others are as stored, or the defaults in a new
    /// store.
    pub partitions: GivenPartitions,
    /// How long terminal executions are kept when their policy does not say.
    pub retention: Retention,
    /// Signs waitpoint tokens of a new store; random when absent. Must be the stored one otherwise.
    pub waitpoint_secret: Option<Secret>,
    /// For how long opening waits for a server that is not there yet.
    pub connect_patience: Duration,
    /// How long a call waits for a connection, and then for its answer.
    pub call_timeout: Duration,
    pub clock: LibraryClock,
    /// How many call versions the functions are ahead of those of this build. 0, but in tests of upgrades,
    /// where it makes a process one of a later build.
    pub versions_ahead: u32,
    /// A claim of several tasks may take along work of the same priority that is up to this much
    /// younger than the oldest elsewhere, if it stands in the same partition: fewer calls for a
    /// looser order. 0: strictly the oldest first.
    pub fifo_slack_ms: u32,
}

/// What survives a loss of power. A killed process of ours loses nothing acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// What the server's own persistence keeps.
    #[default]
    Memory,
    /// Every acknowledged operation: the server writes through before it answers.
    Fsync,
    /// Every acknowledged operation, while one of the replicas connected at that time is left.
    Replica,
}

/// Whose time the functions on the server go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LibraryClock {
    #[default]
    Server,
    /// Set by tests, for all users of the server at once: it must have no other.
    Settable,
}

/// A password that shows itself to nobody but the connection.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(HIDDEN)
    }
}

impl Durability {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Fsync => "fsync",
            Self::Replica => "replica",
        }
    }
}

impl ValkeyOptions {
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
            db: 0,
            username: None,
            password: None,
            tls: false,
            ca: None,
            cluster: false,
            durability: Durability::default(),
            prefix: PREFIX.to_owned(),
            partitions: GivenPartitions::default(),
            retention: Retention::default(),
            waitpoint_secret: None,
            connect_patience: Duration::from_secs(60),
            call_timeout: Duration::from_secs(5),
            clock: LibraryClock::default(),
            versions_ahead: 0,
            fifo_slack_ms: 100,
        }
    }

    /// Refuses what the fields allow and the store does not.
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        self.flaw().map_or(Ok(()), |detail| Err(OpenError::Url { url: self.to_string(), detail }))
    }

    fn flaw(&self) -> Option<String> {
        let in_prefix = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
        if self.host.is_empty() {
            return Some("it names no host".to_owned());
        }
        if self.prefix.is_empty()
            || self.prefix.len() > PREFIX_LENGTH_MAX
            || !self.prefix.chars().all(in_prefix)
        {
            return Some(format!(
                "prefix must be 1 to {PREFIX_LENGTH_MAX} of a-z, 0-9, _ and -, not {:?}",
                self.prefix
            ));
        }
        if self.cluster && self.db != 0 {
            return Some(format!("a cluster has no database {}, only 0", self.db));
        }
        if self.ca.is_some() && !self.tls {
            return Some("ca needs TLS: write valkeys://".to_owned());
        }
        None
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match (name, value) {
            ("cluster", "1") => self.cluster = true,
            ("cluster", "0") => self.cluster = false,
            ("cluster", _) => return Err("cluster is 1 or 0".to_owned()),
            ("durability", "memory") => self.durability = Durability::Memory,
            ("durability", "fsync") => self.durability = Durability::Fsync,
            ("durability", "replica") => self.durability = Durability::Replica,
            ("durability", _) => return Err("durability is memory, fsync or replica".to_owned()),
            ("ca", "") => return Err("ca names no file".to_owned()),
            ("ca", file) => self.ca = Some(decoded(file, "ca")?.into()),
            ("prefix", prefix) => prefix.clone_into(&mut self.prefix),
            (unknown, _) => {
                return Err(format!(
                    "{unknown:?} is not known; there are cluster, durability, ca and prefix"
                ));
            }
        }
        Ok(())
    }
}

/// The URL without the password, for people and logs.
impl fmt::Display for ValkeyOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}://", if self.tls { "valkeys" } else { "valkey" })?;
        if self.username.is_some() || self.password.is_some() {
            let password = if self.password.is_some() { HIDDEN } else { "" };
            write!(out, "{}:{password}@", self.username.as_deref().unwrap_or_default())?;
        }
        if self.host.contains(':') {
            write!(out, "[{}]:{}", self.host, self.port)?;
        } else {
            write!(out, "{}:{}", self.host, self.port)?;
        }
        if self.db != 0 {
            write!(out, "/{}", self.db)?;
        }
        let ca = self.ca.as_ref().map(|file| format!("ca={}", file.display()));
        let parameters = [
            self.cluster.then(|| "cluster=1".to_owned()),
            (self.durability != Durability::default())
                .then(|| format!("durability={}", self.durability.as_str())),
            ca,
            (self.prefix != PREFIX).then(|| format!("prefix={}", self.prefix)),
        ];
        let parameters: Vec<String> = parameters.into_iter().flatten().collect();
        if parameters.is_empty() { Ok(()) } else { write!(out, "?{}", parameters.join("&")) }
    }
}

impl FromStr for ValkeyOptions {
    type Err = OpenError;

    fn from_str(url: &str) -> Result<Self, OpenError> {
        let options =
            parse(url).map_err(|detail| OpenError::Url { url: without_secrets(url), detail })?;
        options.check()?;
        Ok(options)
    }
}

fn parse(url: &str) -> Result<ValkeyOptions, String> {
    let (scheme, rest) = url.split_once("://").unwrap_or((url, ""));
    let (_, tls) = SCHEMES.into_iter().find(|(name, _)| *name == scheme).ok_or_else(|| {
        "it must begin with valkey://, valkeys://, redis:// or rediss://".to_owned()
    })?;
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, db) = place.split_once('/').unwrap_or((place, ""));
    let (login, address) =
        authority.rsplit_once('@').map_or((None, authority), |(login, rest)| (Some(login), rest));
    let (host, port) = host_and_port(address)?;
    let mut options = ValkeyOptions { tls, ..ValkeyOptions::new(host, port) };
    if let Some(login) = login {
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        options.username = Some(decoded(user, "user")?).filter(|user| !user.is_empty());
        options.password =
            Some(decoded(password, "password")?).filter(|it| !it.is_empty()).map(Password::new);
        if options.username.is_some() && options.password.is_none() {
            return Err("it names a user and no password".to_owned());
        }
    }
    if !db.is_empty() {
        let number = db.parse().ok().filter(|number| *number >= 0);
        options.db = number.ok_or("the database after / must be a number")?;
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        options.set(name, value)?;
    }
    Ok(options)
}

/// `host`, `host:port`, or the same with an IPv6 address in brackets.
///
/// A bad port is not repeated: in a URL that lacks its `@` the password stands there.
fn host_and_port(address: &str) -> Result<(&str, u16), String> {
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or("the bracket of the host is not closed")?,
        None => address.find(':').map_or((address, ""), |colon| address.split_at(colon)),
    };
    if host.is_empty() {
        return Err("it names no host".to_owned());
    }
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => PORT,
        None => return Err("after the bracket of the host only :port may follow".to_owned()),
        Some(port) => port
            .parse()
            .ok()
            .filter(|port| *port != 0)
            .ok_or("the port must be a number from 1 to 65535")?,
    };
    Ok((host, port))
}

/// Undoes percent-encoding. An error names the part only: it may be the password.
fn decoded(text: &str, part: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|c| c.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or_else(|| format!("{part} has a % without two hex digits"))?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| format!("{part} is not UTF-8"))
}

/// A URL that was refused, with everything hidden that could be a password in the wrong place.
fn without_secrets(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return HIDDEN.to_owned();
    };
    let rest = rest
        .rsplit_once('@')
        .map_or_else(|| rest.to_owned(), |(_, after)| format!("{HIDDEN}@{after}"));
    let (place, query) = rest.split_once('?').unwrap_or((&rest, ""));
    let place = match place.rsplit_once(':') {
        Some((host, port)) if !port.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("{host}:{HIDDEN}")
        }
        _ => place.to_owned(),
    };
    let shown = |pair: &str| match pair.split_once('=') {
        Some((name @ ("cluster" | "durability" | "ca" | "prefix"), value)) => {
            format!("{name}={value}")
        }
        Some((name, _)) => format!("{name}={HIDDEN}"),
        None => pair.to_owned(),
    };
    let query: Vec<String> = query.split('&').filter(|it| !it.is_empty()).map(shown).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{scheme}://{place}{mark}{}", query.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> ValkeyOptions {
        url.parse().unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    #[test]
    fn urls_are_read_and_shown_again() {
        let cases = [
            ("valkey://localhost", "valkey://localhost:6379"),
            ("redis://10.0.0.1:7000/3", "valkey://10.0.0.1:7000/3"),
            ("rediss://h", "valkeys://h:6379"),
            ("valkeys://h:1?ca=/etc/ca.pem", "valkeys://h:1?ca=/etc/ca.pem"),
            ("valkeys://h:1?ca=/a%20b", "valkeys://h:1?ca=/a b"),
            ("valkey://[::1]:7000", "valkey://[::1]:7000"),
            ("valkey://[fe80::1]", "valkey://[fe80::1]:6379"),
            ("valkey://:secret@h", "valkey://:***@h:6379"),
            ("valkey://me:secret@h/", "valkey://me:***@h:6379"),
            (
                "valkey://h?cluster=1&durability=replica",
                "valkey://h:6379?cluster=1&durability=replica",
            ),
            ("valkey://h?cluster=0&durability=memory&prefix=ff", "valkey://h:6379"),
            ("valkey://h?prefix=team_a-1", "valkey://h:6379?prefix=team_a-1"),
        ];
        for (url, shown) in cases {
            assert_eq!(read(url).to_string(), shown, "{url}");
        }
    }

    #[test]
    fn logins_are_decoded() {
        let cases = [
            ("valkey://:p%40ss%2Fw%3Ard%25@h", None, Some("p@ss/w:rd%")),
            ("valkey://m%C3%A9:a:b@h", Some("mé"), Some("a:b")),
            ("valkey://me:a@b@h", Some("me"), Some("a@b")),
            ("valkey://@h", None, None),
            ("valkey://h", None, None),
        ];
        for (url, user, password) in cases {
            let options = read(url);
            let found = options.password.as_ref().map(Password::expose);
            assert_eq!((options.username.as_deref(), found), (user, password), "{url}");
        }
    }

    #[test]
    fn bad_urls_say_which_part() {
        let cases = [
            ("postgres://h", "must begin with valkey://"),
            ("valkey:h", "must begin with valkey://"),
            ("valkey://", "no host"),
            ("valkey://:7000", "no host"),
            ("valkey://h:port", "port"),
            ("valkey://h:0", "port"),
            ("valkey://h:70000", "port"),
            ("valkey://[::1", "bracket"),
            ("valkey://[::1]7", "bracket"),
            ("valkey://h/x", "database"),
            ("valkey://h/-1", "database"),
            ("valkey://h/1?cluster=1", "database 1"),
            ("valkey://me@h", "no password"),
            ("valkey://a:%zz@h", "password has a %"),
            ("valkey://a:%2@h", "password has a %"),
            ("valkey://a:%+1@h", "password has a %"),
            ("valkey://%ff:a@h", "user is not UTF-8"),
            ("valkey://h?cluster=yes", "cluster is 1 or 0"),
            ("valkey://h?durability=maybe", "durability is memory, fsync or replica"),
            ("valkey://h?pool=3", "\"pool\" is not known"),
            ("valkey://h?prefix=", "prefix must be"),
            ("valkey://h?prefix={a}", "prefix must be"),
            ("valkey://h?prefix=FF", "prefix must be"),
            ("valkey://h?prefix=a23456789012345678901234567890123", "prefix must be"),
            ("valkey://h?ca=x", "ca needs TLS"),
            ("valkeys://h?ca=", "ca names no file"),
        ];
        for (url, part) in cases {
            let error = url.parse::<ValkeyOptions>().unwrap_err().to_string();
            assert!(error.contains(part), "{url}: {error}");
        }
    }

    #[test]
    fn passwords_do_not_show() {
        let good = read("valkey://me:hunter2@h");
        assert!(!format!("{good:?} {good}").contains("hunter2"));
        let bad = [
            "valkey://me:hunter2@h:x",
            "valkey://me:hunter2",
            "valkey://:hunter2",
            "valkey://me:hunter2/@h",
            "valkey://me:hunter2%@h",
            "valkey://me:hunter2@h?what=1",
            "valkey://h?password=hunter2",
            "postgres://me:hunter2@h",
            "valkey:me:hunter2@h",
            "me:hunter2@h",
        ];
        for url in bad {
            let error = url.parse::<ValkeyOptions>().unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        }
    }
}
