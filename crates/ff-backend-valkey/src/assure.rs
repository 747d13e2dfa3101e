//! Answers that write nothing, with `durability=replica`.
//!
//! A repeated call is answered over a read, and what that finds may be on no replica yet: perhaps the
//! first call was told exactly that. `WAIT` speaks of what its own connection wrote, so something is
//! written behind all that was read, and replicas are waited for as with every other write.

use ff_core::error::EngineError;
use ff_core::id::Home;

use crate::options::Durability;
use crate::store::Shared;

/// Returns when all that a home holds is as durable as an acknowledgement promises.
pub(crate) async fn assure(shared: &Shared, home: &Home) -> Result<(), EngineError> {
    if shared.options.durability != Durability::Replica {
        return Ok(());
    }
    let mut call = shared.function("ff_assure");
    call.arg(1).arg(shared.keys.index_of(home, "assured"));
    shared.begin(&mut call);
    shared.send_home(home, &call).await.map(|_| ())
}
