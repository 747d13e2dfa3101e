//! The table of all settings.

use std::path::PathBuf;
use std::time::Duration;

use ff_core::id::Namespace;
use ff_core::limits;
use ff_core::partition::{GivenPartitions, PartitionConfig};
use ff_core::policy::Retention;
use ff_core::token::Secret;
use ff_engine::SCANNERS;
use ff_observe::reports::BadDsn;
use ff_server::{ApiToken, ServerOptions};
use toml::Value;
use tracing_subscriber::EnvFilter;

use super::given::{Given, Unfit};
use super::settings::{Format, Settings};
use crate::stores::Options;

/// A scanner that looked more often would keep the store busy with nothing else.
const INTERVAL_MIN_MS: u64 = 100;
const CONNECTIONS_MAX: u64 = 1_000_000;

type Set = Box<dyn Fn(&mut Settings, &Given) -> Result<(), Unfit>>;
type Get = Box<dyn Fn(&Settings) -> Option<Value>>;

/// One setting.
pub(crate) struct Field {
    /// Where it stands in the file, as `server.listen_addr`.
    pub(crate) path: String,
    /// A name of the environment beside the one that follows from the path.
    pub(crate) short: Option<String>,
    pub(crate) meaning: &'static str,
    /// Never printed, and with a `…_FILE` twin.
    pub(crate) is_secret: bool,
    set: Set,
    get: Get,
}

impl Field {
    fn new(
        path: impl Into<String>,
        meaning: &'static str,
        set: impl Fn(&mut Settings, &Given) -> Result<(), Unfit> + 'static,
        get: impl Fn(&Settings) -> Option<Value> + 'static,
    ) -> Self {
        let (set, get) = (Box::new(set), Box::new(get));
        Self { path: path.into(), short: None, meaning, is_secret: false, set, get }
    }

    fn short(self, name: impl Into<String>) -> Self {
        Self { short: Some(name.into()), ..self }
    }

    fn secret(self) -> Self {
        Self { is_secret: true, ..self }
    }

    /// Its names in the environment, without those of its twin.
    pub(crate) fn names(&self) -> Vec<String> {
        let derived = format!("FF_{}", self.path.replace('.', "_").to_uppercase());
        std::iter::once(derived).chain(self.short.clone()).collect()
    }

    pub(crate) fn set(&self, settings: &mut Settings, given: &Given) -> Result<(), Unfit> {
        (self.set)(settings, given)
    }

    /// What it is now; none where nothing is set.
    pub(crate) fn get(&self, settings: &Settings) -> Option<Value> {
        (self.get)(settings)
    }
}

fn put<T>(place: &mut T, value: Result<T, Unfit>) -> Result<(), Unfit> {
    *place = value?;
    Ok(())
}

fn number(number: impl TryInto<i64>) -> Option<Value> {
    number.try_into().ok().map(Value::Integer)
}

fn text(text: impl Into<String>) -> Option<Value> {
    Some(Value::String(text.into()))
}

/// Every setting, in the order in which it is told.
pub(crate) fn fields() -> Vec<Field> {
    let mut fields = of_server();
    fields.extend(of_store());
    fields.extend(of_engine());
    fields.extend([
        Field::new(
            "log.filter",
            "what is logged to stderr, as info or ff_engine=debug",
            set_filter,
            |it| text(&it.log_filter),
        )
        .short("RUST_LOG"),
        Field::new(
            "otlp.endpoint",
            "collector that traces are sent to, as http://127.0.0.1:4318",
            |it, given| {
                let url = given.text()?;
                if !(url.starts_with("http://") || url.starts_with("https://")) {
                    return Err("it must be an address with http:// or https://".to_owned());
                }
                it.otlp_endpoint = Some(url.to_owned());
                Ok(())
            },
            |it| it.otlp_endpoint.as_ref().and_then(text),
        ),
        Field::new(
            "sentry.dsn",
            "where errors and panics are reported, as https://KEY@HOST/PROJECT of Sentry",
            |it, given| {
                let dsn = given.text()?.parse().map_err(|error: BadDsn| error.to_string())?;
                it.sentry_dsn = Some(dsn);
                Ok(())
            },
            |it| it.sentry_dsn.as_ref().and_then(|_| text("")),
        )
        .secret(),
        Field::new("log.format", "text, or json with one object a line", set_format, |it| {
            text(it.log_format.as_str())
        }),
    ]);
    fields
}

fn of_server() -> Vec<Field> {
    let mut fields = of_listening();
    fields.extend(of_security());
    fields
}

/// A file that the server reads.
fn file(
    path: &'static str,
    meaning: &'static str,
    part: fn(&mut ServerOptions) -> &mut Option<PathBuf>,
) -> Field {
    let set = move |it: &mut Settings, given: &Given| {
        *part(&mut it.server) = Some(PathBuf::from(given.text()?));
        Ok(())
    };
    let get = move |it: &Settings| {
        let path = part(&mut it.server.clone()).clone();
        path.and_then(|path| text(path.to_string_lossy()))
    };
    Field::new(path, meaning, set, get)
}

