//! Whose turn it is to do what one engine is enough for: a key for each scanner, which ends by itself.

use ff_core::error::EngineError;
use ff_core::turns::Turn;

use crate::client::slot_of;
use crate::reply;
use crate::store::Shared;

/// Whether it is the caller's turn.
pub(crate) async fn take(shared: &Shared, turn: &Turn) -> Result<bool, EngineError> {
    let key = shared.keys.turn(turn.of);
    let mut call = shared.function("ff_turn");
    call.arg(1).arg(&key);
    shared.begin(&mut call).arg(turn.by.to_string()).arg(turn.ms.max(1));
    let answer = shared.send_lightly(slot_of(key.as_bytes()), &call).await?;
    Ok(reply::number(&answer)? == 1)
}
