//! Things that an idempotency key names: equal keys of a namespace make equal ids.

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{BudgetId, BulkId, FlowId, IdempotencyKey, Namespace, QuotaPolicyId};

fn named(domain: &str, namespace: &Namespace, key: &IdempotencyKey) -> Uuid {
    let mut hash = Sha256::new();
    for part in [domain, namespace.as_str(), key.as_str()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let digest: [u8; 32] = hash.finalize().into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

macro_rules! for_key {
    ($($id:ident $domain:literal;)*) => {$(
        impl $id {
            /// The one that an idempotency key names.
            pub fn for_key(namespace: &Namespace, key: &IdempotencyKey) -> Self {
                Self::new(named($domain, namespace, key))
            }
        }
    )*};
}

for_key! {
    FlowId "flowfabric.flow.v1";
    BudgetId "flowfabric.budget.v1";
    QuotaPolicyId "flowfabric.quota.v1";
    BulkId "flowfabric.bulk.v1";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_one_thing_of_its_kind_and_namespace() {
        let key = |text| IdempotencyKey::new(text).unwrap();
        let id = |namespace: &Namespace, text| FlowId::for_key(namespace, &key(text));
        let (here, there) = (Namespace::default(), Namespace::new("there").unwrap());
        assert_eq!(id(&here, "a"), id(&here, "a"));
        assert_ne!(id(&here, "a"), id(&here, "b"));
        assert_ne!(id(&here, "a"), id(&there, "a"));
        assert_ne!(id(&here, "a").uuid(), BudgetId::for_key(&here, &key("a")).uuid());
    }
}
