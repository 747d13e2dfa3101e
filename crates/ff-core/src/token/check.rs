//! Checking a token that a caller shows.

use serde::{Deserialize, Serialize};
use subtle::{Choice, ConstantTimeEq as _};
use uuid::Uuid;

use super::{Binding, Keyring, TokenHash, WaitpointToken, sign_with};
use crate::error::{Code, Refusal};
use crate::id::{ExecutionId, Kid, WaitpointId};
use crate::time::TimestampMs;

/// What a waitpoint's record keeps of its token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub kid: Kid,
    pub issue: u32,
    pub expires_at: Option<TimestampMs>,
    pub hash: TokenHash,
}

/// Whether the token opens the waitpoint at `now`: `invalid_token` if it is not the waitpoint's
/// token or its key is not accepted, `token_expired` if it is but its time is over.
///
/// The same work is done whatever is wrong, so the time that an answer takes tells nothing.
pub fn check(
    keyring: &Keyring,
    token: &WaitpointToken,
    stored: &Stamp,
    execution_id: ExecutionId,
    waitpoint_id: WaitpointId,
    now: TimestampMs,
) -> Result<(), Refusal> {
    let genuine = genuine(keyring, token, stored, execution_id, waitpoint_id, now);
    answer(genuine, stored.expires_at, now)
}

/// Refuses a token for a waitpoint that does not exist, after the work of [`check`]: neither the
/// answer nor its time tells that from a wrong token.
pub fn check_unknown(
    keyring: &Keyring,
    token: &WaitpointToken,
    execution_id: ExecutionId,
    now: TimestampMs,
) -> Result<(), Refusal> {
    let nothing = Stamp {
        kid: token.kid().clone(),
        issue: 1,
        expires_at: Some(now),
        hash: TokenHash([0; 32]),
    };
    let nowhere = WaitpointId::new(Uuid::nil());
    let genuine = genuine(keyring, token, &nothing, execution_id, nowhere, now);
    answer(genuine & Choice::from(0), nothing.expires_at, now)
}

/// Whether this is the token that was made for the waitpoint, by a key that is accepted.
fn genuine(
    keyring: &Keyring,
    token: &WaitpointToken,
    stored: &Stamp,
    execution_id: ExecutionId,
    waitpoint_id: WaitpointId,
    now: TimestampMs,
) -> Choice {
    let Stamp { issue, expires_at, .. } = *stored;
    let binding = Binding { execution_id, waitpoint_id, issue, expires_at };
    let secret = keyring.accepts(token.kid(), now);
    let is_key = truth(secret.is_some()) & truth(*token.kid() == stored.kid);
    // The current secret stands in for a missing one, for the sake of the work.
    let expected = sign_with(secret.unwrap_or(keyring.current_secret()), token.kid(), &binding);
    is_key & token.ct_eq(&expected.token) & token.hash().ct_eq(&stored.hash)
}

fn answer(
    genuine: Choice,
    expires_at: Option<TimestampMs>,
    now: TimestampMs,
) -> Result<(), Refusal> {
    let expired = expires_at.is_some_and(|at| at <= now);
    match (bool::from(genuine), expired) {
        (false, _) => Err(refusal(Code::InvalidToken, "the token does not open this waitpoint")),
        (true, true) => Err(refusal(Code::TokenExpired, "the waitpoint token has expired")),
        (true, false) => Ok(()),
    }
}

fn refusal(code: Code, detail: &'static str) -> Refusal {
    Refusal::at(code, "token", detail)
}

