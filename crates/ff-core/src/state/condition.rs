//! What must be heard before a suspended execution goes on.
//!
//! A condition is a tree; its leaves count. [`Tally`] holds what each leaf has counted so far, so
//! that a signal is weighed when it comes and never again.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::check::check_range;
use crate::error::{Code, Refusal};
use crate::id::{SignalId, SignalName, WaitpointKey};
use crate::limits;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Condition {
    /// The first matching signal on one waitpoint.
    Single {
        waitpoint: WaitpointKey,
        name: Matcher,
    },
    /// Names on one waitpoint.
    SignalSet {
        waitpoint: WaitpointKey,
        names: Vec<SignalName>,
        mode: SetMode,
    },
    /// Only an operator resumes it.
    OperatorOnly,
    /// Only time ends it.
    TimeoutOnly,
    AllOf(Vec<Self>),
    Count(Count),
}

/// Which signals a leaf listens to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Matcher {
    #[default]
    Wildcard,
    ByName(SignalName),
}

/// How many of its names a set must hear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SetMode {
    Any,
    All,
    /// So many different ones.
    Count(u32),
}

/// So many different things, over several waitpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    pub n: u32,
    pub kind: CountKind,
    pub name: Matcher,
    pub waitpoints: Vec<WaitpointKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CountKind {
    DistinctWaitpoints,
    DistinctSignals,
    /// Source type and identity together.
    DistinctSources,
}

/// What a condition hears of a signal.
#[derive(Debug, Clone, Copy)]
pub struct Heard<'a> {
    pub id: SignalId,
    pub waitpoint: &'a WaitpointKey,
    pub name: &'a SignalName,
    pub source_type: &'a str,
    pub source_identity: &'a str,
}

/// What a signal was to a condition, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// No leaf names its waitpoint.
    NotNamed,
    /// Leaves do, but none listens to its name.
    NotMatched,
    /// All that it says was heard before.
    NothingNew,
    Counted,
}

/// What each leaf has counted, in the order of the leaves.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally(Vec<Vec<Mark>>);

/// One different thing that a leaf has heard.
type Mark = [u8; 16];

impl Matcher {
    fn matches(&self, name: &SignalName) -> bool {
        match self {
            Self::Wildcard => true,
            Self::ByName(wanted) => wanted == name,
        }
    }
}

impl Condition {
    /// Refuses a condition that could never be, or is too large.
    pub fn check(&self) -> Result<(), Refusal> {
        let nodes = self.check_node(0)?;
        let checked = check_range("condition", nodes as u64, 1, limits::CONDITION_NODES as u64);
        checked.map_err(|refusal| Refusal { field: None, ..refusal })
    }

    /// Checks one node inside so many others and gives the number of nodes in it.
    fn check_node(&self, depth: usize) -> Result<usize, Refusal> {
        let refuse = |detail: &str| Err(Refusal::new(Code::InvalidInput, detail.to_owned()));
        match self {
            Self::Single { .. } | Self::OperatorOnly | Self::TimeoutOnly => Ok(1),
            Self::SignalSet { names, mode, .. } => {
                let checked = check_set(names, *mode);
                checked.map(|()| 1).map_err(|refusal| refusal.under("signal_set"))
            }
            Self::Count(count) => {
                count.check().map(|()| 1).map_err(|refusal| refusal.under("count"))
            }
            Self::AllOf(members) if members.is_empty() => {
                refuse("allof_empty_members: name at least one member")
            }
            Self::AllOf(_) if depth >= limits::CONDITION_DEPTH => {
                let most = limits::CONDITION_DEPTH;
                refuse(&format!("depth_exceeded: nested deeper than {most}"))
            }
            Self::AllOf(members) => {
                check_width("all_of", members.len())?;
                let nodes = members.iter().enumerate().map(|(number, member)| {
                    let checked = member.check_node(depth + 1);
                    checked.map_err(|refusal| refusal.under(number).under("all_of"))
                });
                nodes.sum::<Result<usize, Refusal>>().map(|nodes| nodes + 1)
            }
        }
    }

    /// Whether signals have no say at all.
    pub fn is_deaf(&self) -> bool {
        match self {
            Self::OperatorOnly | Self::TimeoutOnly => true,
            Self::AllOf(members) => members.iter().all(Self::is_deaf),
            _ => false,
        }
    }

    /// Whether a part of it waits for time alone.
    pub fn needs_timeout(&self) -> bool {
        match self {
            Self::TimeoutOnly => true,
            Self::AllOf(members) => members.iter().any(Self::needs_timeout),
            _ => false,
        }
    }

    /// The waitpoints that it names; one may come several times.
    pub fn waitpoints(&self) -> Vec<&WaitpointKey> {
        self.leaves().into_iter().flat_map(Self::own_waitpoints).collect()
    }

    /// Counts a signal in every leaf that listens to it.
    pub fn weigh(&self, tally: &mut Tally, signal: &Heard<'_>) -> Weight {
        let leaves = self.leaves();
        tally.0.resize(leaves.len(), Vec::new());
        let weights =
            leaves.iter().zip(&mut tally.0).map(|(leaf, marks)| leaf.count(marks, signal));
        weights.max().unwrap_or(Weight::NotNamed)
    }

    pub fn is_met(&self, tally: &Tally) -> bool {
        let leaves = self.leaves();
        leaves.iter().enumerate().all(|(at, leaf)| {
            let counted = tally.0.get(at).map_or(0, Vec::len);
            leaf.wanted().is_some_and(|wanted| counted >= wanted)
        })
    }

