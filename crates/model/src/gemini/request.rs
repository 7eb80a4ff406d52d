use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};
use sessile_agent::{GenerationConfig, ModelError, ModelRequest};
use sessile_session::Content;
use sessile_state::SharedValue;

/// The fields of a configuration that belong beside `generationConfig` and not into it, in both
/// spellings.
const TOP_LEVEL: [(&str, &str); 3] =
    [("toolConfig", "tool_config"), ("cachedContent", "cached_content"), ("labels", "labels")];

/// The message of the user if the conversation is empty or ends with the model: the interface
/// requires that the last message is the user's.
const GO_ON: &str = "Go on as instructed.";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    contents: Vec<Content>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<GenerationConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    safety_settings: Option<SharedValue>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// The body of a request.
pub(super) fn body(model: &str, request: ModelRequest) -> Result<Bytes, ModelError> {
    let ModelRequest { mut contents, system_instruction, tools, mut config, output_schema, .. } = request;
    contents.iter_mut().for_each(clean);
    if contents.last().is_none_or(|content| content.role.as_deref() != Some("user")) {
        contents.push(Content::text("user", GO_ON));
    }
    let declarations: Vec<Value> = tools
        .into_iter()
        .map(|tool| {
            let mut declaration = json!({ "name": tool.name, "description": tool.description });
            if let Some(parameters) = tool.parameters {
                declaration["parametersJsonSchema"] = parameters.into_value();
            }
            declaration
        })
        .collect();
    let mut other = Map::new();
    for (camel, snake) in TOP_LEVEL {
        if let Some(value) = config.other.remove(camel).or_else(|| config.other.remove(snake)) {
            other.insert(camel.to_owned(), value.into_value());
        }
    }
    if let Some(schema) = output_schema {
        config.response_mime_type.get_or_insert_with(|| "application/json".to_owned());
        config.other.insert("responseJsonSchema".to_owned(), schema);
    }
    let safety_settings = config.safety_settings.take();
    let body = Body {
        contents,
        system_instruction: system_instruction.map(|text| Content::text("user", text)),
        tools: if declarations.is_empty() {
            Vec::new()
        } else {
            vec![json!({ "functionDeclarations": declarations })]
        },
        generation_config: (config != GenerationConfig::default()).then_some(config),
        safety_settings,
        other,
    };
    serde_json::to_vec(&body).map(Bytes::from).map_err(|error| ModelError::Configuration {
        model: model.to_owned(),
        reason: format!("the request has no JSON form: {error}"),
    })
}

/// Removes what the interface refuses: ids of calls that the runner generated, and names of files.
fn clean(content: &mut Content) {
    for part in content.parts.iter_mut().flatten() {
        if let Some(call) = &mut part.function_call {
            without_own_id(&mut call.id);
        }
        if let Some(response) = &mut part.function_response {
            without_own_id(&mut response.id);
        }
        if let Some(data) = &mut part.inline_data {
            data.display_name = None;
        }
        if let Some(file) = &mut part.file_data {
            file.display_name = None;
        }
    }
}

fn without_own_id(id: &mut Option<String>) {
    id.take_if(|id| id.starts_with("adk-"));
}
