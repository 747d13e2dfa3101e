//! A look at the function library of every server of a store, which changes nothing.

use std::sync::Arc;

use super::address::Address;
use super::connector::Connector;
use super::establish::{Libraries, patiently};
use super::ground::Ground;
use super::load::{self, Act};
use super::patience::Patience;
use crate::error::OpenError;
use crate::library::Library;
use crate::options::ValkeyOptions;

/// The function library that the servers of a store have, beside that of this build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibraryVersion {
    /// Call version of the library, the lowest of all primaries; none: one of them has no library.
    pub found: Option<u32>,
    /// Call version of this build's.
    pub known: u32,
    /// Whether opening the store would load the library of this build somewhere: there is none, an
    /// older one, or one of the same call version with another content.
    pub is_old: bool,
}

/// Refuses what an opening would refuse.
pub(crate) async fn inspect(
    options: &ValkeyOptions,
    library: Library,
) -> Result<LibraryVersion, OpenError> {
    options.check()?;
    let (connector, _all_gone) = Connector::new(options)?;
    let ground = Ground::new(options, Arc::new(library), connector);
    let seed = Address::new(&options.host, options.port);
    let survey =
        patiently(&ground, (&seed, options), Libraries::Look, &mut Patience::new(options)).await;
    ground.close();
    let (survey, ours) = (survey?, &ground.library);
    let mut version =
        LibraryVersion { found: Some(u32::MAX), known: ours.call_version, is_old: false };
    for found in &survey.libraries {
        match load::act(ours, found.as_ref()) {
            Act::Use => {}
            Act::Load | Act::Replace => version.is_old = true,
            Act::Refuse => return Err(load::too_new(ours, found.as_ref())),
        }
        let lowest = version.found.zip(found.as_ref());
        version.found = lowest.map(|(lowest, found)| lowest.min(found.call_version));
    }
    Ok(version)
}