    /// What would still count on a waitpoint; nothing where no signal lets the execution go on.
    pub fn lacks(&self, tally: &Tally, waitpoint: &WaitpointKey) -> Vec<Matcher> {
        let leaves = self.leaves();
        let mut lacking: Vec<Matcher> = Vec::new();
        for (at, leaf) in leaves.iter().enumerate() {
            let Some(wanted) = leaf.wanted() else { return Vec::new() };
            let marks = tally.0.get(at).map_or(&[][..], Vec::as_slice);
            if marks.len() < wanted && leaf.own_waitpoints().contains(waitpoint) {
                for name in leaf.not_heard(marks, waitpoint) {
                    if !lacking.contains(&name) {
                        lacking.push(name);
                    }
                }
            }
        }
        lacking
    }

    /// What a leaf has not heard on one of its waitpoints.
    fn not_heard(&self, marks: &[Mark], waitpoint: &WaitpointKey) -> Vec<Matcher> {
        match self {
            Self::Single { name, .. } => vec![name.clone()],
            Self::SignalSet { names, .. } => {
                let missing = names.iter().filter(|name| !marks.contains(&digest(&[name])));
                missing.cloned().map(Matcher::ByName).collect()
            }
            Self::Count(Count { kind: CountKind::DistinctWaitpoints, .. })
                if marks.contains(&digest(&[waitpoint])) =>
            {
                Vec::new()
            }
            Self::Count(count) => vec![count.name.clone()],
            Self::OperatorOnly | Self::TimeoutOnly | Self::AllOf(_) => Vec::new(),
        }
    }

    /// Every part that is not made of others. All of them must be met: `AllOf` is the only way to
    /// put parts together.
    fn leaves(&self) -> Vec<&Self> {
        match self {
            Self::AllOf(members) => members.iter().flat_map(Self::leaves).collect(),
            leaf => vec![leaf],
        }
    }

    fn own_waitpoints(&self) -> &[WaitpointKey] {
        match self {
            Self::Single { waitpoint, .. } | Self::SignalSet { waitpoint, .. } => {
                std::slice::from_ref(waitpoint)
            }
            Self::Count(count) => &count.waitpoints,
            Self::OperatorOnly | Self::TimeoutOnly | Self::AllOf(_) => &[],
        }
    }

    /// How many different things a leaf wants; none: nothing that a signal says is enough.
    fn wanted(&self) -> Option<usize> {
        match self {
            Self::Single { .. } | Self::SignalSet { mode: SetMode::Any, .. } => Some(1),
            Self::SignalSet { mode: SetMode::Count(n), .. } => Some(*n as usize),
            Self::SignalSet { names, mode: SetMode::All, .. } => {
                let mut names: Vec<_> = names.iter().collect();
                names.sort_unstable();
                names.dedup();
                Some(names.len())
            }
            Self::Count(count) => Some(count.n as usize),
            Self::OperatorOnly | Self::TimeoutOnly | Self::AllOf(_) => None,
        }
    }

    /// What a leaf sees of a signal that it listens to; none when the name does not match.
    fn mark(&self, signal: &Heard<'_>) -> Option<Mark> {
        match self {
            Self::Single { name, .. } => name.matches(signal.name).then_some([0; 16]),
            Self::SignalSet { names, .. } => {
                names.contains(signal.name).then(|| digest(&[signal.name.as_str()]))
            }
            Self::Count(count) => count.name.matches(signal.name).then(|| match count.kind {
                CountKind::DistinctWaitpoints => digest(&[signal.waitpoint.as_str()]),
                CountKind::DistinctSignals => *signal.id.uuid().as_bytes(),
                CountKind::DistinctSources => digest(&[signal.source_type, signal.source_identity]),
            }),
            Self::OperatorOnly | Self::TimeoutOnly | Self::AllOf(_) => None,
        }
    }

    fn count(&self, marks: &mut Vec<Mark>, signal: &Heard<'_>) -> Weight {
        if !self.own_waitpoints().contains(signal.waitpoint) {
            return Weight::NotNamed;
        }
        let Some(mark) = self.mark(signal) else { return Weight::NotMatched };
        if marks.contains(&mark) || self.wanted().is_some_and(|wanted| marks.len() >= wanted) {
            return Weight::NothingNew;
        }
        marks.push(mark);
        Weight::Counted
    }
}

impl Count {
    fn check(&self) -> Result<(), Refusal> {
        let refuse = |field, detail: &str| Err(Refusal::invalid(field, detail));
        check_width("waitpoints", self.waitpoints.len())?;
        let mut keys: Vec<_> = self.waitpoints.iter().collect();
        keys.sort_unstable();
        keys.dedup();
        if self.n == 0 {
            refuse("n", "count_n_zero: count at least one")
        } else if keys.is_empty() {
            refuse("waitpoints", "count_waitpoints_empty: name at least one waitpoint")
        } else if self.kind == CountKind::DistinctWaitpoints && self.n as usize > keys.len() {
            refuse("n", "count_exceeds_waitpoint_set: it counts more waitpoints than it names")
        } else {
            check_range("n", self.n.into(), 1, limits::SIGNALS.into())
        }
    }
}

fn check_set(names: &[SignalName], mode: SetMode) -> Result<(), Refusal> {
    check_width("names", names.len())?;
    match mode {
        _ if names.is_empty() => {
            Err(Refusal::invalid("names", "signal_set_empty: name at least one signal"))
        }
        SetMode::Count(0) => Err(Refusal::invalid("mode", "count_n_zero: count at least one")),
        _ => Ok(()),
    }
}

fn check_width(field: &'static str, width: usize) -> Result<(), Refusal> {
    check_range(field, width as u64, 0, limits::CONDITION_WIDTH as u64)
}

/// Texts as a mark; the lengths keep parts apart.
fn digest(parts: &[&str]) -> Mark {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut mark = [0; 16];
    mark.copy_from_slice(&hash.finalize()[..16]);
    mark
}
