//! Where things stand, and the names of everything that is not an execution.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    BudgetId, BulkId, ExecutionId, FlowId, KeyId, LaneId, Namespace, PartitionFamily, PartitionKey,
    QuotaPolicyId, WorkerInstanceId,
};
use crate::partition::PartitionConfig;

/// What one atomic step may touch, and whose log it writes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Home {
    Partition(PartitionKey),
    /// What all partitions of a namespace share: lanes, workers.
    Namespace(Namespace),
    /// What all namespaces share.
    Global,
}

/// Homes that hold the same kinds of things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HomeFamily {
    Partitions(PartitionFamily),
    /// One for each namespace.
    Namespaces,
    Global,
}

/// What a document is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DocumentKind {
    Flow,
    Budget,
    QuotaPolicy,
    Worker,
    Lane,
    Namespace,
    Key,
    Bulk,
}

/// Names a document: a record that is not an execution. `flow:{fp:7}:<uuid>`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DocumentId {
    pub kind: DocumentKind,
    pub home: Home,
    pub name: Arc<str>,
}

/// What a record or an event is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Subject {
    Execution(ExecutionId),
    Document(DocumentId),
}

/// The text is not the name of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a document")]
pub struct DocumentIdParseError;

impl Home {
    pub const fn partition(index: u16) -> Self {
        Self::Partition(PartitionKey { family: PartitionFamily::Flow, index })
    }

    /// The partition of executions and flows that it is.
    pub const fn flow_partition(&self) -> Option<u16> {
        match self {
            Self::Partition(PartitionKey { family: PartitionFamily::Flow, index }) => Some(*index),
            _ => None,
        }
    }

    pub const fn family(&self) -> HomeFamily {
        match self {
            Self::Partition(key) => HomeFamily::Partitions(key.family),
            Self::Namespace(_) => HomeFamily::Namespaces,
            Self::Global => HomeFamily::Global,
        }
    }

    /// Whether a deployment with these partitions has it. Namespaces are not counted.
    pub fn exists(&self, config: &PartitionConfig) -> bool {
        match self {
            Self::Partition(PartitionKey { family, index }) => *index < config.count(*family),
            Self::Namespace(_) | Self::Global => true,
        }
    }

    /// Reads what [`Home::log`] wrote.
    pub fn of_log(log: &str) -> Option<Self> {
        if log == "g" {
            return Some(Self::Global);
        }
        if let Some(namespace) = log.strip_prefix("w.") {
            return Namespace::new(namespace).ok().map(Self::Namespace);
        }
        let prefix = log.trim_end_matches(|c: char| c.is_ascii_digit());
        let index = log[prefix.len()..].parse().ok()?;
        let named = PartitionFamily::ALL.into_iter().filter(|f| *f != PartitionFamily::Flow);
        let family = match prefix {
            "" => Some(PartitionFamily::Flow),
            prefix => named.into_iter().find(|family| family.prefix() == prefix),
        };
        let home = Self::Partition(PartitionKey { family: family?, index });
        (home.log() == log).then_some(home)
    }

    /// The name of its log, before the number of an event: `7`, `b3`, `w.default`, `g`.
    pub fn log(&self) -> String {
        match self {
            Self::Partition(PartitionKey { family: PartitionFamily::Flow, index }) => {
                index.to_string()
            }
            Self::Partition(PartitionKey { family, index }) => {
                format!("{}{index}", family.prefix())
            }
            Self::Namespace(namespace) => format!("w.{namespace}"),
            Self::Global => "g".to_owned(),
        }
    }
}

impl HomeFamily {
    /// The homes of this family in which things of a namespace may stand.
    pub fn homes(self, config: &PartitionConfig, namespace: &Namespace) -> Vec<Home> {
        match self {
            Self::Partitions(family) => config.homes(family).collect(),
            Self::Namespaces => vec![Home::Namespace(namespace.clone())],
            Self::Global => vec![Home::Global],
        }
    }
}

