//! Signing: a token from a key and what it is bound to.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::hex::push_hex;
use super::{Keyring, Secret, TokenHash, WaitpointToken};
use crate::error::{Code, Refusal};
use crate::id::{ExecutionId, Kid, WaitpointId};
use crate::time::TimestampMs;

/// Sets these signatures apart from whatever else a secret may sign.
const DOMAIN: &str = "flowfabric.waitpoint.v1";

/// What a token is bound to: a token of one binding is refused for every other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    pub execution_id: ExecutionId,
    pub waitpoint_id: WaitpointId,
    /// 1 for a waitpoint's first token, one more for each that replaced it.
    pub issue: u32,
    pub expires_at: Option<TimestampMs>,
}

/// A token for the caller and the hash for the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    pub token: WaitpointToken,
    pub hash: TokenHash,
}

/// Signs with the current key.
pub fn sign(keyring: &Keyring, binding: &Binding) -> Signed {
    sign_with(keyring.current_secret(), keyring.current_kid(), binding)
}

/// Signs with the key that signed first, which gives the same token again. `token_expired` when
/// that key is not accepted any more: nobody could use such a token.
pub fn sign_again(
    keyring: &Keyring,
    kid: &Kid,
    binding: &Binding,
    now: TimestampMs,
) -> Result<Signed, Refusal> {
    let secret = keyring.accepts(kid, now).ok_or_else(|| {
        Refusal::new(Code::TokenExpired, "the key that signed the waitpoint token was rotated away")
    })?;
    Ok(sign_with(secret, kid, binding))
}

pub fn sign_with(secret: &Secret, kid: &Kid, binding: &Binding) -> Signed {
    let expiry = expiry(binding.expires_at).to_string();
    let parts = [
        DOMAIN,
        &binding.execution_id.to_string(),
        &binding.waitpoint_id.to_string(),
        &binding.issue.to_string(),
        &expiry,
    ];
    let signature = hmac(secret, &parts);
    // With the whole capacity at once, no copy is left behind by growing.
    let mut text = String::with_capacity(kid.len() + expiry.len() + 2 * signature.len() + 2);
    for part in [kid, ":", &expiry, ":"] {
        text.push_str(part);
    }
    push_hex(&mut text, &signature);
    let token = WaitpointToken::from_parts(kid.clone(), text);
    Signed { hash: token.hash(), token }
}

/// 0 stands for none, so an expiry at or before 1970 is written as the first instant after it:
/// passed all the same, and not endless.
fn expiry(expires_at: Option<TimestampMs>) -> i64 {
    expires_at.map_or(0, |at| at.0.max(1))
}

/// HMAC-SHA-256 over the parts, each after its length: no two lists of parts are one message.
fn hmac(secret: &Secret, parts: &[&str]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.bytes())
        .expect("a key of any length is a key of hmac");
    for part in parts {
        #[expect(clippy::cast_possible_truncation, reason = "ids and numbers are short texts")]
        let length = part.len() as u32;
        mac.update(&length.to_be_bytes());
        mac.update(part.as_bytes());
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(issue: u32, expires_at: Option<i64>) -> Binding {
        Binding {
            execution_id: "{fp:7}:0199aabb-0000-7000-8000-000000000001".parse().unwrap(),
            waitpoint_id: "0199aabb-0000-7000-8000-0000000000a1".parse().unwrap(),
            issue,
            expires_at: expires_at.map(TimestampMs),
        }
    }

    fn counting() -> Secret {
        Secret::from_bytes((0..32).collect()).unwrap()
    }

    /// Expected texts come from Python's `hmac` and `hashlib`.
    #[test]
    fn tokens_are_those_that_others_compute() {
        let cases = [
            (
                counting(),
                "k1",
                binding(1, Some(1_700_000_000_000)),
                "k1:1700000000000:63343df011f5a88ef494485405ec949af802769e1edbc9c5b505c728390bd322",
                "ea41abf39f157edb",
            ),
            (
                counting(),
                "k1",
                binding(2, None),
                "k1:0:1818b6cd4d0192151cc1110df84e0b345b6dd2281035c5950b7c2f1fe25cb776",
                "7e76fbea50ea3961",
            ),
            (
                Secret::from_bytes(vec![0xab; 128]).unwrap(),
                "2026_q1-b",
                binding(u32::MAX, Some(1_700_000_000_000)),
                "2026_q1-b:1700000000000:\
                 9e0eb57cc013e7edeadf1073057a34502318857306053496b71eded7eb5e0e85",
                "73ea612595bc703b",
            ),
        ];
        for (secret, kid, binding, text, fingerprint) in cases {
            let signed = sign_with(&secret, &Kid::new(kid).unwrap(), &binding);
            assert_eq!(signed.token.expose(), text);
            assert_eq!(signed.hash.fingerprint(), fingerprint);
            assert_eq!(WaitpointToken::parse(text), Ok(signed.token));
        }
    }

    #[test]
    fn an_expiry_in_the_past_never_means_none() {
        for at in [i64::MIN, -1, 0, 1] {
            let signed = sign_with(&counting(), &Kid::first(), &binding(1, Some(at)));
            assert!(signed.token.expose().starts_with("k1:1:"), "{at}");
        }
    }

    #[test]
    fn a_token_is_signed_again_while_its_key_is_accepted() {
        let now = TimestampMs(1_000);
        let first = Keyring::seeded(Kid::first(), counting());
        let other = Secret::from_bytes(vec![9; 32]).unwrap();
        let rotated = first.rotate(Kid::new("k2").unwrap(), other, 50, now).unwrap().unwrap();
        let signed = sign(&first, &binding(1, None));
        let again = |at| sign_again(&rotated, &Kid::first(), &binding(1, None), TimestampMs(at));
        assert_eq!(again(1_049), Ok(signed));
        assert_eq!(again(1_050).unwrap_err().code, Code::TokenExpired);
        assert_eq!(sign(&rotated, &binding(1, None)).token.kid().as_str(), "k2");
    }

    #[test]
    fn printing_what_was_signed_shows_no_signature() {
        let signed = sign_with(&counting(), &Kid::first(), &binding(2, None));
        assert_eq!(
            format!("{signed:?}"),
            "Signed { token: WaitpointToken(k1:redacted), hash: TokenHash(7e76fbea50ea3961) }"
        );
    }
}