fn of_security() -> Vec<Field> {
    vec![
        Field::new(
            "server.api_token",
            "one key with every scope, namespace and lane, 16 bytes at least",
            |it, given| {
                let token = ApiToken::new(given.text()?).map_err(|error| error.to_string())?;
                it.server.api_token = Some(token);
                Ok(())
            },
            |it| it.server.api_token.as_ref().and_then(|_| text("")),
        )
        .short("FF_API_TOKEN")
        .secret(),
        file(
            "server.tls_cert",
            "certificate chain, PEM; with server.tls_key it speaks TLS",
            |it| &mut it.tls_cert,
        ),
        file("server.tls_key", "private key of the certificate, PEM", |it| &mut it.tls_key),
        file("server.client_ca", "clients must show a certificate of one of these, PEM", |it| {
            &mut it.client_ca
        }),
        Field::new(
            "server.cors_origins",
            "origins of pages that may call, as https://a.example; * for all",
            |it, given| put(&mut it.server.cors_origins, given.list()),
            |it| {
                let origins = it.server.cors_origins.iter().cloned().map(Value::String);
                Some(Value::Array(origins.collect()))
            },
        )
        .short("FF_CORS_ORIGINS"),
        Field::new(
            "server.public_signals",
            "signals need the token of their waitpoint and no key",
            |it, given| put(&mut it.server.public_signals, given.flag()),
            |it| Some(it.server.public_signals.into()),
        ),
        Field::new(
            "server.requests_per_second_per_key",
            "requests of one key in a second; without it there is no limit",
            |it, given| {
                let most = given.whole(1..=u32::MAX.into())?;
                it.server.requests_per_second_per_key = u32::try_from(most).ok();
                Ok(())
            },
            |it| it.server.requests_per_second_per_key.and_then(number),
        ),
    ]
}

fn of_listening() -> Vec<Field> {
    vec![
        Field::new(
            "store",
            "store: sqlite:PATH, sqlite::memory:, valkey://HOST:PORT",
            set_store,
            |it| text(shown_store(&it.store)),
        ),
        Field::new(
            "server.listen_addr",
            "address and port; port 0 takes any that is free",
            |it, given| {
                put(
                    &mut it.server.listen_addr,
                    given.parsed("an address with a port, as 127.0.0.1:7171"),
                )
            },
            |it| text(it.server.listen_addr.to_string()),
        )
        .short("FF_LISTEN_ADDR"),
        Field::new(
            "server.metrics_addr",
            "address and port where only /metrics, /livez and /readyz are served, without a key",
            |it, given| {
                let addr = given.parsed("an address with a port, as 127.0.0.1:9171")?;
                it.server.metrics_addr = Some(addr);
                Ok(())
            },
            |it| it.server.metrics_addr.and_then(|addr| text(addr.to_string())),
        ),
        Field::new(
            "server.max_connections",
            "connections at a time; further ones are told to come back",
            |it, given| put(&mut it.server.max_connections, given.count(1..=CONNECTIONS_MAX)),
            |it| number(it.server.max_connections),
        ),
        Field::new(
            "server.max_stream_tails",
            "followed streams and waiting tails at a time",
            |it, given| put(&mut it.server.max_stream_tails, given.count(1..=CONNECTIONS_MAX)),
            |it| number(it.server.max_stream_tails),
        ),
    ]
}

/// The count of a family of partitions.
fn partitions(
    (name, short): (&'static str, &'static str),
    meaning: &'static str,
    part: fn(&mut GivenPartitions) -> &mut Option<u16>,
) -> Field {
    let set = move |it: &mut Settings, given: &Given| {
        let count = given.whole(1..=PartitionConfig::MAX.into())?;
        *part(&mut it.partitions) = Some(u16::try_from(count).unwrap_or(PartitionConfig::MAX));
        Ok(())
    };
    let get = move |it: &Settings| {
        let mut given = it.partitions;
        part(&mut given).and_then(number)
    };
    Field::new(format!("partitions.{name}"), meaning, set, get).short(short)
}

/// How long executions of an outcome are kept.
fn retention(name: &'static str, part: fn(&mut Retention) -> &mut Option<u64>) -> Field {
    let set = move |it: &mut Settings, given: &Given| {
        *part(&mut it.retention) = Some(given.whole(0..=limits::DURATION_MAX_MS)?);
        Ok(())
    };
    let get = move |it: &Settings| {
        let mut retention = it.retention;
        number(part(&mut retention).unwrap_or(limits::RETENTION_MS))
    };
    let meaning = "how long executions that ended so are kept, in milliseconds";
    Field::new(format!("retention.{name}_ms"), meaning, set, get)
}

