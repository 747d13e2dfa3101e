//! Whose turn it is to do what one engine is enough for: a key for each scanner, which ends by itself.

use ff_core::error::EngineError;
use ff_core::turns::Turn;
use redis::Value;

use crate::client::slot_of;
use crate::reply;
use crate::store::Shared;

/// One command for whoever does not have the turn.
pub(crate) async fn take(shared: &Shared, turn: &Turn) -> Result<bool, EngineError> {
    let (key, by) = (shared.keys.turn(turn.of), turn.by.to_string());
    let slot = slot_of(key.as_bytes());
    let mut set = redis::cmd("SET");
    set.arg(&key).arg(&by).arg("NX").arg("GET").arg("PX").arg(turn.ms.max(1));
    let holder = match shared.client.send(slot, &set).await? {
        Value::Nil => return Ok(true),
        holder => reply::text(holder)?,
    };
    if holder != by {
        return Ok(false);
    }
    let mut extend = redis::cmd("PEXPIRE");
    extend.arg(&key).arg(turn.ms.max(1));
    shared.client.send(slot, &extend).await?;
    Ok(true)
}
