//! Stored records: a version byte, then postcard.

use ff_core::error::EngineError;
use ff_core::event::Event;
use ff_core::state::{Attempt, Document, Execution};
use ff_core::token::Keyring;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Each is raised whenever the form of the record changes.
const EXECUTION: u8 = 10;
const DOCUMENT: u8 = 7;
const ATTEMPT: u8 = 4;
const KEYRING: u8 = 2;
const EVENT: u8 = 3;

fn encode<T: Serialize>(version: u8, value: &T) -> Result<Vec<u8>, EngineError> {
    let mut bytes = Vec::with_capacity(256);
    bytes.push(version);
    postcard::to_extend(value, bytes)
        .map_err(|error| EngineError::bug(format!("record does not encode: {error}")))
}

fn decode<T: DeserializeOwned>(what: &str, known: u8, bytes: &[u8]) -> Result<T, EngineError> {
    match bytes.split_first() {
        Some((&version, body)) if version == known => postcard::from_bytes(body)
            .map_err(|error| EngineError::corruption(format!("{what} does not decode: {error}"))),
        Some((version, _)) => Err(EngineError::corruption(format!(
            "{what} has record version {version}, this build reads {known}"
        ))),
        None => Err(EngineError::corruption(format!("{what} is empty"))),
    }
}

pub fn encode_execution(execution: &Execution) -> Result<Vec<u8>, EngineError> {
    encode(EXECUTION, execution)
}

pub fn decode_execution(bytes: &[u8]) -> Result<Execution, EngineError> {
    decode("execution", EXECUTION, bytes)
}

pub fn encode_document(document: &Document) -> Result<Vec<u8>, EngineError> {
    encode(DOCUMENT, document)
}

pub fn decode_document(bytes: &[u8]) -> Result<Document, EngineError> {
    decode("document", DOCUMENT, bytes)
}

pub fn encode_attempt(attempt: &Attempt) -> Result<Vec<u8>, EngineError> {
    encode(ATTEMPT, attempt)
}

pub fn decode_attempt(bytes: &[u8]) -> Result<Attempt, EngineError> {
    decode("attempt", ATTEMPT, bytes)
}

pub fn encode_keyring(keyring: &Keyring) -> Result<Vec<u8>, EngineError> {
    encode(KEYRING, keyring)
}

pub fn decode_keyring(bytes: &[u8]) -> Result<Keyring, EngineError> {
    decode("keyring", KEYRING, bytes)
}

pub fn encode_event(event: &Event) -> Result<Vec<u8>, EngineError> {
    encode(EVENT, event)
}

pub fn decode_event(bytes: &[u8]) -> Result<Event, EngineError> {
    decode("event", EVENT, bytes)
}