fn of_store() -> Vec<Field> {
    vec![
        Field::new(
            "waitpoint.hmac_secret",
            "signs waitpoint tokens of a new store, 32 to 128 bytes in hex; made at the first boot",
            set_secret,
            |it| it.waitpoint_secret.as_ref().and_then(|_| text("")),
        )
        .secret(),
        Field::new(
            "waitpoint.hmac_grace_ms",
            "how long the old secret is accepted after a rotation that does not say",
            |it, given| {
                put(&mut it.server.waitpoint_grace_ms, given.whole(0..=limits::DURATION_MAX_MS))
            },
            |it| number(it.server.waitpoint_grace_ms),
        ),
        partitions(
            ("flow", "FF_FLOW_PARTITIONS"),
            "partitions of executions and flows, 64 in a new store; fixed at its first boot",
            |counts| &mut counts.flow,
        ),
        partitions(
            ("budget", "FF_BUDGET_PARTITIONS"),
            "partitions of budgets, 16 in a new store; fixed at its first boot",
            |counts| &mut counts.budget,
        ),
        partitions(
            ("quota", "FF_QUOTA_PARTITIONS"),
            "partitions of quota policies, 16 in a new store; fixed at its first boot",
            |counts| &mut counts.quota,
        ),
        retention("success", |it| &mut it.success_ms),
        retention("failed", |it| &mut it.failed_ms),
        retention("cancelled", |it| &mut it.cancelled_ms),
        retention("expired", |it| &mut it.expired_ms),
        retention("skipped", |it| &mut it.skipped_ms),
        Field::new(
            "retention.events_ms",
            "how long events are kept, in milliseconds",
            |it, given| {
                put(&mut it.engine.event_retention_ms, given.whole(0..=limits::DURATION_MAX_MS))
            },
            |it| number(it.engine.event_retention_ms),
        ),
        Field::new(
            "retention.events_max_bytes",
            "how many bytes of events are kept for each partition",
            |it, given| {
                put(&mut it.engine.event_retention_bytes, given.whole(0..=i64::MAX.unsigned_abs()))
            },
            |it| number(it.engine.event_retention_bytes),
        ),
    ]
}

fn of_engine() -> Vec<Field> {
    let mut fields = vec![
        Field::new(
            "engine.enabled",
            "whether this process does background work",
            |it, given| put(&mut it.engine_enabled, given.flag()),
            |it| Some(it.engine_enabled.into()),
        ),
        Field::new(
            "engine.filter_namespace",
            "scanners that look for something to do look only at this namespace",
            set_namespace,
            |it| it.engine.filter.namespace.as_ref().and_then(|it| text(it.as_str())),
        ),
    ];
    fields.extend(SCANNERS.iter().map(|known| {
        let name = known.name;
        let set = move |it: &mut Settings, given: &Given| {
            let ms = given.whole(INTERVAL_MIN_MS..=limits::DURATION_MAX_MS)?;
            let interval = Duration::from_millis(ms);
            it.engine.intervals.set(name, interval).map_err(|error| error.to_string())
        };
        let get = move |it: &Settings| number(it.engine.intervals.of(name).as_millis());
        let meaning = "longest rest of this scanner, in milliseconds";
        Field::new(format!("engine.{name}_interval_ms"), meaning, set, get)
            .short(format!("FF_{}_INTERVAL_MS", name.to_uppercase()))
    }));
    fields
}

fn set_store(settings: &mut Settings, given: &Given) -> Result<(), Unfit> {
    let url = given.text()?;
    Options::parse(url).map_err(|error| error.to_string())?;
    url.clone_into(&mut settings.store);
    Ok(())
}

/// Without its password. A URL that cannot be read was refused before.
fn shown_store(url: &str) -> String {
    match Options::parse(url) {
        Ok(Options::Valkey(options)) => options.to_string(),
        Ok(Options::Sqlite(_)) => url.to_owned(),
        Err(_) => String::new(),
    }
}

fn set_secret(settings: &mut Settings, given: &Given) -> Result<(), Unfit> {
    let secret = Secret::from_hex(given.text()?).map_err(|refusal| refusal.detail.clone())?;
    settings.waitpoint_secret = Some(secret);
    Ok(())
}

fn set_namespace(settings: &mut Settings, given: &Given) -> Result<(), Unfit> {
    let namespace = Namespace::new(given.text()?).map_err(|error| error.to_string())?;
    settings.engine.filter.namespace = Some(namespace);
    Ok(())
}

fn set_filter(settings: &mut Settings, given: &Given) -> Result<(), Unfit> {
    let filter = given.text()?;
    EnvFilter::builder().parse(filter).map_err(|error| error.to_string())?;
    filter.clone_into(&mut settings.log_filter);
    Ok(())
}

fn set_format(settings: &mut Settings, given: &Given) -> Result<(), Unfit> {
    settings.log_format = match given.text()? {
        "text" => Format::Text,
        "json" => Format::Json,
        _ => return Err("it must be text or json".to_owned()),
    };
    Ok(())
}