impl DocumentKind {
    pub const ALL: [Self; 8] = [
        Self::Flow,
        Self::Budget,
        Self::QuotaPolicy,
        Self::Worker,
        Self::Lane,
        Self::Namespace,
        Self::Key,
        Self::Bulk,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Budget => "budget",
            Self::QuotaPolicy => "quota_policy",
            Self::Worker => "worker",
            Self::Lane => "lane",
            Self::Namespace => "namespace",
            Self::Key => "key",
            Self::Bulk => "bulk",
        }
    }
}

impl DocumentId {
    pub fn flow(id: FlowId, config: &PartitionConfig) -> Self {
        Self::flow_in(id.partition(config), id)
    }

    /// A flow whose partition is known, such as that of one of its members.
    pub fn flow_in(partition: u16, id: FlowId) -> Self {
        let home = Home::partition(partition);
        Self { kind: DocumentKind::Flow, home, name: id.to_string().into() }
    }

    pub fn budget(id: BudgetId, config: &PartitionConfig) -> Self {
        let key = PartitionKey { family: PartitionFamily::Budget, index: id.partition(config) };
        let home = Home::Partition(key);
        Self { kind: DocumentKind::Budget, home, name: id.to_string().into() }
    }

    pub fn quota_policy(id: QuotaPolicyId, config: &PartitionConfig) -> Self {
        let key = PartitionKey { family: PartitionFamily::Quota, index: id.partition(config) };
        let home = Home::Partition(key);
        Self { kind: DocumentKind::QuotaPolicy, home, name: id.to_string().into() }
    }

    pub fn worker(namespace: &Namespace, instance: &WorkerInstanceId) -> Self {
        let home = Home::Namespace(namespace.clone());
        Self { kind: DocumentKind::Worker, home, name: instance.as_str().into() }
    }

    pub fn namespace(namespace: &Namespace) -> Self {
        let home = Home::Namespace(namespace.clone());
        Self { kind: DocumentKind::Namespace, home, name: namespace.as_str().into() }
    }

    pub fn key(id: &KeyId) -> Self {
        Self { kind: DocumentKind::Key, home: Home::Global, name: id.as_str().into() }
    }

    pub fn bulk(id: BulkId) -> Self {
        Self { kind: DocumentKind::Bulk, home: Home::Global, name: id.to_string().into() }
    }

    pub fn lane(namespace: &Namespace, lane: &LaneId) -> Self {
        let home = Home::Namespace(namespace.clone());
        Self { kind: DocumentKind::Lane, home, name: lane.as_str().into() }
    }
}

impl Subject {
    pub fn home(&self) -> Home {
        match self {
            Self::Execution(id) => Home::partition(id.partition()),
            Self::Document(id) => id.home.clone(),
        }
    }

    pub const fn execution_id(&self) -> Option<ExecutionId> {
        match self {
            Self::Execution(id) => Some(*id),
            Self::Document(_) => None,
        }
    }
}

impl From<ExecutionId> for Subject {
    fn from(id: ExecutionId) -> Self {
        Self::Execution(id)
    }
}

impl From<DocumentId> for Subject {
    fn from(id: DocumentId) -> Self {
        Self::Document(id)
    }
}

impl From<&DocumentId> for Subject {
    fn from(id: &DocumentId) -> Self {
        Self::Document(id.clone())
    }
}

impl PartialEq<ExecutionId> for Subject {
    fn eq(&self, id: &ExecutionId) -> bool {
        self.execution_id() == Some(*id)
    }
}

impl fmt::Display for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Partition(key) => fmt::Display::fmt(key, f),
            Self::Namespace(namespace) => write!(f, "{{w:{namespace}}}"),
            Self::Global => f.write_str("{g}"),
        }
    }
}

impl FromStr for Home {
    type Err = DocumentIdParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "{g}" {
            return Ok(Self::Global);
        }
        let namespace = text.strip_prefix("{w:").and_then(|rest| rest.strip_suffix('}'));
        match namespace {
            Some(namespace) => Namespace::new(namespace).map(Self::Namespace).ok(),
            None => text.parse().map(Self::Partition).ok(),
        }
        .ok_or(DocumentIdParseError)
    }
}

