//! The function library: put together from the files in `lua/`, with a hash of its content.

use ff_core::event::EventKind;
use ff_core::limits;
use ff_core::state::{MemberCounts, PublicState};
use sha1::{Digest as _, Sha1};

use crate::options::{LibraryClock, ValkeyOptions};
use crate::{item, log, record};

/// Raised whenever a function's arguments, replies or stored forms change. A library serves its own
/// and the one before. Before the first release forms change and it stays 1: builds that differ need
/// servers of their own.
const CALL_VERSION: u32 = 1;

/// What is loaded into a server.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) name: &'static str,
    pub(crate) code: String,
    pub(crate) hash: String,
    pub(crate) call_version: u32,
}

const CLOCK: &str = include_str!("../lua/lib/clock.lua");
const CLOCK_SETTABLE: &str = include_str!("../lua/lib/clock_settable.lua");

/// In the order in which they use each other.
const HELPERS: [&str; 7] = [
    include_str!("../lua/lib/call.lua"),
    include_str!("../lua/lib/lists.lua"),
    include_str!("../lua/lib/keys.lua"),
    include_str!("../lua/lib/record.lua"),
    include_str!("../lua/lib/log.lua"),
    include_str!("../lua/lib/tally.lua"),
    include_str!("../lua/lib/wake.lua"),
];

const FUNCTIONS: [&str; 22] = [
    include_str!("../lua/version.lua"),
    include_str!("../lua/partitions.lua"),
    include_str!("../lua/keyring.lua"),
    include_str!("../lua/commit.lua"),
    include_str!("../lua/stage.lua"),
    include_str!("../lua/claim.lua"),
    include_str!("../lua/peek.lua"),
    include_str!("../lua/lane.lua"),
    include_str!("../lua/routes.lua"),
    include_str!("../lua/homes.lua"),
    include_str!("../lua/due.lua"),
    include_str!("../lua/read.lua"),
    include_str!("../lua/history.lua"),
    include_str!("../lua/frames.lua"),
    include_str!("../lua/created.lua"),
    include_str!("../lua/listed.lua"),
    include_str!("../lua/events.lua"),
    include_str!("../lua/trim.lua"),
    include_str!("../lua/sweep.lua"),
    include_str!("../lua/recount.lua"),
    include_str!("../lua/turn.lua"),
    include_str!("../lua/assure.lua"),
];

impl Library {
    pub(crate) fn assemble(options: &ValkeyOptions) -> Self {
        let name = "flowfabric";
        let call_version = CALL_VERSION + options.versions_ahead;
        let clock = match options.clock {
            LibraryClock::Server => CLOCK,
            LibraryClock::Settable => CLOCK_SETTABLE,
        };
        let parts = std::iter::once(clock).chain(HELPERS).chain(FUNCTIONS);
        let body = parts.collect::<Vec<_>>().join("\n");
        let body = body
            .replace("@CALL_VERSION@", &call_version.to_string())
            .replace("@EVENTS_OF_A_CALL@", &log::NUMBERS.to_string())
            .replace("@STOPPED@", item::STOPPED)
            .replace("@UNDER@", item::UNDER)
            .replace("@SET_ASIDE_MS@", &limits::SLOT_PENDING_MS.to_string())
            .replace("@STARTED@", &MemberCounts::STARTED.to_string())
            .replace("@WAITING@", &field_of(PublicState::Waiting))
            .replace("@RESUMABLE@", &field_of(PublicState::Resumable))
            .replace("@ACTIVE@", &field_of(PublicState::Active))
            .replace("@INLINE_BYTES@", &record::INLINE_BYTES.to_string())
            .replace("@MARKED_BYTES@", &log::MARKED_BYTES.to_string())
            .replace("@THE_ONE_BEFORE@", &log::THE_ONE_BEFORE.to_string())
            .replace("@EVENT_CLAIMED@", &format!("\\{}", EventKind::Claimed.code()));
        let hash: String =
            Sha1::digest(body.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        let code = format!("#!lua name={name}\n{}", body.replace("@HASH@", &hash));
        Self { name, code, hash, call_version }
    }
}

/// The field that counts the members of a flow in a state.
fn field_of(state: PublicState) -> String {
    (state as u8).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(clock: LibraryClock) -> ValkeyOptions {
        ValkeyOptions { clock, ..ValkeyOptions::new("h", 1) }
    }

    #[test]
    fn nothing_is_left_to_fill_in() {
        for clock in [LibraryClock::Server, LibraryClock::Settable] {
            let library = Library::assemble(&with(clock));
            assert!(library.code.starts_with("#!lua name=flowfabric\n"));
            assert!(!library.code.contains('@'), "a placeholder was not replaced");
            assert!(library.code.contains(&library.hash));
        }
    }

    #[test]
    fn the_settable_clock_makes_another_library() {
        let hash = |clock| Library::assemble(&with(clock)).hash;
        assert_ne!(hash(LibraryClock::Server), hash(LibraryClock::Settable));
    }
}
