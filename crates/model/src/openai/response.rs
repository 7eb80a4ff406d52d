use serde::Deserialize;
use serde_json::{Map, Value, json};
use sessile_agent::{ModelError, ModelResponse};
use sessile_session::{FunctionCall, Opaque, Part};
use sessile_state::SharedValue;

use crate::answer::Answer;

#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Usage>,
    model: Option<String>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    finish_reason: Option<String>,
}

/// A message of the model; in a stream, what is new in it.
#[derive(Deserialize, Default)]
pub(super) struct Message {
    pub(super) content: Option<String>,
    pub(super) refusal: Option<String>,
    /// Thoughts, from servers that send them.
    #[serde(alias = "reasoning")]
    pub(super) reasoning_content: Option<String>,
    pub(super) tool_calls: Option<Vec<ToolCall>>,
}

#[derive(Deserialize, Default)]
pub(super) struct ToolCall {
    /// The call that a piece belongs to, in a stream.
    pub(super) index: Option<u64>,
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) function: Function,
}

#[derive(Deserialize, Default)]
pub(super) struct Function {
    pub(super) name: Option<String>,
    pub(super) arguments: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

/// Reads a response that was not streamed.
pub(super) fn whole(model: &str, body: &[u8]) -> Result<ModelResponse, ModelError> {
    let completion: Completion = serde_json::from_slice(body)
        .map_err(|error| malformed(model, format!("it is not the JSON expected: {error}")))?;
    let choice = completion.choices.into_iter().next();
    let choice = choice.ok_or_else(|| malformed(model, "it has no choices".to_owned()))?;
    let mut answer = Answer::default();
    for part in spoken(&choice.message) {
        answer.push(part);
    }
    let calls = choice.message.tool_calls.into_iter().flatten();
    let calls = calls.map(|call| (call.id, call.function.name, call.function.arguments));
    answer.about.usage_metadata = completion.usage.map(usage);
    answer.about.model_version = completion.model;
    end(answer, calls, choice.finish_reason.as_deref())
}

/// The texts of a message, thoughts first.
pub(super) fn spoken(message: &Message) -> impl Iterator<Item = Part> {
    let thought =
        message.reasoning_content.iter().map(|text| Part { thought: Some(true), ..Part::text(text) });
    let texts = message.content.iter().chain(&message.refusal).map(Part::text);
    thought.chain(texts).filter(|part| part.text.as_deref() != Some(""))
}

/// The answer with its calls, and the reason why it ended. If the arguments of a call are not a
/// JSON object, the response gets an error code, as with Gemini.
pub(super) fn end(
    mut answer: Answer,
    calls: impl IntoIterator<Item = (Option<String>, Option<String>, Option<String>)>,
    finish_reason: Option<&str>,
) -> Result<ModelResponse, ModelError> {
    answer.about.finish_reason = finish_reason.map(|reason| finish(reason).to_owned());
    for (id, name, arguments) in calls {
        match object(arguments.as_deref().unwrap_or("")) {
            Ok(args) => {
                let args = args.into_iter().map(|(key, value)| (key, SharedValue::from(value))).collect();
                let id = id.filter(|id| !id.is_empty());
                answer.push(FunctionCall { id, name, args: Some(args), ..FunctionCall::default() }.into());
            }
            Err(reason) => {
                let name = name.as_deref().unwrap_or("");
                let message = format!("the arguments of the call of {name:?} cannot be read: {reason}");
                answer = Answer::about(answer.about);
                answer.about.finish_reason = Some("MALFORMED_FUNCTION_CALL".to_owned());
                answer.about.error_code = Some("MALFORMED_FUNCTION_CALL".to_owned());
                answer.about.error_message = Some(message);
                break;
            }
        }
    }
    Ok(answer.finish())
}

fn object(arguments: &str) -> Result<Map<String, Value>, String> {
    match arguments.trim() {
        "" => Ok(Map::new()),
        arguments => serde_json::from_str(arguments).map_err(|error| error.to_string()),
    }
}

fn finish(reason: &str) -> &str {
    match reason {
        "stop" | "tool_calls" | "function_call" => "STOP",
        "length" => "MAX_TOKENS",
        "content_filter" => "SAFETY",
        _ => "OTHER",
    }
}

/// The numbers of tokens, under Gemini's names.
pub(super) fn usage(usage: Usage) -> Opaque {
    let counts = [
        ("promptTokenCount", usage.prompt_tokens),
        ("candidatesTokenCount", usage.completion_tokens),
        ("totalTokenCount", usage.total_tokens),
        ("cachedContentTokenCount", usage.prompt_tokens_details.and_then(|details| details.cached_tokens)),
        ("thoughtsTokenCount", usage.completion_tokens_details.and_then(|details| details.reasoning_tokens)),
    ];
    let counts: Map<_, _> =
        counts.into_iter().filter_map(|(name, count)| Some((name.to_owned(), json!(count?)))).collect();
    Value::Object(counts).into()
}

pub(super) fn malformed(model: &str, reason: String) -> ModelError {
    ModelError::Malformed { model: model.to_owned(), reason }
}