impl fmt::Display for DocumentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.kind.as_str(), self.home, self.name)
    }
}

impl FromStr for DocumentId {
    type Err = DocumentIdParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (kind, rest) = text.split_once(':')?;
            let kind = DocumentKind::ALL.into_iter().find(|known| known.as_str() == kind)?;
            let end = rest.find('}')?;
            let (home, name) = (rest.get(..=end)?.parse().ok()?, rest.get(end + 1..)?);
            Some(Self { kind, home, name: name.strip_prefix(':')?.into() })
        };
        parse().ok_or(DocumentIdParseError)
    }
}

/// The name that users know: an execution's whole id, a document's own name.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Execution(id) => fmt::Display::fmt(id, f),
            Self::Document(id) => f.write_str(&id.name),
        }
    }
}

impl fmt::Debug for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for DocumentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Execution(id) => fmt::Display::fmt(id, f),
            Self::Document(id) => fmt::Display::fmt(id, f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_knows_its_homes() {
        let config = PartitionConfig { flow: 3, budget: 2, quota: 1 };
        let shown = |family: HomeFamily| {
            let homes = family.homes(&config, &Namespace::default());
            assert!(homes.iter().all(|home| home.exists(&config) && home.family() == family));
            homes.iter().map(Home::to_string).collect::<Vec<_>>().join(" ")
        };
        let of = |family| shown(HomeFamily::Partitions(family));
        assert_eq!(of(PartitionFamily::Flow), "{fp:0} {fp:1} {fp:2}");
        assert_eq!(of(PartitionFamily::Budget), "{b:0} {b:1}");
        assert_eq!(of(PartitionFamily::Quota), "{q:0}");
        assert_eq!(shown(HomeFamily::Namespaces), "{w:default}");
        assert_eq!(shown(HomeFamily::Global), "{g}");
        assert!(!Home::partition(3).exists(&config));
    }

    #[test]
    fn a_home_is_known_by_its_log() {
        let key = |family| Home::Partition(PartitionKey { family, index: 12 });
        let homes = PartitionFamily::ALL.into_iter().map(key);
        for home in homes.chain([Home::Namespace(Namespace::default()), Home::Global]) {
            assert_eq!(Home::of_log(&home.log()), Some(home));
        }
        for bad in ["", "b", "x3", "fp3", "03", "b-1", "w.", "w.a b"] {
            assert_eq!(Home::of_log(bad), None, "{bad}");
        }
    }

    #[test]
    fn text_forms_are_one_to_one() {
        let config = PartitionConfig::default();
        let flow = DocumentId::flow(FlowId::mint(), &config);
        let lane = Home::Namespace(Namespace::default());
        let budget = DocumentId::budget(BudgetId::mint(), &config);
        let quota = DocumentId::quota_policy(QuotaPolicyId::mint(), &config);
        for id in [flow, budget, quota] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        let odd = LaneId::new("{a}:b c").unwrap();
        let odd = DocumentId::lane(&Namespace::default(), &odd);
        assert_eq!(odd.to_string(), "lane:{w:default}:{a}:b c");
        assert_eq!(odd.to_string().parse(), Ok(odd.clone()));
        for (home, text, log) in [
            (Home::partition(7), "{fp:7}", "7"),
            ("{b:3}".parse().unwrap(), "{b:3}", "b3"),
            (lane, "{w:default}", "w.default"),
            (Home::Global, "{g}", "g"),
        ] {
            assert_eq!((home.to_string(), home.log()), (text.to_owned(), log.to_owned()));
            assert_eq!(text.parse(), Ok(home));
        }
        for bad in ["", "flow", "flow:{fp:7}", "flow:{fp:x}:a", "lane", "x:{g}:a", "flow:g:a"] {
            assert_eq!(bad.parse::<DocumentId>(), Err(DocumentIdParseError), "{bad}");
        }
    }
}
