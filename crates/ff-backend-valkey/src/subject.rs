//! The short form of what an index or the log is about: the 16 bytes of an execution's uuid; of a
//! document one byte for its kind, then 16 for the uuid that is its name, or any other name with at
//! least 17 bytes. So the length tells them apart.

use ff_core::id::{DocumentId, DocumentKind, ExecutionId, Home, Subject};
use uuid::Uuid;

const EXECUTION_BYTES: usize = 16;
const BY_UUID_BYTES: usize = 17;

/// Shorter names are filled up with zeros, which no name holds.
const NAME_BYTES_LEAST: usize = 17;

/// The number under which a kind is kept; never given to another.
pub(crate) const fn code(kind: DocumentKind) -> u8 {
    match kind {
        DocumentKind::Flow => 1,
        DocumentKind::Budget => 2,
        DocumentKind::QuotaPolicy => 3,
        DocumentKind::Worker => 4,
        DocumentKind::Lane => 5,
        DocumentKind::Namespace => 6,
        DocumentKind::Key => 7,
        DocumentKind::Bulk => 8,
    }
}

pub(crate) fn kind_of(wanted: u8) -> Option<DocumentKind> {
    DocumentKind::ALL.into_iter().find(|kind| code(*kind) == wanted)
}

/// The uuid that is the name of a document; none when its name is another.
pub(crate) fn uuid_of(id: &DocumentId) -> Option<Uuid> {
    let uuid = Uuid::try_parse(&id.name).ok()?;
    let mut buffer = Uuid::encode_buffer();
    (*uuid.hyphenated().encode_lower(&mut buffer) == *id.name).then_some(uuid)
}

pub(crate) fn short(subject: &Subject) -> Vec<u8> {
    match subject {
        Subject::Execution(id) => id.uuid().as_bytes().to_vec(),
        Subject::Document(id) => short_document(id),
    }
}

pub(crate) fn short_document(id: &DocumentId) -> Vec<u8> {
    let mut bytes = vec![code(id.kind)];
    match uuid_of(id) {
        Some(uuid) => bytes.extend_from_slice(uuid.as_bytes()),
        None => {
            bytes.extend_from_slice(id.name.as_bytes());
            bytes.resize(bytes.len().max(1 + NAME_BYTES_LEAST), 0);
        }
    }
    bytes
}

/// Reads the short form of something in a home.
pub(crate) fn parse(home: &Home, short: &[u8]) -> Option<Subject> {
    if short.len() == EXECUTION_BYTES {
        let partition = home.flow_partition()?;
        return Some(ExecutionId::new(partition, Uuid::from_slice(short).ok()?).into());
    }
    let (code, name) = short.split_first()?;
    let name = if short.len() == BY_UUID_BYTES {
        Uuid::from_slice(name).ok()?.to_string()
    } else {
        std::str::from_utf8(name).ok()?.trim_end_matches('\0').to_owned()
    };
    let id = DocumentId { kind: kind_of(*code)?, home: home.clone(), name: name.into() };
    Some(id.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_are_one_to_one() {
        let home = Home::partition(7);
        let execution = Subject::from(ExecutionId::new(7, Uuid::from_u128(42)));
        assert_eq!(short(&execution).len(), EXECUTION_BYTES);
        assert_eq!(parse(&home, &short(&execution)), Some(execution));
        let by_uuid = Uuid::from_u128(42).to_string();
        for name in ["a", "fifteen letters", "sixteen letters!", &by_uuid, &"x".repeat(64)] {
            let kind = DocumentKind::Flow;
            let id = DocumentId { kind, home: home.clone(), name: name.into() };
            assert_eq!(parse(&home, &short_document(&id)), Some(id.into()), "{name}");
        }
        assert_eq!(parse(&home, b""), None);
        assert_eq!(parse(&home, &[0; 17]), None);
    }
}
