//! An answer that may have been given before.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AllOfBuilder, ObjectBuilder, Ref, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// An answer, and whether it was given before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Again<T> {
    #[serde(flatten)]
    pub reply: T,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
}

impl<T: ToSchema> ToSchema for Again<T> {
    fn name() -> Cow<'static, str> {
        format!("Again_{}", T::name()).into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}

impl<T: ToSchema> PartialSchema for Again<T> {
    fn schema() -> RefOr<Schema> {
        let told = "True: what was asked for was so already, and nothing has changed.";
        let replayed =
            ObjectBuilder::new().schema_type(Type::Boolean).description(Some(told)).build();
        let mark = ObjectBuilder::new().property("replayed", replayed).build();
        let whole = AllOfBuilder::new().item(Ref::from_schema_name(T::name())).item(mark);
        let whole = whole.description(Some("An answer, and whether it was given before."));
        RefOr::T(whole.build().into())
    }
}