fn truth(is: bool) -> Choice {
    Choice::from(u8::from(is))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Secret, Signed, sign};
    use super::*;

    const NOW: TimestampMs = TimestampMs(1_000_000);
    const EXPIRY: TimestampMs = TimestampMs(2_000_000);

    fn execution(number: u128) -> ExecutionId {
        ExecutionId::new(7, Uuid::from_u128(number))
    }

    fn waitpoint(number: u128) -> WaitpointId {
        WaitpointId::new(Uuid::from_u128(number))
    }

    fn secret(byte: u8) -> Secret {
        Secret::from_bytes(vec![byte; 32]).unwrap()
    }

    fn keyring() -> Keyring {
        Keyring::seeded(Kid::first(), secret(1))
    }

    fn binding(issue: u32, expires_at: Option<TimestampMs>) -> Binding {
        Binding { execution_id: execution(1), waitpoint_id: waitpoint(1), issue, expires_at }
    }

    fn stored(binding: &Binding, signed: &Signed) -> Stamp {
        let Binding { issue, expires_at, .. } = *binding;
        Stamp { kid: signed.token.kid().clone(), issue, expires_at, hash: signed.hash }
    }

    fn issued(binding: &Binding) -> (WaitpointToken, Stamp) {
        let signed = sign(&keyring(), binding);
        let stored = stored(binding, &signed);
        (signed.token, stored)
    }

    fn shown(
        keyring: &Keyring,
        token: &WaitpointToken,
        stored: &Stamp,
        now: TimestampMs,
    ) -> Result<(), Code> {
        check(keyring, token, stored, execution(1), waitpoint(1), now).map_err(|refusal| {
            assert!(!format!("{refusal:?}").contains(&token.expose()[..8]), "{refusal:?}");
            refusal.code
        })
    }

    #[test]
    fn the_token_of_a_waitpoint_is_accepted_until_it_expires() {
        let (token, stored) = issued(&binding(1, Some(EXPIRY)));
        for (now, expected) in [
            (NOW, Ok(())),
            (TimestampMs(EXPIRY.0 - 1), Ok(())),
            (EXPIRY, Err(Code::TokenExpired)),
            (EXPIRY.after(1), Err(Code::TokenExpired)),
        ] {
            assert_eq!(shown(&keyring(), &token, &stored, now), expected, "{now}");
        }
        let (endless, stored) = issued(&binding(1, None));
        assert_eq!(shown(&keyring(), &endless, &stored, TimestampMs(i64::MAX)), Ok(()));
    }

    #[test]
    fn an_expiry_at_the_beginning_of_time_is_not_endless() {
        let (token, stored) = issued(&binding(1, Some(TimestampMs(0))));
        assert_eq!(shown(&keyring(), &token, &stored, NOW), Err(Code::TokenExpired));
    }

    #[test]
    fn every_changed_character_is_refused() {
        let (token, stored) = issued(&binding(1, Some(EXPIRY)));
        for place in 0..token.expose().len() {
            for other in ' '..='~' {
                let mut text = token.expose().to_owned();
                text.replace_range(place..=place, other.encode_utf8(&mut [0; 4]));
                if text == token.expose() {
                    continue;
                }
                // Also when it has expired: a wrong token is wrong first.
                for now in [NOW, EXPIRY] {
                    let code = WaitpointToken::parse(&text)
                        .map_err(|refusal| refusal.code)
                        .and_then(|token| shown(&keyring(), &token, &stored, now));
                    assert_eq!(code, Err(Code::InvalidToken), "{place} {other:?}");
                }
            }
        }
    }

    #[test]
    fn cut_and_swapped_texts_are_refused() {
        let (token, stored) = issued(&binding(1, Some(EXPIRY)));
        let text = token.expose();
        let parts: Vec<_> = text.split(':').collect();
        let mut texts: Vec<String> = (0..text.len()).map(|end| text[..end].to_owned()).collect();
        texts.extend((1..text.len()).map(|start| text[start..].to_owned()));
        for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            texts.push(order.map(|part| parts[part]).join(":"));
        }
        texts.extend([format!("{text}0"), format!("{text}\n"), format!("0{text}")]);
        for text in texts {
            let code = WaitpointToken::parse(&text)
                .map_err(|refusal| refusal.code)
                .and_then(|token| shown(&keyring(), &token, &stored, NOW));
            assert_eq!(code, Err(Code::InvalidToken), "{text}");
        }
    }

    #[test]
    fn a_token_of_another_binding_is_refused() {
        let (_, right) = issued(&binding(2, Some(EXPIRY)));
        let elsewhere = |execution_id, waitpoint_id| {
            issued(&Binding { execution_id, waitpoint_id, ..binding(2, Some(EXPIRY)) })
        };
        for (what, (token, own)) in [
            ("execution", elsewhere(execution(2), waitpoint(1))),
            ("partition", elsewhere(ExecutionId::new(8, Uuid::from_u128(1)), waitpoint(1))),
            ("waitpoint", elsewhere(execution(1), waitpoint(2))),
            ("issue before", issued(&binding(1, Some(EXPIRY)))),
            ("issue after", issued(&binding(3, Some(EXPIRY)))),
            ("expiry", issued(&binding(2, Some(EXPIRY.after(1))))),
            ("no expiry", issued(&binding(2, None))),
        ] {
            // With the hash of the wrong token stored, the signature alone must refuse it.
            for hash in [right.hash, own.hash] {
                let stored = Stamp { hash, ..right.clone() };
                let code = shown(&keyring(), &token, &stored, NOW);
                assert_eq!(code, Err(Code::InvalidToken), "{what}");
            }
        }
    }

    #[test]
    fn a_reminted_token_replaces_the_one_before() {
        let (before, _) = issued(&binding(1, None));
        let (after, stored) = issued(&binding(2, None));
        assert_eq!(shown(&keyring(), &before, &stored, NOW), Err(Code::InvalidToken));
        assert_eq!(shown(&keyring(), &after, &stored, NOW), Ok(()));
    }

    #[test]
    fn a_right_signature_with_another_hash_or_kid_is_refused() {
        let (token, stored) = issued(&binding(1, None));
        let mut hash = stored.hash;
        hash.0[31] ^= 1;
        let other_hash = Stamp { hash, ..stored.clone() };
        let other_kid = Stamp { kid: Kid::new("k2").unwrap(), ..stored };
        for stored in [other_hash, other_kid] {
            assert_eq!(shown(&keyring(), &token, &stored, NOW), Err(Code::InvalidToken));
        }
    }

    #[test]
    fn a_key_counts_while_it_is_accepted() {
        let (token, stored) = issued(&binding(1, Some(EXPIRY)));
        let rotated = keyring().rotate(Kid::new("k2").unwrap(), secret(2), 500, NOW);
        let rotated = rotated.unwrap().unwrap();
        for (later, expected) in [
            (0, Ok(())),
            (499, Ok(())),
            (500, Err(Code::InvalidToken)),
            (501, Err(Code::InvalidToken)),
        ] {
            assert_eq!(shown(&rotated, &token, &stored, NOW.after(later)), expected, "{later}");
        }
        // Expired and of a retired key: wrong first.
        assert_eq!(shown(&rotated, &token, &stored, EXPIRY), Err(Code::InvalidToken));
        let swept = rotated.swept(EXPIRY).unwrap();
        assert_eq!(shown(&swept, &token, &stored, NOW), Err(Code::InvalidToken), "unknown kid");
    }

    #[test]
    fn the_current_secret_does_not_speak_for_an_unknown_kid() {
        // The check computes with the current secret for a kid that it does not know.
        let unknown = Kid::new("k9").unwrap();
        let signed = sign_with(&secret(1), &unknown, &binding(1, None));
        let stored = stored(&binding(1, None), &signed);
        assert_eq!(shown(&keyring(), &signed.token, &stored, NOW), Err(Code::InvalidToken));
    }

    #[test]
    fn a_kid_with_another_secret_is_refused() {
        let (token, stored) = issued(&binding(1, None));
        let other = Keyring::seeded(Kid::first(), secret(2));
        assert_eq!(shown(&other, &token, &stored, NOW), Err(Code::InvalidToken));
    }

    #[test]
    fn an_unknown_waitpoint_answers_as_a_wrong_token() {
        let (token, stored) = issued(&binding(1, None));
        let wrong = check(&keyring(), &token, &stored, execution(1), waitpoint(2), NOW);
        assert_eq!(check_unknown(&keyring(), &token, execution(1), NOW), wrong);
        // The very token of the stand-in waitpoint opens nothing either.
        let stand_in = Binding { waitpoint_id: waitpoint(0), ..binding(1, Some(NOW)) };
        let (token, _) = issued(&stand_in);
        assert_eq!(check_unknown(&keyring(), &token, execution(1), NOW), wrong);
    }

    proptest! {
        #[test]
        fn tokens_open_their_own_waitpoint_alone(
            a in (0..3_u128, 0..3_u128, 0..3_u32, prop::option::of(1..4_i64)),
            b in (0..3_u128, 0..3_u128, 0..3_u32, prop::option::of(1..4_i64)),
        ) {
            let [shown, expected] = [a, b].map(|(execution_id, waitpoint_id, issue, expires_at)| Binding {
                execution_id: execution(execution_id),
                waitpoint_id: waitpoint(waitpoint_id),
                issue,
                expires_at: expires_at.map(TimestampMs),
            });
            let (token, _) = issued(&shown);
            let (_, stored) = issued(&expected);
            let Binding { execution_id, waitpoint_id, .. } = expected;
            let now = TimestampMs(0);
            let answer = check(&keyring(), &token, &stored, execution_id, waitpoint_id, now);
            prop_assert_eq!(answer.is_ok(), a == b);
        }
    }
}
