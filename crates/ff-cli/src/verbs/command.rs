//! All verbs by name.

use std::process::ExitCode;

use clap::Subcommand;

use super::approve::Approve;
use super::events::Events;
use super::fleet::{Key, Lane, Worker};
use super::flow::Flow;
use super::limit::{Budget, Quota};
use super::logs::Logs;
use super::manage::{Cancel, Delete, Hold, Priority, Release, Replay, Resume, Revoke, Tag};
use super::read::{Explain, Get, Ls, ResultOf};
use super::signal::{Secret, Signal, Waitpoint};
use super::submit::Submit;
use super::watch::Watch;
use crate::session::Session;

/// What is asked of a server or a store.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Submit(Box<Submit>),
    Get(Get),
    Ls(Ls),
    Watch(Watch),
    Result(ResultOf),
    Explain(Explain),
    Events(Events),
    #[command(visible_alias = "tail")]
    Logs(Logs),
    Cancel(Cancel),
    Replay(Replay),
    Hold(Hold),
    Release(Release),
    Resume(Resume),
    Priority(Priority),
    Tag(Tag),
    Revoke(Revoke),
    Delete(Delete),
    Signal(Signal),
    Approve(Approve),
    #[command(subcommand)]
    Waitpoint(Waitpoint),
    #[command(subcommand)]
    Secret(Secret),
    #[command(subcommand)]
    Flow(Flow),
    #[command(subcommand)]
    Budget(Budget),
    #[command(subcommand)]
    Quota(Quota),
    #[command(subcommand)]
    Lane(Lane),
    #[command(subcommand)]
    Worker(Worker),
    #[command(subcommand)]
    Key(Key),
}

impl Verb {
    /// Whether it puts something into a store, and so may be the first to open one. All others ask for
    /// what is there.
    pub(crate) const fn makes(&self) -> bool {
        match self {
            Self::Submit(_) => true,
            Self::Flow(verb) => matches!(verb, Flow::Submit { .. }),
            Self::Budget(verb) => matches!(verb, Budget::Create { .. }),
            Self::Quota(verb) => matches!(verb, Quota::Create { .. }),
            Self::Lane(verb) => matches!(verb, Lane::Set { .. }),
            Self::Key(verb) => matches!(verb, Key::Create { .. }),
            Self::Secret(verb) => matches!(verb, Secret::Rotate { .. }),
            _ => false,
        }
    }

    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<ExitCode> {
        let act = match self {
            Self::Submit(verb) => return verb.run(session).await,
            Self::Watch(verb) => return verb.run(session).await,
            Self::Result(verb) => return verb.run(session).await,
            Self::Explain(verb) => return verb.run(session).await,
            Self::Events(verb) => return verb.run(session).await,
            Self::Logs(verb) => return verb.run(session).await,
            Self::Cancel(verb) => return verb.run(session).await,
            Self::Replay(verb) => return verb.run(session).await,
            Self::Approve(verb) => return verb.run(session).await,
            Self::Flow(verb) => return verb.run(session).await,
            Self::Key(verb) => return verb.run(session).await,
            Self::Get(verb) => verb.act(),
            Self::Ls(verb) => verb.act(),
            Self::Hold(verb) => verb.act(),
            Self::Release(verb) => verb.act(),
            Self::Resume(verb) => verb.act(),
            Self::Priority(verb) => verb.act(),
            Self::Tag(verb) => verb.act(),
            Self::Revoke(verb) => verb.act(),
            Self::Delete(verb) => verb.act(),
            Self::Signal(verb) => verb.act(),
            Self::Waitpoint(verb) => verb.act(),
            Self::Secret(verb) => verb.act(),
            Self::Budget(verb) => verb.act(),
            Self::Quota(verb) => verb.act(),
            Self::Lane(verb) => verb.act(),
            Self::Worker(verb) => verb.act(),
        };
        session.perform(act?).await
    }
}
