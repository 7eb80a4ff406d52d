use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;
use sessile_state::SharedValue;

/// The JSON Schema of a type, without references, as models read it best.
pub(crate) fn schema_of<T: JsonSchema>() -> SharedValue {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    Value::from(schema).into()
}
