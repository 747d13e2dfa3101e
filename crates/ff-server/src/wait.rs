//! How long a caller is willing to wait.

use std::time::Duration;

use axum::http::HeaderMap;
use ff_api::object::{Invalid, Object};
use ff_api::problem::FieldError;

use crate::route::Route;

/// What the query says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameter {
    ms: Option<u64>,
    /// `wait=true`: as long as the route waits at all.
    flag_ms: Option<u64>,
}

/// `wait_ms` and `wait` of the query, where the route knows them.
pub(crate) fn parameter(route: &Route, query: &mut Object) -> Result<Parameter, Invalid> {
    let ms = if route.wait_ms.is_some() { query.take("wait_ms")? } else { None };
    let mut flag_ms = None;
    if let Some(longest) = route.wait_flag_ms
        && query.take("wait")? == Some(true)
    {
        flag_ms = Some(longest);
    }
    Ok(Parameter { ms, flag_ms })
}

/// `wait_ms` of the query, of the body where the route takes it there, or `Prefer: wait=s`.
pub(crate) fn read(
    route: &Route,
    Parameter { ms: parameter, flag_ms }: Parameter,
    body: Option<&mut Object>,
    headers: &HeaderMap,
) -> Result<Duration, Invalid> {
    let Some(most) = route.wait_ms else { return Ok(Duration::ZERO) };
    let field: Option<u64> = match body.filter(|_| route.waits_in_body) {
        Some(body) => body.take("wait_ms")?,
        None => None,
    };
    if let (Some(parameter), Some(field)) = (parameter, field)
        && parameter != field
    {
        return Err(Invalid::at("wait_ms", "query and body hold different waits"));
    }
    let asked = parameter.or(field);
    if let Some(ms) = flag_ms {
        if asked.is_some() {
            let message = "wait says how long to wait, and wait_ms says it again";
            return Err(Invalid(vec![FieldError::parameter("wait", message)]));
        }
        return Ok(Duration::from_millis(ms));
    }
    // A preference is a wish: what is beyond the limit is cut to it.
    let ms = asked.or_else(|| preferred(headers).map(|ms| ms.min(most))).unwrap_or(0);
    if ms > most {
        let message = format!("wait_ms is {ms}, allowed is 0 to {most}");
        let error = match field {
            Some(_) => return Err(Invalid::at("wait_ms", message)),
            None => FieldError::parameter("wait_ms", message),
        };
        return Err(Invalid(vec![error]));
    }
    Ok(Duration::from_millis(ms))
}

fn preferred(headers: &HeaderMap) -> Option<u64> {
    let values = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    let mut wishes = values.flat_map(|value| value.split(',')).map(str::trim);
    let seconds = wishes.find_map(|wish| wish.strip_prefix("wait="))?;
    seconds.trim_matches('"').parse::<u64>().ok()?.checked_mul(1000)
}
