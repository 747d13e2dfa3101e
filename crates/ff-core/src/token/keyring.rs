//! The keys that sign tokens, and how one takes over from another.

use serde::{Deserialize, Serialize};

use super::Secret;
use crate::error::{Code, Refusal};
use crate::id::Kid;
use crate::limits::{self, GRACE_MAX_MS};
use crate::time::TimestampMs;

/// The stored record of all keys: one signs, those that it replaced are accepted for a while.
/// No two keys have the same kid. A change makes a new keyring with a higher revision, by which a
/// store tells whether somebody else was quicker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyring {
    revision: u64,
    current: Key,
    /// In the order of their retirement.
    retired: Vec<Retired>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Key {
    kid: Kid,
    secret: Secret,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Retired {
    key: Key,
    /// The first instant at which it is not accepted.
    accepted_until: TimestampMs,
}

/// What may be shown of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KidInfo {
    pub kid: Kid,
    /// None for the current kid.
    pub accepted_until: Option<TimestampMs>,
}

/// What seeding came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seeded {
    /// There was no keyring: this one is to be stored.
    Seeded(Keyring),
    /// The stored keyring has this key.
    AlreadySeeded,
}

/// How the configured secret stands to the stored keyring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reconciled {
    /// None is configured, or the stored one.
    Unchanged,
    /// The first key was rotated away, so the configured secret has no use: worth a warning.
    RotatedAway,
}

impl Keyring {
    /// The first keyring of a store.
    pub fn seeded(kid: Kid, secret: Secret) -> Self {
        Self { revision: 1, current: Key { kid, secret }, retired: Vec::new() }
    }

