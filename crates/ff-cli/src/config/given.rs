//! A value that somebody gave: text of the environment or of a flag, or a value of the file.

use std::ops::RangeInclusive;
use std::str::FromStr;

/// A value before it is read.
#[derive(Debug, Clone)]
pub(crate) enum Given {
    File(toml::Value),
    Text(String),
}

/// Why a value does not fit. It never repeats the value: that may be a secret.
pub(crate) type Unfit = String;

impl Given {
    pub(crate) fn text(&self) -> Result<&str, Unfit> {
        match self {
            Self::Text(text) | Self::File(toml::Value::String(text)) => Ok(text),
            Self::File(other) => Err(format!("it must be a text, not {}", kind(other))),
        }
    }

    /// A text that has a form of its own.
    pub(crate) fn parsed<T: FromStr>(&self, form: &str) -> Result<T, Unfit> {
        self.text()?.trim().parse().map_err(|_| format!("it must be {form}"))
    }

    pub(crate) fn flag(&self) -> Result<bool, Unfit> {
        match self {
            Self::File(toml::Value::Boolean(flag)) => Ok(*flag),
            Self::Text(text) if text == "true" => Ok(true),
            Self::Text(text) if text == "false" => Ok(false),
            _ => Err("it must be true or false".to_owned()),
        }
    }

    pub(crate) fn whole(&self, range: RangeInclusive<u64>) -> Result<u64, Unfit> {
        let number = match self {
            Self::File(toml::Value::Integer(number)) => u64::try_from(*number).ok(),
            Self::File(_) => None,
            Self::Text(text) => text.trim().parse().ok(),
        };
        number.filter(|number| range.contains(number)).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            format!("it must be a whole number from {least} to {most}")
        })
    }

    /// Texts: a list of the file, or separated by commas.
    pub(crate) fn list(&self) -> Result<Vec<String>, Unfit> {
        let texts: Vec<&str> = match self {
            Self::Text(text) => text.split(',').map(str::trim).collect(),
            Self::File(toml::Value::Array(values)) => {
                let texts: Option<Vec<&str>> = values.iter().map(toml::Value::as_str).collect();
                texts.ok_or("it must be a list of texts")?
            }
            Self::File(_) => return Err("it must be a list of texts".to_owned()),
        };
        Ok(texts.into_iter().filter(|text| !text.is_empty()).map(ToOwned::to_owned).collect())
    }

    pub(crate) fn count(&self, range: RangeInclusive<u64>) -> Result<usize, Unfit> {
        let number = self.whole(range)?;
        usize::try_from(number).map_err(|_| "it is too large for this machine".to_owned())
    }
}

fn kind(value: &toml::Value) -> &'static str {
    match value {
        toml::Value::String(_) => "a text",
        toml::Value::Integer(_) | toml::Value::Float(_) => "a number",
        toml::Value::Boolean(_) => "true or false",
        toml::Value::Datetime(_) => "a time",
        toml::Value::Array(_) => "a list",
        toml::Value::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_from_texts_and_from_the_file() {
        let text = |text: &str| Given::Text(text.to_owned());
        let file = |value: toml::Value| Given::File(value);
        assert_eq!(text("true").flag(), Ok(true));
        assert_eq!(file(false.into()).flag(), Ok(false));
        assert!(text("1").flag().is_err() && file("true".into()).flag().is_err());
        assert_eq!(text(" 7").whole(1..=9), Ok(7));
        assert_eq!(file(9.into()).whole(1..=9), Ok(9));
        for bad in [text("10"), text("x"), text(""), file((-1).into()), file("7".into())] {
            let told = bad.whole(1..=9).unwrap_err();
            assert_eq!(told, "it must be a whole number from 1 to 9");
        }
        assert!(file(7.into()).text().is_err());
    }
}
