//! Where reports go, as Sentry writes it: `https://KEY@HOST[:PORT]/[PATH/]PROJECT`.

use std::fmt;
use std::str::FromStr;

use reqwest::Url;

/// Where reports go, with the key that lets them in. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Dsn {
    pub(super) envelopes: Url,
    pub(super) key: String,
}

/// A text is no such address. It does not repeat the text, which may hold a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadDsn {
    #[error("it must be a URL such as https://KEY@HOST/PROJECT")]
    NoUrl,
    #[error("it must begin with https:// or http://")]
    Scheme,
    #[error("it has no key before the @ of the host")]
    NoKey,
    #[error("it does not end with the number of a project")]
    NoProject,
}

impl FromStr for Dsn {
    type Err = BadDsn;

    fn from_str(text: &str) -> Result<Self, BadDsn> {
        let mut url: Url = text.parse().map_err(|_| BadDsn::NoUrl)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BadDsn::Scheme);
        }
        let key = url.username().to_owned();
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(BadDsn::NoKey);
        }
        let path = url.path().to_owned();
        let (before, project) = path.rsplit_once('/').ok_or(BadDsn::NoProject)?;
        if project.is_empty() || !project.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(BadDsn::NoProject);
        }
        url.set_path(&format!("{before}/api/{project}/envelope/"));
        url.set_query(None);
        url.set_fragment(None);
        let bare = url.set_username("").and_then(|()| url.set_password(None));
        bare.map_err(|()| BadDsn::NoUrl)?;
        Ok(Self { envelopes: url, key })
    }
}

impl fmt::Debug for Dsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dsn(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart() {
        for (text, envelopes) in [
            ("https://abc1@o1.example/42", "https://o1.example/api/42/envelope/"),
            ("http://abc1:old@127.0.0.1:9000/x/7", "http://127.0.0.1:9000/x/api/7/envelope/"),
        ] {
            let dsn: Dsn = text.parse().unwrap();
            assert_eq!((dsn.envelopes.as_str(), dsn.key.as_str()), (envelopes, "abc1"));
            assert_eq!(format!("{dsn:?}"), "Dsn(redacted)");
        }
    }

    #[test]
    fn what_is_no_address_is_told_without_its_key() {
        for (text, why) in [
            ("", BadDsn::NoUrl),
            ("abc1@host/1", BadDsn::NoUrl),
            ("ftp://abc1@host/1", BadDsn::Scheme),
            ("https://host/1", BadDsn::NoKey),
            ("https://abc1@host/", BadDsn::NoProject),
            ("https://abc1@host/one", BadDsn::NoProject),
        ] {
            let error = text.parse::<Dsn>().unwrap_err();
            assert_eq!(error, why, "{text}");
            assert!(!error.to_string().contains("abc1"), "{error}");
        }
    }
}