    /// The first keyring of a store, with the configured secret or else 32 random bytes.
    pub fn first<E: From<Refusal>>(
        configured: Option<&Secret>,
        random: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Self, E> {
        let secret = match configured {
            Some(secret) => secret.clone(),
            None => {
                let mut bytes = vec![0; limits::SECRET_BYTES_MIN];
                random(&mut bytes)?;
                Secret::from_bytes(bytes)?
            }
        };
        Ok(Self::seeded(Kid::first(), secret))
    }

    /// Fills an empty store. A store with keys gets no further one this way, only by rotation: that
    /// the key is there already is all that is accepted.
    pub fn seed(stored: Option<&Self>, kid: Kid, secret: Secret) -> Result<Seeded, Refusal> {
        let Some(stored) = stored else {
            return Ok(Seeded::Seeded(Self::seeded(kid, secret)));
        };
        match stored.find(&kid) {
            Some(known) if known.secret == secret => Ok(Seeded::AlreadySeeded),
            Some(_) => Err(other_secret(&kid)),
            None => Err(conflict(format!(
                "the keyring is seeded with kid {}; rotate to replace it",
                stored.current.kid
            ))),
        }
    }

    /// Makes `kid` the current one; the one before is accepted for `grace_ms` longer. None when it
    /// is the current one with this secret, so a rotation may be sent again.
    ///
    /// A retired kid that is still on record does not come back, not even after its time: the tokens
    /// that it signed would be accepted once more.
    pub fn rotate(
        &self,
        kid: Kid,
        secret: Secret,
        grace_ms: u64,
        now: TimestampMs,
    ) -> Result<Option<Self>, Refusal> {
        check_grace(grace_ms)?;
        match self.find(&kid) {
            Some(known) if known.secret != secret => return Err(other_secret(&kid)),
            Some(_) if self.current.kid == kid => return Ok(None),
            Some(_) => {
                return Err(conflict(format!(
                    "kid {kid} was rotated away; rotate to a kid that was not in use"
                )));
            }
            None => {}
        }
        let before = Retired { key: self.current.clone(), accepted_until: now.after(grace_ms) };
        let retired = self.retired.iter().filter(|retired| retired.is_accepted(now)).cloned();
        Ok(Some(Self {
            revision: self.revision.saturating_add(1),
            current: Key { kid, secret },
            retired: retired.chain([before]).collect(),
        }))
    }

    /// Without the retired kids that are not accepted any more. None when there are none.
    pub fn swept(&self, now: TimestampMs) -> Option<Self> {
        let mut swept = self.clone();
        swept.retired.retain(|retired| retired.is_accepted(now));
        swept.revision = swept.revision.saturating_add(1);
        (swept.retired.len() < self.retired.len()).then_some(swept)
    }

    /// Holds the secret of the configuration against the stored one at boot.
    pub fn reconcile(&self, configured: Option<&Secret>) -> Result<Reconciled, Refusal> {
        match configured {
            None => Ok(Reconciled::Unchanged),
            Some(_) if self.current.kid != Kid::first() => Ok(Reconciled::RotatedAway),
            Some(secret) if *secret == self.current.secret => Ok(Reconciled::Unchanged),
            Some(_) => Err(other_secret(&self.current.kid)),
        }
    }

    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn current_kid(&self) -> &Kid {
        &self.current.kid
    }

    pub(super) fn current_secret(&self) -> &Secret {
        &self.current.secret
    }

    /// The secret that tokens of this kid are checked with at `now`.
    pub fn accepts(&self, kid: &Kid, now: TimestampMs) -> Option<&Secret> {
        if self.current.kid == *kid {
            return Some(&self.current.secret);
        }
        let retired = self.retired.iter().find(|retired| retired.key.kid == *kid)?;
        retired.is_accepted(now).then_some(&retired.key.secret)
    }

    /// All kids on record, the current one first, then the youngest first.
    pub fn kids(&self) -> Vec<KidInfo> {
        let current = KidInfo { kid: self.current.kid.clone(), accepted_until: None };
        let retired = self.retired.iter().rev().map(|retired| KidInfo {
            kid: retired.key.kid.clone(),
            accepted_until: Some(retired.accepted_until),
        });
        [current].into_iter().chain(retired).collect()
    }

    fn find(&self, kid: &Kid) -> Option<&Key> {
        let retired = self.retired.iter().map(|retired| &retired.key);
        [&self.current].into_iter().chain(retired).find(|key| key.kid == *kid)
    }
}

impl Retired {
    fn is_accepted(&self, now: TimestampMs) -> bool {
        now < self.accepted_until
    }
}

fn check_grace(grace_ms: u64) -> Result<(), Refusal> {
    if grace_ms <= GRACE_MAX_MS {
        return Ok(());
    }
    Err(Refusal::at(
        Code::InvalidGraceMs,
        "grace_ms",
        format!("grace_ms is {grace_ms}, allowed is 0 to {GRACE_MAX_MS}"),
    ))
}

fn other_secret(kid: &Kid) -> Refusal {
    conflict(format!("kid {kid} has another secret"))
}

fn conflict(detail: String) -> Refusal {
    Refusal::new(Code::RotationConflict, detail)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kid(text: &str) -> Kid {
        Kid::new(text).unwrap()
    }

    fn secret(byte: u8) -> Secret {
        Secret::from_bytes(vec![byte; 32]).unwrap()
    }

    fn at(ms: i64) -> TimestampMs {
        TimestampMs(ms)
    }

    fn rotated(keyring: &Keyring, name: &str, byte: u8, grace_ms: u64, now: i64) -> Keyring {
        keyring.rotate(kid(name), secret(byte), grace_ms, at(now)).unwrap().unwrap()
    }

    /// k1 accepted until 1100, k2 until 2200, k3 current.
    fn three() -> Keyring {
        let first = Keyring::seeded(Kid::first(), secret(1));
        rotated(&rotated(&first, "k2", 2, 100, 1_000), "k3", 3, 1_150, 1_050)
    }

    fn listed(keyring: &Keyring) -> Vec<(String, Option<i64>)> {
        let pair = |info: KidInfo| (info.kid.to_string(), info.accepted_until.map(|at| at.0));
        keyring.kids().into_iter().map(pair).collect()
    }

    fn code<T: std::fmt::Debug>(result: Result<T, Refusal>) -> Code {
        result.unwrap_err().code
    }

    #[test]
    fn seeding_fills_an_empty_store_once() {
        let (stored, rotated) = (Keyring::seeded(kid("k1"), secret(1)), three());
        let seed = |stored, name, byte| Keyring::seed(stored, kid(name), secret(byte));
        assert_eq!(seed(None, "k1", 1), Ok(Seeded::Seeded(stored.clone())));
        assert_eq!(seed(Some(&stored), "k1", 1), Ok(Seeded::AlreadySeeded));
        assert_eq!(code(seed(Some(&stored), "k1", 2)), Code::RotationConflict);
        assert_eq!(code(seed(Some(&stored), "k2", 1)), Code::RotationConflict);
        assert_eq!(seed(Some(&rotated), "k1", 1), Ok(Seeded::AlreadySeeded), "retired");
        assert_eq!(code(seed(Some(&rotated), "k1", 2)), Code::RotationConflict);
    }

    #[test]
    fn rotation_makes_a_new_kid_current_and_retires_the_one_before() {
        let keyring = three();
        assert_eq!(keyring.current_kid(), &kid("k3"));
        assert_eq!(keyring.revision(), 3);
        assert_eq!(
            listed(&keyring),
            [
                ("k3".to_owned(), None),
                ("k2".to_owned(), Some(2_200)),
                ("k1".to_owned(), Some(1_100))
            ]
        );
    }

    #[test]
    fn rotation_table() {
        const MAX: u64 = 1 << 53;
        let keyring = three();
        // Kid, secret, grace, now, then the kids afterwards or the code.
        type Outcome = Result<Option<&'static str>, Code>;
        let cases: &[(&str, u8, u64, i64, Outcome)] = &[
            ("k3", 3, 0, 1_060, Ok(None)),
            ("k3", 3, MAX, 9_999, Ok(None)),
            ("k3", 4, 0, 1_060, Err(Code::RotationConflict)),
            ("k2", 2, 0, 1_060, Err(Code::RotationConflict)),
            ("k2", 9, 0, 1_060, Err(Code::RotationConflict)),
            ("k1", 1, 0, 5_000, Err(Code::RotationConflict)),
            ("k4", 4, 0, 1_060, Ok(Some("k4 k3 k2 k1"))),
            ("k4", 3, 0, 1_060, Ok(Some("k4 k3 k2 k1"))),
            ("k4", 4, 0, 1_099, Ok(Some("k4 k3 k2 k1"))),
            ("k4", 4, 0, 1_100, Ok(Some("k4 k3 k2"))),
            ("k4", 4, MAX, 2_200, Ok(Some("k4 k3"))),
            ("k4", 4, MAX + 1, 2_200, Err(Code::InvalidGraceMs)),
            ("k3", 3, MAX + 1, 2_200, Err(Code::InvalidGraceMs)),
        ];
        for &(name, byte, grace_ms, now, expected) in cases {
            let result = keyring.rotate(kid(name), secret(byte), grace_ms, at(now));
            let infos = result.as_ref().map(|rotated| rotated.as_ref().map(Keyring::kids));
            let kids = infos.map(|infos| infos.map(|infos| names(&infos)));
            let expected = expected.map(|kids| kids.map(str::to_owned));
            assert_eq!(kids.map_err(|refusal| refusal.code), expected, "{name} {byte} {now}");
            if let Ok(Some(rotated)) = result {
                assert_eq!(rotated.kids()[1].accepted_until, Some(at(now).after(grace_ms)));
                assert_eq!(rotated.revision(), keyring.revision() + 1);
            }
        }
    }

    fn names(infos: &[KidInfo]) -> String {
        infos.iter().map(|info| info.kid.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_kid_is_accepted_before_its_last_instant() {
        let keyring = three();
        for (name, byte, now, accepted) in [
            ("k3", 3, i64::MAX, true),
            ("k2", 2, 2_199, true),
            ("k2", 2, 2_200, false),
            ("k2", 2, 2_201, false),
            ("k1", 1, 1_099, true),
            ("k1", 1, 1_100, false),
            ("k9", 9, 0, false),
        ] {
            let expected = accepted.then(|| secret(byte));
            assert_eq!(keyring.accepts(&kid(name), at(now)), expected.as_ref(), "{name} {now}");
        }
    }

    #[test]
    fn without_grace_a_kid_is_refused_at_once() {
        let keyring = rotated(&Keyring::seeded(Kid::first(), secret(1)), "k2", 2, 0, 1_000);
        assert_eq!(keyring.accepts(&Kid::first(), at(1_000)), None);
    }

    #[test]
    fn sweeping_removes_what_is_not_accepted() {
        let keyring = three();
        assert_eq!(keyring.swept(at(1_099)), None);
        let swept = keyring.swept(at(1_100)).unwrap();
        assert_eq!(listed(&swept), [("k3".to_owned(), None), ("k2".to_owned(), Some(2_200))]);
        assert_eq!(swept.revision(), 4);
        assert_eq!(swept.swept(at(1_100)), None);
        assert_eq!(listed(&swept.swept(at(2_200)).unwrap()), [("k3".to_owned(), None)]);
    }

    #[test]
    fn the_configured_secret_is_held_against_the_first_key() {
        let first = Keyring::seeded(Kid::first(), secret(1));
        assert_eq!(first.reconcile(None), Ok(Reconciled::Unchanged));
        assert_eq!(first.reconcile(Some(&secret(1))), Ok(Reconciled::Unchanged));
        assert_eq!(code(first.reconcile(Some(&secret(2)))), Code::RotationConflict);
        let swept = three().swept(at(5_000)).unwrap();
        for keyring in [three(), swept] {
            assert_eq!(keyring.reconcile(None), Ok(Reconciled::Unchanged));
            for byte in [1, 2, 3] {
                let reconciled = keyring.reconcile(Some(&secret(byte)));
                assert_eq!(reconciled, Ok(Reconciled::RotatedAway));
            }
        }
    }

    #[test]
    fn printing_tells_no_secret() {
        let debug = format!("{:?} {:?}", three(), three().kids());
        for told in ["k1", "k2", "k3", "Secret(redacted)"] {
            assert!(debug.contains(told), "{debug}");
        }
        for byte in ["1, 1", "2, 2", "3, 3", "0101", "0202", "0303"] {
            assert!(!debug.contains(byte), "{debug}");
        }
        let refusal = three().rotate(kid("k3"), secret(0x41), 0, at(0)).unwrap_err();
        assert!(!format!("{refusal:?}").contains("AA"), "{refusal:?}");
    }

    proptest! {
        #[test]
        fn every_history_keeps_the_rules(
            steps in prop::collection::vec((0..6_u8, 0..6_u8, 0..50_u64, 0..40_u64), 0..40)
        ) {
            let mut keyring = Keyring::seeded(Kid::first(), secret(1));
            let mut now = at(0);
            for (name, byte, grace_ms, pause) in steps {
                now = now.after(pause);
                let before = keyring.clone();
                let new = kid(&format!("k{name}"));
                if let Ok(Some(next)) = keyring.rotate(new.clone(), secret(byte), grace_ms, now) {
                    prop_assert_eq!(next.revision(), before.revision() + 1);
                    prop_assert_eq!(next.rotate(new, secret(byte), grace_ms, now), Ok(None));
                    let kept = next.accepts(before.current_kid(), now);
                    prop_assert_eq!(kept.is_some(), grace_ms > 0);
                    keyring = next;
                }
                let mut kids: Vec<_> = keyring.kids().into_iter().map(|info| info.kid).collect();
                for kid in &kids {
                    let swept = keyring.swept(now).unwrap_or_else(|| keyring.clone());
                    prop_assert_eq!(swept.accepts(kid, now), keyring.accepts(kid, now));
                }
                kids.sort();
                kids.dedup();
                prop_assert_eq!(kids.len(), keyring.kids().len(), "a kid twice");
                let bytes = postcard::to_stdvec(&keyring).unwrap();
                prop_assert_eq!(postcard::from_bytes::<Keyring>(&bytes).unwrap(), keyring.clone());
            }
        }
    }
}
