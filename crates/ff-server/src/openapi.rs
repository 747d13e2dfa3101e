//! The OpenAPI description, made from the table of routes.

use std::collections::BTreeMap;

use ff_api::fence::Fence;
use ff_api::problem::Problem;
use ff_core::state::Scope;
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathsBuilder,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{AllOfBuilder, ComponentsBuilder, ObjectBuilder, Ref, Schema, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, PathItem, RefOr, Required,
    ResponseBuilder,
};

use crate::route::{Form, Route, Takes, Verb, form};
use crate::table;

/// What the description calls an API key.
const KEY: &str = "key";
const ABOUT: &str = "Durable execution of long, interruptible work. Every /v1 route but those of keys, \
    admin, system and capabilities may stand behind /v1/namespaces/{namespace}. Failures are problem documents.";

type Schemas = BTreeMap<String, RefOr<Schema>>;

/// The description of all routes that are served.
pub fn document() -> OpenApi {
    let mut schemas = Schemas::new();
    let mut paths = PathsBuilder::new();
    for (path, routes) in table::by_path() {
        let mut item = PathItem::default();
        for route in routes {
            item.merge_operations(PathItem::new(
                method(route.verb),
                operation(route, &mut schemas),
            ));
        }
        paths = paths.path(path, item);
    }
    let info = InfoBuilder::new().title("FlowFabric").version("v1").description(Some(ABOUT));
    let bearer =
        HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("ffk_<id>_<secret>");
    let components = ComponentsBuilder::new()
        .schemas_from_iter(schemas)
        .security_scheme(KEY, SecurityScheme::Http(bearer.build()));
    OpenApiBuilder::new().info(info).paths(paths).components(Some(components.build())).build()
}

fn method(verb: Verb) -> HttpMethod {
    match verb {
        Verb::Get => HttpMethod::Get,
        Verb::Post => HttpMethod::Post,
        Verb::Put => HttpMethod::Put,
        Verb::Patch => HttpMethod::Patch,
        Verb::Delete => HttpMethod::Delete,
    }
}

/// What a key must be allowed to do.
fn scopes(route: &Route) -> Option<String> {
    let name = |scope: Scope| format!("`{}`", scope.as_str());
    let mut text = format!("Scope {}", name(route.scope?));
    if let Some(also) = route.also {
        text += &format!(" and {}", name(also));
    }
    if let Some(other) = route.or_scope {
        text += &format!("; {} for an operator without a fence", name(other));
    }
    Some(text + ".")
}

fn operation(route: &Route, schemas: &mut Schemas) -> OperationBuilder {
    let mut operation = OperationBuilder::new()
        .summary(Some(route.summary))
        .operation_id(Some(name(route)))
        .description(scopes(route));
    if route.scope.is_some() {
        let none: [&str; 0] = [];
        operation = operation.security(SecurityRequirement::new(KEY, none));
    }
    for parameter in parameters(route, schemas) {
        operation = operation.parameter(parameter);
    }
    if let Some(request) = request(route, schemas) {
        let mut body = RequestBodyBuilder::new()
            .content("application/json", ContentBuilder::new().schema(Some(request)).build());
        if route.takes == Takes::ObjectOrRaw {
            let bytes = ContentBuilder::new().build();
            body = body.content("application/octet-stream", bytes);
        }
        if route.takes == Takes::ObjectOrLines {
            let lines = ContentBuilder::new().build();
            body = body.content("application/x-ndjson", lines);
        }
        operation = operation.request_body(Some(body.build()));
    }
    let mut done = ResponseBuilder::new().description("Done");
    if let Some(reply) = route.reply {
        let reply = ContentBuilder::new().schema(Some(reference(reply, schemas))).build();
        done = done.content("application/json", reply);
    }
    let problem = ContentBuilder::new().schema(Some(reference(form::<Problem>(), schemas)));
    let failed = ResponseBuilder::new()
        .description("Not done; the code says why")
        .content("application/problem+json", problem.build());
    operation.response(route.status.to_string(), done.build()).response("default", failed.build())
}

/// The form of the request, with the fields of a fence where it shows one.
fn request(route: &Route, schemas: &mut Schemas) -> Option<RefOr<Schema>> {
    let request = reference(route.request?, schemas);
    if !route.fenced {
        return Some(request);
    }
    let fence = reference(form::<Fence>(), schemas);
    Some(RefOr::T(AllOfBuilder::new().item(fence).item(request).build().into()))
}

/// A reference to a form, which is described beside the routes with all that it is made of.
fn reference(form: Form, schemas: &mut Schemas) -> RefOr<Schema> {
    let name = (form.name)();
    schemas.insert(name.clone(), (form.schema)());
    schemas.extend((form.parts)());
    RefOr::Ref(Ref::from_schema_name(name))
}

fn parameters(route: &Route, schemas: &mut Schemas) -> Vec<Parameter> {
    let mut found: Vec<Parameter> = path_parts(route.path).map(path_parameter).collect();
    if route.wait_ms.is_some() {
        found.push(query_parameter("wait_ms", whole_number()));
    }
    if route.wait_flag_ms.is_some() {
        found.push(query_parameter("wait", flag()));
    }
    if route.takes == Takes::ObjectOrRaw {
        found.push(query_parameter("raw", flag()));
    }
    let Some(query) = route.query else { return found };
    schemas.extend((query.parts)());
    if let RefOr::T(Schema::Object(object)) = (query.schema)() {
        let fields = object.properties.into_iter();
        found.extend(fields.map(|(name, schema)| query_parameter(&name, schema)));
    }
    found
}

fn path_parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn path_parameter(name: &str) -> Parameter {
    let text = ObjectBuilder::new().schema_type(Type::String).build();
    let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path);
    parameter.required(Required::True).schema(Some(text)).build()
}

fn query_parameter(name: &str, schema: RefOr<Schema>) -> Parameter {
    let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Query);
    parameter.required(Required::False).schema(Some(schema)).build()
}

fn flag() -> RefOr<Schema> {
    RefOr::T(ObjectBuilder::new().schema_type(Type::Boolean).build().into())
}

fn whole_number() -> RefOr<Schema> {
    RefOr::T(ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).build().into())
}

/// `post_executions_cancel`: the method, and the words of the path.
fn name(route: &Route) -> String {
    let words = route.path.split('/').filter(|part| !part.is_empty() && *part != "v1");
    let words = words.map(|part| match part.strip_prefix('{') {
        Some(parameter) => format!("by_{}", parameter.trim_end_matches('}')),
        None => part.trim_end_matches(".json").replace('-', "_"),
    });
    let verb = route.verb.as_str().to_lowercase();
    std::iter::once(verb).chain(words).collect::<Vec<_>>().join("_")
}
