//! Extractors: what a handler asks for by the types of its arguments.

use std::any::type_name;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::failure::{EXTRACTOR_MISSING_STATE, EXTRACTOR_PAYLOAD_DECODE};
use super::{Failure, Task, TaskCall, TaskInfo};

/// What may be an argument of a handler. Implement it for what several handlers need.
///
/// ```
/// use ff_sdk::runtime::{Failure, FromTask, TaskCall};
///
/// struct Tenant(String);
///
/// impl FromTask for Tenant {
///     fn from_task(call: &TaskCall) -> Result<Self, Failure> {
///         let tenant = call.info().tags().get("tenant").map(str::to_owned);
///         tenant.map(Self).ok_or_else(|| Failure::permanent("the task has no tag `tenant`"))
///     }
/// }
///
/// async fn bill(tenant: Tenant) {
///     println!("a bill for {}", tenant.0);
/// }
/// # ff_sdk::runtime::check_handler(bill);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no extractor, so a handler cannot take it",
    note = "extractors are Payload<T>, PayloadBytes, Data<T>, TaskInfo, Task, and what implements \
            FromTask"
)]
pub trait FromTask: Sized {
    /// The value for one call; a failure is the failure of the task.
    fn from_task(call: &TaskCall) -> Result<Self, Failure>;
}

/// The payload, read as JSON. What does not decode fails for good with the category
/// `extractor_payload_decode`; the reason names the place, and never what stands there.
///
/// ```
/// use ff_sdk::runtime::Payload;
///
/// #[derive(serde::Deserialize)]
/// struct Resize { url: String, width: u32 }
///
/// async fn resize(Payload(task): Payload<Resize>) -> String {
///     format!("{} at {}", task.url, task.width)
/// }
/// # ff_sdk::runtime::check_handler(resize);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload<T>(pub T);

impl<T> Deref for Payload<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: DeserializeOwned> FromTask for Payload<T> {
    fn from_task(call: &TaskCall) -> Result<Self, Failure> {
        decode(call.info().payload()).map(Self).map_err(|what| {
            let kind = call.info().kind();
            let reason = format!("the payload of a task of kind {kind} does not decode: {what}");
            Failure::permanent(reason).category(EXTRACTOR_PAYLOAD_DECODE)
        })
    }
}

/// Reads JSON; what is wrong with it is told without what stands in it.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { "the top".to_owned() } else { format!("`{path}`") };
        let (line, column) = (error.inner().line(), error.inner().column());
        format!("{} at {place}, line {line} column {column}", without_values(error.inner()))
    })?;
    reader.end().map_err(|_| "something follows behind its end".to_owned())?;
    Ok(value)
}

/// What is wrong, in words of the type that was to be read and not of the payload.
fn without_values(error: &serde_json::Error) -> String {
    if !error.is_data() {
        let said = if error.is_eof() { "it ends too early" } else { "it is no JSON" };
        return said.to_owned();
    }
    let text = error.to_string();
    // serde's own texts: `<what came>, expected <what the type says>`.
    let standard = ["invalid type: ", "invalid value: ", "invalid length ", "unknown variant "];
    let expected = text.rsplit_once(", expected ").map(|(_, expected)| expected);
    let field = text.strip_prefix("missing field `").and_then(|rest| rest.split_once('`'));
    match (expected, field) {
        (_, Some((field, _))) => format!("the field `{field}` is missing"),
        (Some(expected), _) if standard.iter().any(|begin| text.starts_with(begin)) => {
            let end = expected.rfind(" at line ").unwrap_or(expected.len());
            format!("expected {}", &expected[..end])
        }
        _ => "a value is not allowed".to_owned(),
    }
}

/// The payload as it came.
///
/// ```
/// use ff_sdk::runtime::PayloadBytes;
///
/// async fn count(PayloadBytes(bytes): PayloadBytes) -> usize {
///     bytes.len()
/// }
/// # ff_sdk::runtime::check_handler(count);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadBytes(pub Bytes);

impl FromTask for PayloadBytes {
    fn from_task(call: &TaskCall) -> Result<Self, Failure> {
        Ok(Self(call.info().payload().clone()))
    }
}

/// What all handlers of the runtime share, found by its type: see
/// [`WorkerRuntime::data`](super::WorkerRuntime::data). Without it the task fails with the category
/// `extractor_missing_state`; another worker, that has it, may take it up.
///
/// ```
/// use ff_sdk::runtime::Data;
///
/// struct Database;
///
/// async fn store(database: Data<Database>) {
///     let _database: &Database = &database;
/// }
/// # ff_sdk::runtime::check_handler(store);
/// ```
pub struct Data<T>(Arc<T>);

impl<T> Data<T> {
    /// The shared value, to be kept.
    ///
    /// ```
    /// use ff_sdk::runtime::Data;
    /// use std::sync::Arc;
    ///
    /// struct Database;
    ///
    /// async fn store(database: Data<Database>) {
    ///     let database: Arc<Database> = database.into_inner();
    ///     tokio::task::spawn_blocking(move || drop(database)).await.expect("it is written");
    /// }
    /// # ff_sdk::runtime::check_handler(store);
    /// ```
    pub fn into_inner(self) -> Arc<T> {
        self.0
    }
}

impl<T> Clone for Data<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for Data<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Debug> fmt::Debug for Data<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Data").field(&self.0).finish()
    }
}

impl<T: Send + Sync + 'static> FromTask for Data<T> {
    fn from_task(call: &TaskCall) -> Result<Self, Failure> {
        call.data().map(Self).ok_or_else(|| {
            let reason = format!("this worker was given no data of type {}", type_name::<T>());
            Failure::transient(reason).category(EXTRACTOR_MISSING_STATE)
        })
    }
}

impl FromTask for TaskInfo {
    fn from_task(call: &TaskCall) -> Result<Self, Failure> {
        Ok(call.info().clone())
    }
}

impl FromTask for Task {
    fn from_task(call: &TaskCall) -> Result<Self, Failure> {
        Ok(call.task().clone())
    }
}

/// The whole call, for handlers that hand it on.
impl FromTask for TaskCall {
    fn from_task(call: &TaskCall) -> Result<Self, Failure> {
        Ok(call.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Order {
        #[expect(dead_code, reason = "only read")]
        items: Vec<Item>,
    }

    #[derive(Debug, serde::Deserialize)]
    struct Item {
        #[expect(dead_code, reason = "only read")]
        count: u8,
    }

    #[test]
    fn what_is_wrong_is_told_without_the_payload() {
        for (payload, told) in [
            (r#"{"items":[{"count":"s3cret"}]}"#, "expected u8 at `items[0].count`"),
            (r#"{"items":[{"count":", expected s3cret"}]}"#, "expected u8 at `items[0].count`"),
            (r#"{"items":[{"count":31337}]}"#, "expected u8 at `items[0].count`"),
            (r#"{"items":[{}]}"#, "the field `count` is missing at `items[0]`"),
            (r#"{"items":[],"x":"s3cret"}"#, "a value is not allowed at `x`"),
            (r#""s3cret""#, "expected struct Order at the top"),
            ("s3cret", "it is no JSON at the top"),
            ("", "it ends too early at the top"),
            (r#"{"items":[]} s3cret"#, "something follows behind its end"),
        ] {
            let said = decode::<Order>(payload.as_bytes()).unwrap_err();
            assert!(said.starts_with(told), "{payload}: {said}");
            assert!(!said.contains("s3cret") && !said.contains("31337"), "{payload}: {said}");
        }
    }
}
