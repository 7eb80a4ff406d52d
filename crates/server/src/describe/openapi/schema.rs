use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::describe::model::{EVENT, Field, Kind, Model, PART, Presence};
use crate::describe::route_doc::Answer;

/// The schemas that a document refers to.
#[derive(Default)]
pub(crate) struct Schemas(BTreeMap<&'static str, Value>);

/// A session, which only responses have.
static SESSION: Model = Model::open(
    "Session",
    &[
        Field::required("id", Kind::Text, "Unique under its application and user."),
        Field::required("appName", Kind::Text, "The application."),
        Field::required("userId", Kind::Text, "The user."),
        Field::required("state", Kind::Map, "What it knows, keys with their prefixes."),
        Field::required("events", Kind::List(&Kind::Object(&EVENT)), "What happened, oldest first."),
        Field::required("lastUpdateTime", Kind::Number, "Unix seconds."),
    ],
);

static VERSION: Model = Model::open(
    "ArtifactVersion",
    &[
        Field::required("version", Kind::Integer, "Its number, from 0."),
        Field::required("canonicalUri", Kind::Text, "Where it is kept."),
        Field::required("customMetadata", Kind::Map, "The application's own notes."),
        Field::required("createTime", Kind::Number, "Unix seconds."),
        Field::optional("mimeType", Kind::Text, "The type of its bytes."),
    ],
);

impl Schemas {
    pub(crate) fn all(self) -> BTreeMap<&'static str, Value> {
        self.0
    }

    /// The schema of a response.
    pub(crate) fn answer(&mut self, answer: Answer) -> Value {
        match answer {
            Answer::One(name) => self.named(name),
            Answer::List(name) => json!({ "type": "array", "items": self.named(name) }),
            Answer::Object => json!({ "type": "object" }),
            Answer::Any | Answer::Media(_) => json!({}),
            Answer::Null => json!({ "type": "null" }),
            Answer::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Answer::Numbers => json!({ "type": "array", "items": { "type": "integer" } }),
        }
    }

    /// The schema of every error response.
    pub(crate) fn failure(&mut self) -> Value {
        let problem = json!({
            "type": "object",
            "required": ["type", "loc", "msg", "input"],
            "properties": {
                "type": { "type": "string" },
                "loc": { "type": "array", "items": { "type": ["string", "integer"] } },
                "msg": { "type": "string" },
                "input": {},
                "ctx": { "type": "object" },
            },
        });
        let detail = json!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": problem }] });
        let current = json!({
            "type": "object",
            "description": "If keys do not hold what the request had read (409): what they hold.",
        });
        let absent = json!({
            "type": "array",
            "items": { "type": "string" },
            "description": "If keys do not hold what the request had read (409): those that are absent.",
        });
        let properties = json!({ "detail": detail, "current": current, "absent": absent });
        let failure = json!({ "type": "object", "required": ["detail"], "properties": properties });
        self.0.insert("Failure", failure);
        reference("Failure")
    }

    /// A model, by reference.
    pub(crate) fn model(&mut self, model: &'static Model) -> Value {
        if !self.0.contains_key(model.name) {
            self.0.insert(model.name, Value::Null); // found again below, if it holds itself
            let schema = self.object(model);
            self.0.insert(model.name, schema);
        }
        reference(model.name)
    }

    fn named(&mut self, name: &str) -> Value {
        match [&SESSION, &EVENT, &PART, &VERSION].into_iter().find(|model| model.name == name) {
            Some(model) => self.model(model),
            None => json!({}),
        }
    }

    fn object(&mut self, model: &'static Model) -> Value {
        let mut properties = Map::new();
        for field in model.fields {
            let mut schema = self.kind(&field.kind);
            if field.presence == Presence::Optional {
                schema = json!({ "anyOf": [schema, { "type": "null" }] });
            }
            schema["description"] = json!(field.about);
            properties.insert(field.name.to_owned(), schema);
        }
        let required: Vec<&str> = model
            .fields
            .iter()
            .filter(|field| field.presence == Presence::Required)
            .map(|field| field.name)
            .collect();
        let mut schema = json!({ "type": "object", "properties": properties });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if !model.some_of.is_empty() {
            // In words: tools that make requests from the document cannot satisfy `anyOf` of
            // required fields.
            schema["description"] =
                json!(format!("At least one of {} is required.", model.some_of.join(", ")));
        }
        if model.closed {
            schema["additionalProperties"] = json!(false);
        }
        schema
    }

    fn kind(&mut self, kind: &'static Kind) -> Value {
        match kind {
            Kind::Text => json!({ "type": "string" }),
            Kind::Word(words) => json!({ "type": "string", "enum": words }),
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::Integer => json!({ "type": "integer" }),
            Kind::Number => json!({ "type": "number" }),
            Kind::Bytes => json!({ "type": "string", "contentEncoding": "base64" }),
            Kind::Operations => self.operations(),
            Kind::Map | Kind::Notes => json!({ "type": "object", "additionalProperties": true }),
            Kind::MapOf(kind) => json!({ "type": "object", "additionalProperties": self.kind(kind) }),
            Kind::Any => json!({}),
            Kind::List(kind) => json!({ "type": "array", "items": self.kind(kind) }),
            Kind::Object(model) => self.model(model),
        }
    }

    /// One operation on a state key, or a list of them.
    fn operations(&mut self) -> Value {
        let object = |name: &str, properties: Value| json!({ "type": "object", "required": [name], "properties": properties, "additionalProperties": false });
        let (number, list) = (json!({ "type": "number" }), json!({ "type": "array" }));
        let operation = json!({
            "anyOf": [
                object("add", json!({ "add": number, "min": number, "max": number })),
                object("append", json!({ "append": list })),
                object("union", json!({ "union": { "anyOf": [list, { "type": "object" }] } })),
            ],
        });
        self.0.insert("StateOperation", operation);
        let one = reference("StateOperation");
        json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
    }
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}
