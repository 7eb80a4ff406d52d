use std::collections::{BTreeMap, VecDeque};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use sessile_agent::{FunctionDeclaration, GenerationConfig, ModelError, ModelRequest, Streaming};
use sessile_session::{Content, Part};
use sessile_state::SharedValue;

/// The body of a request.
pub(super) fn body(
    model: &str,
    request: ModelRequest,
    streaming: Streaming,
    length_field: &str,
) -> Result<Bytes, ModelError> {
    let refused = |reason: String| ModelError::Configuration { model: model.to_owned(), reason };
    let mut messages = Vec::new();
    if let Some(instruction) = request.system_instruction {
        messages.push(json!({ "role": "system", "content": instruction }));
    }
    let mut calls = Calls::default();
    for content in &request.contents {
        match content.role.as_deref() {
            Some("model") => messages.extend(assistant(content, &mut calls).map_err(refused)?),
            _ => messages.extend(user(content, &mut calls).map_err(refused)?),
        }
    }
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), Value::Array(messages));
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.into_iter().map(tool).collect());
    }
    if streaming == Streaming::Pieces {
        body.insert("stream".to_owned(), json!(true));
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    settings(&mut body, request.config, request.output_schema, length_field).map_err(refused)?;
    let body = serde_json::to_vec(&body)
        .map_err(|error| refused(format!("the request has no JSON form: {error}")))?;
    Ok(body.into())
}

/// Adds the parameters of the model. Unknown fields are sent as they are.
fn settings(
    body: &mut Map<String, Value>,
    config: GenerationConfig,
    output_schema: Option<SharedValue>,
    length_field: &str,
) -> Result<(), String> {
    if config.safety_settings.is_some() {
        return Err("safety_settings are Gemini's; this interface has none".to_owned());
    }
    let format = match (output_schema, config.response_mime_type.as_deref()) {
        (Some(schema), _) => {
            Some(json!({ "type": "json_schema", "json_schema": { "name": "answer", "schema": schema } }))
        }
        (None, Some("application/json")) => Some(json!({ "type": "json_object" })),
        (None, None | Some("text/plain")) => None,
        (None, Some(other)) => return Err(format!("response_mime_type {other:?} cannot be asked for here")),
    };
    let fields = [
        ("temperature", config.temperature.map(Value::from)),
        ("top_p", config.top_p.map(Value::from)),
        ("top_k", config.top_k.map(Value::from)),
        (length_field, config.max_output_tokens.map(Value::from)),
        ("stop", config.stop_sequences.map(Value::from)),
        ("seed", config.seed.map(Value::from)),
        ("presence_penalty", config.presence_penalty.map(Value::from)),
        ("frequency_penalty", config.frequency_penalty.map(Value::from)),
        ("response_format", format),
    ];
    body.extend(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    body.extend(config.other.into_iter().map(|(name, value)| (name, value.into_value())));
    Ok(())
}

fn tool(declaration: FunctionDeclaration) -> Value {
    let parameters = declaration
        .parameters
        .map_or_else(|| json!({ "type": "object", "properties": {} }), SharedValue::into_value);
    let function =
        json!({ "name": declaration.name, "description": declaration.description, "parameters": parameters });
    json!({ "type": "function", "function": function })
}

/// The calls that wait for a response. Every call needs an id in this interface, so one is
/// generated where there is none.
#[derive(Default)]
struct Calls {
    made: usize,
    /// Names and ids of calls without an id of their own.
    waiting: VecDeque<(String, String)>,
}

impl Calls {
    fn id_of_call(&mut self, id: Option<&str>, name: &str) -> String {
        self.made += 1;
        if let Some(id) = id {
            return id.to_owned();
        }
        let id = format!("call_{}", self.made);
        self.waiting.push_back((name.to_owned(), id.clone()));
        id
    }

    fn id_of_response(&mut self, id: Option<&str>, name: &str) -> Result<String, String> {
        if let Some(id) = id {
            return Ok(id.to_owned());
        }
        let place = self.waiting.iter().position(|(waiting, _)| waiting == name);
        let call = place.and_then(|place| self.waiting.remove(place));
        call.map(|(_, id)| id)
            .ok_or_else(|| format!("the conversation has a result of {name:?} without a call"))
    }
}

/// A message of the model with its texts and calls, without its thoughts.
fn assistant(content: &Content, calls: &mut Calls) -> Result<Option<Value>, String> {
    let mut text = String::new();
    let mut called = Vec::new();
    for part in content.parts() {
        if let Some(call) = &part.function_call {
            let name = call.name.as_deref().unwrap_or("");
            let id = calls.id_of_call(call.id.as_deref(), name);
            let arguments = text_of(call.args.as_ref())?;
            called.push(
                json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } }),
            );
        } else if let Some(said) = &part.text
            && part.thought != Some(true)
        {
            text.push_str(said);
        }
    }
    let said = if text.is_empty() { Value::Null } else { Value::from(text) };
    Ok(match (called.is_empty(), said.is_null()) {
        (true, true) => None,
        (true, false) => Some(json!({ "role": "assistant", "content": said })),
        (false, _) => Some(json!({ "role": "assistant", "content": said, "tool_calls": called })),
    })
}

