//! Secrets that come from the environment or from a file. They are never printed, in errors neither.

use std::io::Read as _;
use std::path::Path;

use crate::failure::Usage;

/// Longer than any secret there is.
const BYTES_MAX: u64 = 64 << 10;

/// What stands in a file, or on standard input for `-`, without one trailing newline.
pub(crate) fn one_line_of(path: &Path) -> Result<String, Usage> {
    let mut text = String::new();
    let unreadable = |error| Usage::unreadable(path, &error);
    let read = if path.as_os_str() == "-" {
        std::io::stdin().take(BYTES_MAX).read_to_string(&mut text)
    } else {
        let file = std::fs::File::open(path).map_err(unreadable)?;
        file.take(BYTES_MAX).read_to_string(&mut text)
    };
    read.map_err(unreadable)?;
    if text.ends_with('\n') {
        text.pop();
    }
    if text.ends_with('\r') {
        text.pop();
    }
    Ok(text)
}

/// The secret in the variable `name`, or in the file that its twin `<name>_FILE` names.
pub(crate) fn secret_of(name: &str) -> Result<Option<String>, Usage> {
    let twin = format!("{name}_FILE");
    match (std::env::var_os(name), std::env::var_os(&twin)) {
        (Some(_), Some(_)) => {
            Err(Usage(format!("{name} and {twin} are both set; leave one of them out")))
        }
        (Some(value), None) => match value.into_string() {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(Usage(format!("{name} is not UTF-8"))),
        },
        (None, Some(file)) => one_line_of(Path::new(&file)).map(Some),
        (None, None) => Ok(None),
    }
}
