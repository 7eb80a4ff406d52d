//! The OpenAPI document, made from the same table and descriptions that the server works with.

mod schema;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use axum::body::Bytes;
use axum::http::Method;
use serde_json::{Map, Value, json};

use super::route_doc::{Access, Answer, BodyDoc, Doc, Param, Route};
use schema::Schemas;

/// The OpenAPI document of the server's routes.
pub(crate) struct OpenApi {
    routes: Vec<Route>,
    /// Written when a client asks for it first, which on most servers never happens.
    text: OnceLock<Bytes>,
}

impl OpenApi {
    pub(crate) fn new(routes: Vec<Route>) -> Self {
        Self { routes, text: OnceLock::new() }
    }

    /// The document as JSON.
    pub(crate) fn text(&self) -> Bytes {
        self.text.get_or_init(|| document(&self.routes).to_string().into()).clone()
    }
}

/// The document of these routes.
fn document(routes: &[Route]) -> Value {
    let mut schemas = Schemas::default();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for Route { method, path, doc, .. } in routes {
        let operation = operation(method, path, doc, &mut schemas);
        paths.entry(path).or_default().insert(method.as_str().to_ascii_lowercase(), operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Sessile",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Sessions, state and runs of AI agents: the REST API of Google's ADK, and more.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas.all(),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(method: &Method, path: &str, doc: &Doc, schemas: &mut Schemas) -> Value {
    let mut parameters: Vec<Value> = path_params(path).collect();
    parameters.extend(doc.query.iter().map(|param| parameter(param, "query")));
    parameters.extend(doc.headers.iter().map(|param| parameter(param, "header")));
    let mut operation = json!({
        "operationId": operation_id(method, path),
        "tags": [doc.tag],
        "summary": doc.summary,
        "responses": responses(doc, schemas),
    });
    if !parameters.is_empty() {
        operation["parameters"] = json!(parameters);
    }
    if let Some(body) = body(&doc.body, schemas) {
        operation["requestBody"] = body;
    }
    if doc.access != Access::Open {
        operation["security"] = json!([{ "token": [] }]);
    }
    operation
}

fn responses(doc: &Doc, schemas: &mut Schemas) -> Value {
    let mut responses = Map::new();
    let content = match doc.answer {
        Answer::Media(kind) => json!({ kind: { "schema": { "type": "string" } } }),
        answer => json!({ "application/json": { "schema": schemas.answer(answer) } }),
    };
    responses.insert("200".to_owned(), json!({ "description": doc.summary, "content": content }));
    let takes_input = !doc.query.is_empty() || !matches!(doc.body, BodyDoc::None);
    let everywhere = match doc.access {
        Access::Open => &[][..],
        Access::Token | Access::Admin => &[401],
    };
    let input: &[u16] = if takes_input || doc.fails.contains(&403) { &[400, 422] } else { &[] };
    let sent: &[u16] = if matches!(doc.body, BodyDoc::None) { &[] } else { &[408, 413] };
    for status in doc.fails.iter().chain(everywhere).chain(input).chain(sent) {
        let schema = schemas.failure();
        let content = json!({ "application/json": { "schema": schema } });
        responses.insert(status.to_string(), json!({ "description": meaning(*status), "content": content }));
    }
    Value::Object(responses)
}

fn meaning(status: u16) -> &'static str {
    match status {
        400 => "The request does not make sense.",
        401 => "The token is missing or not valid.",
        403 => "The token does not allow it.",
        404 => "Not found.",
        408 => "The body was not received in time.",
        409 => "It conflicts with what is stored or going on.",
        412 => "The stored version is not the expected one.",
        413 => "It exceeds a limit.",
        422 => "The request is not as described.",
        429 => "Too many runs or watches are in progress.",
        503 => "The server or its store is unavailable.",
        _ => "It failed.",
    }
}

fn body(body: &BodyDoc, schemas: &mut Schemas) -> Option<Value> {
    let (required, schema) = match body {
        BodyDoc::None => return None,
        BodyDoc::Required(model) => (true, schemas.model(model)),
        BodyDoc::Optional(model) => (false, json!({ "anyOf": [schemas.model(model), { "type": "null" }] })),
        BodyDoc::OptionalMap => (false, json!({ "type": ["object", "null"], "additionalProperties": true })),
    };
    Some(json!({ "required": required, "content": { "application/json": { "schema": schema } } }))
}

fn parameter(param: &Param, place: &str) -> Value {
    let mut schema = json!({ "type": param.kind });
    if param.kind == "integer" {
        schema["minimum"] = json!(0);
    }
    json!({ "name": param.name, "in": place, "required": false, "description": param.about, "schema": schema })
}

fn path_params(path: &str) -> impl Iterator<Item = Value> {
    let names = path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    names.map(|name| {
        let schema = json!({ "type": "string", "minLength": 1, "maxLength": 128 });
        json!({ "name": name, "in": "path", "required": true, "schema": schema })
    })
}

/// `GET /apps/{app_name}/state` as `get_apps_app_name_state`.
fn operation_id(method: &Method, path: &str) -> String {
    let words = path.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_' && letter != '-');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    format!("{}_{}", method.as_str().to_ascii_lowercase(), words.join("_"))
}
