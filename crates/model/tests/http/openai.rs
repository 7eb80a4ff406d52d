use serde_json::{Value, json};
use sessile_agent::{FunctionDeclaration, GenerationConfig, ModelRequest, Streaming};
use sessile_model::{Credentials, Endpoint, OpenAi};
use sessile_session::Content;

use crate::wire::{Answer, End, Server, ask, hello, parts, pieces, whole};

fn openai(server: &Server) -> OpenAi {
    let endpoint = Endpoint::openai("the-key").with_base_url(format!("{}/v1/", server.url));
    OpenAi::new("gpt-4o", endpoint).expect("it is configured")
}

fn completion(message: Value, finish: &str) -> Value {
    json!({
        "id": "c1", "object": "chat.completion", "model": "gpt-4o-2024",
        "choices": [{ "index": 0, "message": message, "finish_reason": finish }],
        "usage": {
            "prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8,
            "prompt_tokens_details": { "cached_tokens": 2 }, "completion_tokens_details": { "reasoning_tokens": 1 },
        },
    })
}

fn said() -> Value {
    completion(json!({ "role": "assistant", "content": "hi" }), "stop")
}

fn chunk(delta: Value, finish: Option<&str>) -> Value {
    json!({ "model": "gpt-4o-2024", "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
}

fn with_done(events: &[Value]) -> Answer {
    let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    Answer::status(200, &format!("{text}data: [DONE]\n\n"))
}

#[tokio::test]
async fn a_request_is_what_the_interface_expects() {
    let server = Server::start([Answer::json(&said())]).await;
    let contents = json!([
        { "role": "user", "parts": [{ "text": "look" }, { "inlineData": { "mimeType": "image/png", "data": "_-8=" } }] },
        { "role": "model", "parts": [
            { "text": "hm", "thought": true },
            { "text": "I look. " },
            { "functionCall": { "id": "c9", "name": "see", "args": { "at": "it" } } },
            { "functionCall": { "name": "wait" } },
        ] },
        { "role": "user", "parts": [
            { "functionResponse": { "id": "c9", "name": "see", "response": { "result": 1.50 } } },
            { "functionResponse": { "name": "wait", "response": { "ok": true } } },
        ] },
        { "role": "user", "parts": [{ "text": "and" }, { "text": "now?" }] },
    ]);
    let config = json!({
        "temperature": 0.5, "topP": 0.25, "maxOutputTokens": 9, "stopSequences": ["END"], "seed": 3,
        "presencePenalty": 0.5, "frequencyPenalty": 0.25, "reasoning_effort": "low",
    });
    let request = ModelRequest {
        contents: serde_json::from_value(contents).unwrap(),
        system_instruction: Some("be kind".to_owned()),
        tools: vec![FunctionDeclaration {
            name: "see".to_owned(),
            description: "looks".to_owned(),
            parameters: None,
        }],
        config: serde_json::from_value::<GenerationConfig>(config).unwrap(),
        output_schema: Some(json!({ "type": "object" }).into()),
        ..ModelRequest::default()
    };
    ask(&openai(&server), request, Streaming::Whole).await.remove(0).unwrap();
    let asked = server.asked().remove(0);
    assert_eq!(asked.path, "/v1/chat/completions");
    assert_eq!(asked.header("authorization"), Some("Bearer the-key"));
    assert_eq!(
        asked.body,
        json!({
            "model": "gpt-4o",
            "messages": [
                { "role": "system", "content": "be kind" },
                { "role": "user", "content": [
                    { "type": "text", "text": "look" },
                    { "type": "image_url", "image_url": { "url": "data:image/png;base64,/+8=" } },
                ] },
                { "role": "assistant", "content": "I look. ", "tool_calls": [
                    { "id": "c9", "type": "function", "function": { "name": "see", "arguments": "{\"at\":\"it\"}" } },
                    { "id": "call_2", "type": "function", "function": { "name": "wait", "arguments": "{}" } },
                ] },
                { "role": "tool", "tool_call_id": "c9", "content": "{\"result\":1.5}" },
                { "role": "tool", "tool_call_id": "call_2", "content": "{\"ok\":true}" },
                { "role": "user", "content": "and\nnow?" },
            ],
            "tools": [{ "type": "function", "function": {
                "name": "see", "description": "looks", "parameters": { "type": "object", "properties": {} },
            } }],
            "temperature": 0.5, "top_p": 0.25, "max_tokens": 9, "stop": ["END"], "seed": 3,
            "presence_penalty": 0.5, "frequency_penalty": 0.25, "reasoning_effort": "low",
            "response_format": { "type": "json_schema", "json_schema": { "name": "answer", "schema": { "type": "object" } } },
        })
    );
}

#[tokio::test]
async fn a_server_without_keys_gets_none() {
    let server = Server::start([Answer::json(&said())]).await;
    let endpoint = Endpoint::new(&server.url, Credentials::none());
    whole(&OpenAi::new("llama", endpoint).unwrap()).await.unwrap();
    assert_eq!(server.asked()[0].header("authorization"), None);
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_before_anything_is_sent() {
    let server = Server::start([]).await;
    let content = |part: Value| {
        vec![serde_json::from_value::<Content>(json!({ "role": "user", "parts": [part] })).unwrap()]
    };
    let config = |config: Value| serde_json::from_value::<GenerationConfig>(config).unwrap();
    for (request, reason) in [
        (
            ModelRequest { contents: content(json!({ "fileData": { "fileUri": "gs://a/b" } })), ..hello() },
            "the file \"gs://a/b\" cannot be sent: only images at https:// addresses can",
        ),
        (
            ModelRequest {
                contents: content(json!({ "functionResponse": { "name": "x", "response": {} } })),
                ..hello()
            },
            "the conversation has a result of \"x\" without a call",
        ),
        (
            ModelRequest { contents: content(json!({ "executableCode": { "code": "1" } })), ..hello() },
            "a message has a part of a kind that cannot be sent",
        ),
        (
            ModelRequest { config: config(json!({ "safety_settings": [] })), ..hello() },
            "safety_settings are Gemini's; this interface has none",
        ),
        (
            ModelRequest { config: config(json!({ "responseMimeType": "text/x.enum" })), ..hello() },
            "response_mime_type \"text/x.enum\" cannot be asked for here",
        ),
    ] {
        let error = ask(&openai(&server), request, Streaming::Whole).await.remove(0).unwrap_err();
        assert_eq!(error.to_string(), format!("the model \"gpt-4o\" cannot be used: {reason}"));
    }
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn a_whole_answer_has_text_thoughts_parallel_calls_and_usage() {
    let message = json!({
        "role": "assistant", "content": "Both.", "reasoning_content": "hm", "refusal": null,
        "tool_calls": [
            { "id": "a1", "type": "function", "function": { "name": "a", "arguments": "{\"x\": 1.50}" } },
            { "id": "", "type": "function", "function": { "name": "b", "arguments": "" } },
        ],
    });
    let server = Server::start([Answer::json(&completion(message, "tool_calls"))]).await;
    let response = whole(&openai(&server)).await.unwrap();
    assert_eq!(
        parts(&response),
        json!([
            { "text": "hm", "thought": true },
            { "text": "Both." },
            { "functionCall": { "id": "a1", "name": "a", "args": { "x": 1.5 } } },
            { "functionCall": { "name": "b", "args": {} } },
        ])
    );
    assert_eq!(response.finish_reason.as_deref(), Some("STOP"));
    assert_eq!(response.model_version.as_deref(), Some("gpt-4o-2024"));
    assert_eq!(
        response.usage_metadata.unwrap().value(),
        &json!({
            "prompt_token_count": 5, "candidates_token_count": 3, "total_token_count": 8,
            "cached_content_token_count": 2, "thoughts_token_count": 1,
        })
    );
}

#[tokio::test]
async fn an_answer_that_is_short_refused_empty_or_malformed_says_so() {
    let call = json!({ "tool_calls": [
        { "id": "1", "function": { "name": "ok", "arguments": "{}" } },
        { "id": "2", "function": { "name": "bad", "arguments": "{\"a\": " } },
    ] });
    let server = Server::start([
        Answer::json(&completion(json!({ "content": "half" }), "length")),
        Answer::json(&completion(json!({ "content": null }), "content_filter")),
        Answer::json(&completion(json!({ "content": "" }), "stop")),
        Answer::json(&completion(json!({ "content": null, "refusal": "I will not" }), "stop")),
        Answer::json(&completion(call, "tool_calls")),
        Answer::json(&json!({ "choices": [] })),
    ])
    .await;
    let model = openai(&server);
    let mut seen = Vec::new();
    for _ in 0..5 {
        let response = whole(&model).await.unwrap();
        seen.push((parts(&response), response.finish_reason, response.error_code));
    }
    let text = |text: &str| json!([{ "text": text }]);
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        seen,
        [
            (text("half"), some("MAX_TOKENS"), None),
            (Value::Null, some("SAFETY"), some("SAFETY")),
            (Value::Null, some("STOP"), some("MODEL_RETURNED_NO_CONTENT")),
            (text("I will not"), some("STOP"), None),
            (Value::Null, some("MALFORMED_FUNCTION_CALL"), some("MALFORMED_FUNCTION_CALL")),
        ]
    );
    let error = whole(&model).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the model \"gpt-4o\" answered something that cannot be read: it has no choices"
    );
}

/// Text, and two calls whose arguments come interleaved.
fn everything() -> Vec<Value> {
    let call = |call: Value| json!({ "tool_calls": [call] });
    vec![
        chunk(json!({ "role": "assistant", "content": "" }), None),
        chunk(json!({ "reasoning": "hm" }), None),
        chunk(json!({ "content": "Grü" }), None),
        chunk(json!({ "content": "ße 🦀" }), None),
        chunk(
            call(
                json!({ "index": 0, "id": "a1", "type": "function", "function": { "name": "a", "arguments": "" } }),
            ),
            None,
        ),
        chunk(
            call(json!({ "index": 1, "id": "b1", "function": { "name": "b", "arguments": "{\"k\"" } })),
            None,
        ),
        chunk(call(json!({ "index": 0, "function": { "arguments": "{\"x\":" } })), None),
        chunk(call(json!({ "index": 1, "function": { "arguments": ":\"ö\"}" } })), None),
        chunk(call(json!({ "index": 0, "function": { "arguments": " 1}" } })), None),
        chunk(json!({}), Some("tool_calls")),
        json!({ "choices": [], "usage": { "prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3 } }),
    ]
}

#[tokio::test]
async fn pieces_of_text_come_at_once_and_calls_when_they_are_whole() {
    for bytes in [1, 3, 10, 5000] {
        let server = Server::start([with_done(&everything()).in_chunks_of(bytes)]).await;
        let (pieces, last) = pieces(&openai(&server)).await;
        assert_eq!(
            pieces,
            [
                json!([{ "text": "hm", "thought": true }]),
                json!([{ "text": "Grü" }]),
                json!([{ "text": "ße 🦀" }])
            ]
        );
        let last = last.unwrap();
        assert_eq!(
            parts(&last),
            json!([
                { "text": "hm", "thought": true },
                { "text": "Grüße 🦀" },
                { "functionCall": { "id": "a1", "name": "a", "args": { "x": 1 } } },
                { "functionCall": { "id": "b1", "name": "b", "args": { "k": "ö" } } },
            ])
        );
        assert_eq!((last.partial, last.finish_reason.as_deref()), (Some(false), Some("STOP")));
        assert_eq!(last.usage_metadata.unwrap().value()["total_token_count"], 3);
        let asked = server.asked().remove(0);
        assert_eq!(asked.body["stream"], true);
        assert_eq!(asked.body["stream_options"], json!({ "include_usage": true }));
    }
}

#[tokio::test]
async fn calls_that_are_not_counted_begin_with_their_ids() {
    let call = |id: Option<&str>, arguments: &str| {
        let function = json!({ "name": id.map(|_| "f"), "arguments": arguments });
        chunk(json!({ "tool_calls": [{ "id": id, "function": function }] }), None)
    };
    let events =
        [call(Some("1"), "{"), call(None, "}"), call(Some("2"), "{}"), chunk(json!({}), Some("tool_calls"))];
    let server = Server::start([Answer::events(&events)]).await;
    let last = pieces(&openai(&server)).await.1.unwrap();
    assert_eq!(
        parts(&last),
        json!([
            { "functionCall": { "id": "1", "name": "f", "args": {} } },
            { "functionCall": { "id": "2", "name": "f", "args": {} } },
        ])
    );
}

#[tokio::test]
async fn a_stream_that_ends_too_soon_is_an_error_after_its_pieces() {
    let half = || [chunk(json!({ "content": "half" }), None)];
    let server = Server::start([
        Answer::events(&half()),
        Answer::events(&half()).ending(End::CutOff),
        Answer::events(&[json!({ "error": { "message": "out of memory", "code": "server_error" } })]),
        Answer::status(200, "data: nonsense\n\n"),
    ])
    .await;
    let model = openai(&server);
    for _ in 0..2 {
        let (one, last) = pieces(&model).await;
        assert_eq!(one, [json!([{ "text": "half" }])]);
        assert_eq!(last.unwrap_err().code(), "MODEL_UNAVAILABLE");
    }
    let error = pieces(&model).await.1.unwrap_err();
    assert_eq!(error.to_string(), "the model \"gpt-4o\" is unavailable: out of memory (500)");
    assert_eq!(pieces(&model).await.1.unwrap_err().code(), "MODEL_MALFORMED_ANSWER");
}
