//! The schema of an application's state, as its root file declares it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;
use sessile_state::{Reducer, StateSchema, UnknownReducer, ValueType};

use crate::error::ConfigError;
use crate::file::{Source, did_you_mean};
use crate::folders::{ROOT, app_folders, named};

/// The name of an application, and the schema that it declares or the error in its file.
pub type NamedSchema = (String, Result<Option<StateSchema>, ConfigError>);

/// The `state_schema` of every application in a folder, by name, in the same order as
/// [`load_apps`](crate::load_apps). Only the root files are read, so the schema is also found if
/// the agents cannot be built, for example because the key of a model is missing.
///
/// # Errors
///
/// [`ConfigError::Read`] if the folder cannot be read.
pub fn load_schemas(folder: &Path) -> Result<Vec<NamedSchema>, ConfigError> {
    Ok(app_folders(folder)?.iter().map(|app| (named(app), load_schema(app))).collect())
}

/// The `state_schema` of the application in a folder.
///
/// # Errors
///
/// [`ConfigError`] says what is wrong with the root file, and where.
pub fn load_schema(folder: &Path) -> Result<Option<StateSchema>, ConfigError> {
    let source = Source { shown: format!("{}/{ROOT}", named(folder)) };
    let file = source.read(&folder.join(ROOT))?;
    file.state_schema.map(|declared| schema(&source, &declared.value)).transpose()
}

const FIELD: &str = "state_schema";

/// The names of types in files.
const TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "list", "object", "any"];

/// The schema that a file declares.
pub(crate) fn schema(
    source: &Source,
    keys: &BTreeMap<String, Spanned<Value>>,
) -> Result<StateSchema, ConfigError> {
    let mut schema = StateSchema::new();
    for (key, declared) in keys {
        let wrong = |problem| source.wrong(declared.referenced, FIELD, format!("`{key}`: {problem}"));
        schema = schema.declare(key, value_type(&declared.value).map_err(wrong)?);
        if let Some(reducer) = reducer(&declared.value).map_err(wrong)? {
            schema = schema.reducer(key, reducer);
        }
    }
    Ok(schema)
}

/// The reducer of a key, if the file declares one.
fn reducer(declared: &Value) -> Result<Option<Reducer>, String> {
    match declared.get("reducer") {
        None => Ok(None),
        Some(Value::String(name)) => {
            name.parse().map(Some).map_err(|error: UnknownReducer| error.to_string())
        }
        Some(_) => Err("`reducer` is the name of a reducer: add, append, union or last".to_owned()),
    }
}

/// A type: its name, or a mapping with its name, bounds and items.
fn value_type(declared: &Value) -> Result<ValueType, String> {
    match declared {
        Value::String(name) => named_type(name, None),
        Value::Object(fields) => described_type(fields),
        _ => Err(format!("a type is a name ({}), or a mapping with `type`", TYPES.join(", "))),
    }
}

fn described_type(fields: &Map<String, Value>) -> Result<ValueType, String> {
    const FIELDS: [&str; 6] = ["type", "items", "nullable", "min", "max", "reducer"];
    if let Some(unknown) = fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return Err(format!("there is no such field as `{unknown}`{}", did_you_mean(unknown, &FIELDS)));
    }
    let name = match fields.get("type") {
        Some(Value::String(name)) => name,
        Some(_) => return Err("`type` is the name of a type".to_owned()),
        None => return Err("`type` is missing".to_owned()),
    };
    let items = fields.get("items").map(value_type).transpose();
    let mut described = named_type(name, items.map_err(|problem| format!("`items`: {problem}"))?)?;
    let (min, max) = (bound(fields, "min")?, bound(fields, "max")?);
    if (min.is_some() || max.is_some()) && !described.has_numbers() {
        return Err(format!("only numbers have `min` and `max`, and the type is `{name}`"));
    }
    if let (Some(min), Some(max)) = (&min, &max)
        && min.as_f64() > max.as_f64()
    {
        return Err(format!("`min` {min} is above `max` {max}"));
    }
    if let Some(min) = min {
        described = described.at_least(min);
    }
    if let Some(max) = max {
        described = described.at_most(max);
    }
    match fields.get("nullable") {
        None | Some(Value::Bool(false)) => Ok(described),
        Some(Value::Bool(true)) => Ok(described.or_null()),
        Some(_) => Err("`nullable` is true or false".to_owned()),
    }
}

fn named_type(name: &str, items: Option<ValueType>) -> Result<ValueType, String> {
    if items.is_some() && name != "list" {
        return Err(format!("only a list has `items`, and the type is `{name}`"));
    }
    Ok(match name {
        "string" => ValueType::string(),
        "integer" => ValueType::integer(),
        "number" => ValueType::number(),
        "boolean" => ValueType::boolean(),
        "list" => ValueType::list(items.unwrap_or_else(ValueType::any)),
        "object" => ValueType::object(),
        "any" => ValueType::any(),
        other => {
            let hint = did_you_mean(other, &TYPES);
            return Err(format!("there is no type `{other}`{hint}; types are {}", TYPES.join(", ")));
        }
    })
}

fn bound(fields: &Map<String, Value>, name: &str) -> Result<Option<Number>, String> {
    match fields.get(name) {
        None => Ok(None),
        Some(Value::Number(bound)) => Ok(Some(bound.clone())),
        Some(_) => Err(format!("`{name}` is a number")),
    }
}
