//! The text of a token.

use std::fmt;
use std::str::FromStr;

use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroizing;

use super::TokenHash;
use crate::error::{Code, Refusal};
use crate::id::Kid;

const SIGNATURE_DIGITS: usize = 64;

/// `kid:expiry:signature`. Whoever knows the text may signal: it is printed redacted, comes out only
/// through [`WaitpointToken::expose`], and is wiped when dropped.
#[derive(Clone)]
pub struct WaitpointToken {
    text: Zeroizing<String>,
    kid: Kid,
}

impl WaitpointToken {
    /// Reads a caller's token: its form is checked, its truth is not.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let malformed = || {
            Refusal::at(
                Code::InvalidToken,
                "token",
                "the waitpoint token is not of the form kid:expiry:signature",
            )
        };
        let (kid, rest) = text.split_once(':').ok_or_else(malformed)?;
        let (expiry, signature) = rest.split_once(':').ok_or_else(malformed)?;
        let kid = Kid::new(kid).map_err(|_| malformed())?;
        if is_expiry(expiry) && is_signature(signature) {
            Ok(Self::from_parts(kid, text.to_owned()))
        } else {
            Err(malformed())
        }
    }

    /// A text that is known to be of the form and to begin with `kid`.
    pub(super) fn from_parts(kid: Kid, text: String) -> Self {
        Self { text: Zeroizing::new(text), kid }
    }

    /// Which key is said to have signed it.
    pub fn kid(&self) -> &Kid {
        &self.kid
    }

    /// The raw text. It must not reach a log, an event, an error, a metric or a store.
    pub fn expose(&self) -> &str {
        &self.text
    }

    pub fn hash(&self) -> TokenHash {
        TokenHash::of(&self.text)
    }
}

impl FromStr for WaitpointToken {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        Self::parse(text)
    }
}

/// Decimal without sign or leading zeroes, so that one instant has one text.
fn is_expiry(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'))
        && text.parse::<i64>().is_ok()
}

fn is_signature(text: &str) -> bool {
    text.len() == SIGNATURE_DIGITS && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// For tokens of one length; the length is no secret.
impl ConstantTimeEq for WaitpointToken {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.text.as_bytes().ct_eq(other.text.as_bytes())
    }
}

impl PartialEq for WaitpointToken {
    fn eq(&self, other: &Self) -> bool {
        self.ct_eq(other).into()
    }
}

impl Eq for WaitpointToken {}

impl fmt::Display for WaitpointToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:redacted", self.kid)
    }
}

impl fmt::Debug for WaitpointToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WaitpointToken({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature() -> String {
        "0123456789abcdef".repeat(4)
    }

    #[test]
    fn well_formed_texts_are_kept_as_they_are() {
        for kid in ["k1", "A_b-9", &"x".repeat(64)] {
            for expiry in ["0", "1", "1700000000000", "9223372036854775807"] {
                let text = format!("{kid}:{expiry}:{}", signature());
                let token = WaitpointToken::parse(&text).unwrap();
                assert_eq!((token.expose(), token.kid().as_str()), (text.as_str(), kid));
            }
        }
    }

    #[test]
    fn malformed_texts_are_refused_and_not_told() {
        let good = signature();
        let cases = [
            String::new(),
            ":".to_owned(),
            "::".to_owned(),
            good.clone(),
            format!("k1:{good}"),
            format!("k1:0:{good}:"),
            format!("k1:0:{good} "),
            format!(" k1:0:{good}"),
            format!("k1:0:{}", &good[1..]),
            format!("k1:0:{good}0"),
            format!("k1:0:{}", good.to_uppercase()),
            format!("k1:0:{}", "é".repeat(32)),
            format!("k1::{good}"),
            format!("k1:00:{good}"),
            format!("k1:01:{good}"),
            format!("k1:+1:{good}"),
            format!("k1:-1:{good}"),
            format!("k1:1.5:{good}"),
            format!("k1:9223372036854775808:{good}"),
            format!(":0:{good}"),
            format!("k.1:0:{good}"),
            format!("{}:0:{good}", "x".repeat(65)),
            format!("0:k1:{good}"),
            format!("k1:{good}:0"),
        ];
        for text in cases {
            let refusal = WaitpointToken::parse(&text).unwrap_err();
            assert_eq!(refusal.code, Code::InvalidToken, "{text:?}");
            assert!(!format!("{refusal:?}").contains("0123"), "{refusal:?}");
        }
    }

    #[test]
    fn printing_shows_the_kid_alone() {
        let token = WaitpointToken::parse(&format!("k1:17:{}", signature())).unwrap();
        assert_eq!(token.to_string(), "k1:redacted");
        assert_eq!(format!("{token:?}"), "WaitpointToken(k1:redacted)");
        assert_eq!(format!("{token:#?}"), "WaitpointToken(k1:redacted)");
    }

    #[test]
    fn equality_is_of_the_text() {
        let token = |text: &str| WaitpointToken::parse(&format!("{text}:{}", signature())).unwrap();
        assert_eq!(token("k1:0"), token("k1:0"));
        assert_ne!(token("k1:0"), token("k1:1"));
        assert_ne!(token("k1:0"), token("k1:10"));
    }
}