/// An object as JSON text, with every digit of its numbers.
fn text_of(object: Option<&BTreeMap<String, SharedValue>>) -> Result<String, String> {
    let Some(object) = object else { return Ok("{}".to_owned()) };
    serde_json::to_string(object).map_err(|error| format!("arguments or results have no JSON form: {error}"))
}

/// A message of the user. Results of tools come first: they must follow their calls directly.
fn user(content: &Content, calls: &mut Calls) -> Result<Vec<Value>, String> {
    let mut messages = Vec::new();
    let mut said = Vec::new();
    for part in content.parts() {
        if let Some(response) = &part.function_response {
            let id = calls.id_of_response(response.id.as_deref(), response.name.as_deref().unwrap_or(""))?;
            let result = text_of(response.response.as_ref())?;
            messages.push(json!({ "role": "tool", "tool_call_id": id, "content": result }));
        } else if part.thought != Some(true) {
            said.extend(spoken(part)?);
        }
    }
    let only_text = said.iter().all(|part| part["type"] == "text");
    if only_text && !said.is_empty() {
        let texts: Vec<_> = said.iter().filter_map(|part| part["text"].as_str()).collect();
        messages.push(json!({ "role": "user", "content": texts.join("\n") }));
    } else if !said.is_empty() {
        messages.push(json!({ "role": "user", "content": said }));
    }
    Ok(messages)
}

fn spoken(part: &Part) -> Result<Option<Value>, String> {
    if let Some(text) = &part.text {
        return Ok(Some(json!({ "type": "text", "text": text })));
    }
    if let Some(blob) = &part.inline_data {
        let mime_type = blob.mime_type.as_deref().unwrap_or("application/octet-stream");
        let data = BASE64_STANDARD.encode(blob.data.as_ref().map_or(&[][..], |data| &data.0));
        let url = format!("data:{mime_type};base64,{data}");
        return Ok(Some(match mime_type {
            mime if mime.starts_with("image/") => json!({ "type": "image_url", "image_url": { "url": url } }),
            "audio/wav" => json!({ "type": "input_audio", "input_audio": { "data": data, "format": "wav" } }),
            "audio/mp3" | "audio/mpeg" => {
                json!({ "type": "input_audio", "input_audio": { "data": data, "format": "mp3" } })
            }
            _ => {
                let name = blob.display_name.as_deref().unwrap_or("file");
                json!({ "type": "file", "file": { "filename": name, "file_data": url } })
            }
        }));
    }
    if let Some(file) = &part.file_data {
        let uri = file.file_uri.as_deref().unwrap_or("");
        let is_image = file.mime_type.as_deref().is_some_and(|mime| mime.starts_with("image/"));
        if is_image && uri.starts_with("https://") {
            return Ok(Some(json!({ "type": "image_url", "image_url": { "url": uri } })));
        }
        return Err(format!("the file {uri:?} cannot be sent: only images at https:// addresses can"));
    }
    if *part == Part::default() {
        Ok(None)
    } else {
        Err("a message has a part of a kind that cannot be sent".to_owned())
    }
}
