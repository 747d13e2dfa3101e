//! Stored records: a version byte, then postcard.

use ff_core::error::EngineError;
use ff_core::event::Event;
use ff_core::state::{Attempt, Execution};
use ff_core::token::Keyring;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Raised whenever the form of a stored record changes.
const VERSION: u8 = 2;

fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, EngineError> {
    let mut bytes = Vec::with_capacity(256);
    bytes.push(VERSION);
    postcard::to_extend(value, bytes)
        .map_err(|error| EngineError::bug(format!("record does not encode: {error}")))
}

fn decode<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, EngineError> {
    match bytes.split_first() {
        Some((&VERSION, body)) => postcard::from_bytes(body)
            .map_err(|error| EngineError::corruption(format!("{what} does not decode: {error}"))),
        Some((version, _)) => Err(EngineError::corruption(format!(
            "{what} has record version {version}, this build reads {VERSION}"
        ))),
        None => Err(EngineError::corruption(format!("{what} is empty"))),
    }
}

pub fn encode_execution(execution: &Execution) -> Result<Vec<u8>, EngineError> {
    encode(execution)
}

pub fn decode_execution(bytes: &[u8]) -> Result<Execution, EngineError> {
    decode("execution", bytes)
}

pub fn encode_attempt(attempt: &Attempt) -> Result<Vec<u8>, EngineError> {
    encode(attempt)
}

pub fn decode_attempt(bytes: &[u8]) -> Result<Attempt, EngineError> {
    decode("attempt", bytes)
}

pub fn encode_keyring(keyring: &Keyring) -> Result<Vec<u8>, EngineError> {
    encode(keyring)
}

pub fn decode_keyring(bytes: &[u8]) -> Result<Keyring, EngineError> {
    decode("keyring", bytes)
}

pub fn encode_event(event: &Event) -> Result<Vec<u8>, EngineError> {
    encode(event)
}

pub fn decode_event(bytes: &[u8]) -> Result<Event, EngineError> {
    decode("event", bytes)
}
