use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use sessile_agent::{FunctionDeclaration, GenerationConfig, ModelRequest, Streaming};
use sessile_model::{Credentials, Endpoint, Gemini, TokenProvider};
use sessile_session::{BoxError, Content};

use crate::wire::{Answer, End, Server, ask, hello, parts, pieces, whole};

fn gemini(server: &Server) -> Gemini {
    Gemini::new("gemini-2.5-flash", Endpoint::gemini("the-key").with_base_url(&server.url))
        .expect("it is configured")
}

fn candidate(parts: Value, finish: Option<&str>) -> Value {
    let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0 });
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": { "promptTokenCount": 4, "candidatesTokenCount": 2, "totalTokenCount": 6 },
        "modelVersion": "gemini-2.5-flash-001",
        "responseId": "r1"
    })
}

#[tokio::test]
async fn a_request_is_what_the_interface_expects() {
    let server = Server::start([Answer::json(&candidate(json!([{ "text": "hi" }]), Some("STOP")))]).await;
    let contents = json!([
        { "role": "user", "parts": [{ "text": "look" }, { "inlineData": { "mimeType": "image/png", "data": "_-8=", "displayName": "x.png" } }] },
        { "role": "model", "parts": [
            { "functionCall": { "id": "adk-1", "name": "see", "args": { "camelKey": 1 } }, "thoughtSignature": "c2ln" },
            { "functionCall": { "id": "own", "name": "see", "args": {} } },
        ] },
        { "role": "user", "parts": [
            { "functionResponse": { "id": "adk-1", "name": "see", "response": { "result": null } } },
            { "functionResponse": { "id": "own", "name": "see", "response": { "ok": true } } },
        ] },
    ]);
    let config = json!({
        "temperature": 0.5, "max_output_tokens": 9, "stop_sequences": ["END"],
        "safety_settings": [{ "category": "C", "threshold": "T" }],
        "thinking_config": { "thinking_budget": 7 }, "labels": { "team": "a" }, "tool_config": { "functionCallingConfig": { "mode": "ANY" } },
    });
    let request = ModelRequest {
        contents: serde_json::from_value(contents).unwrap(),
        system_instruction: Some("be kind".to_owned()),
        tools: vec![
            FunctionDeclaration {
                name: "see".to_owned(),
                description: "looks".to_owned(),
                parameters: Some(json!({ "type": "object" }).into()),
            },
            FunctionDeclaration {
                name: "wait".to_owned(),
                description: "waits".to_owned(),
                parameters: None,
            },
        ],
        config: serde_json::from_value::<GenerationConfig>(config).unwrap(),
        output_schema: Some(json!({ "type": "object", "properties": { "a": { "type": "string" } } }).into()),
        ..ModelRequest::default()
    };
    ask(&gemini(&server), request, Streaming::Whole).await.remove(0).unwrap();
    let asked = server.asked().remove(0);
    assert_eq!(asked.path, "/v1beta/models/gemini-2.5-flash:generateContent");
    assert_eq!(asked.header("x-goog-api-key"), Some("the-key"));
    assert_eq!(asked.header("content-type"), Some("application/json"));
    assert_eq!(
        asked.body,
        json!({
            "contents": [
                { "role": "user", "parts": [{ "text": "look" }, { "inlineData": { "mimeType": "image/png", "data": "_-8=" } }] },
                { "role": "model", "parts": [
                    { "functionCall": { "name": "see", "args": { "camelKey": 1 } }, "thoughtSignature": "c2ln" },
                    { "functionCall": { "id": "own", "name": "see", "args": {} } },
                ] },
                { "role": "user", "parts": [
                    { "functionResponse": { "name": "see", "response": { "result": null } } },
                    { "functionResponse": { "id": "own", "name": "see", "response": { "ok": true } } },
                ] },
            ],
            "systemInstruction": { "role": "user", "parts": [{ "text": "be kind" }] },
            "tools": [{ "functionDeclarations": [
                { "name": "see", "description": "looks", "parametersJsonSchema": { "type": "object" } },
                { "name": "wait", "description": "waits" },
            ] }],
            "generationConfig": {
                "temperature": 0.5, "maxOutputTokens": 9, "stopSequences": ["END"], "responseMimeType": "application/json",
                "responseJsonSchema": { "type": "object", "properties": { "a": { "type": "string" } } },
                "thinking_config": { "thinking_budget": 7 },
            },
            "safetySettings": [{ "category": "C", "threshold": "T" }],
            "labels": { "team": "a" },
            "toolConfig": { "functionCallingConfig": { "mode": "ANY" } },
        })
    );
}

#[tokio::test]
async fn the_user_always_speaks_last_and_a_request_may_name_another_model() {
    let answer = || Answer::json(&candidate(json!([{ "text": "hi" }]), Some("STOP")));
    let server = Server::start([answer(), answer()]).await;
    let model = gemini(&server);
    ask(&model, ModelRequest::default(), Streaming::Whole).await.remove(0).unwrap();
    let contents = vec![Content::text("user", "a"), Content::text("model", "b")];
    let request =
        ModelRequest { contents, model: Some("models/gemini-pro".to_owned()), ..ModelRequest::default() };
    ask(&model, request, Streaming::Whole).await.remove(0).unwrap();
    let asked = server.asked();
    assert_eq!(asked[0].body["contents"].as_array().unwrap().len(), 1);
    assert_eq!(asked[0].body["contents"][0]["role"], "user");
    assert_eq!(asked[1].body["contents"][2]["role"], "user");
    assert_eq!(asked[1].path, "/v1beta/models/gemini-pro:generateContent");
    let request = ModelRequest { model: Some("../secrets".to_owned()), ..hello() };
    let error = ask(&model, request, Streaming::Whole).await.remove(0).unwrap_err();
    assert_eq!(error.code(), "MODEL_CONFIGURATION");
}

#[tokio::test]
async fn a_whole_answer_keeps_calls_thoughts_signatures_and_what_it_knows_about_itself() {
    let said = json!([
        { "text": "hm", "thought": true },
        { "functionCall": { "name": "a", "args": { "x": 1.5 } }, "thoughtSignature": "c2ln" },
        { "functionCall": { "id": "7", "name": "b" } },
    ]);
    let mut body = candidate(said.clone(), Some("STOP"));
    body["candidates"][0]["groundingMetadata"] = json!({ "webSearchQueries": ["q"] });
    body["candidates"][0]["avgLogprobs"] = json!(-0.25);
    let server = Server::start([Answer::json(&body)]).await;
    let response = whole(&gemini(&server)).await.unwrap();
    assert_eq!(parts(&response), said);
    assert_eq!(response.partial, None);
    assert_eq!(response.finish_reason.as_deref(), Some("STOP"));
    assert_eq!(response.error_code, None);
    assert_eq!(response.model_version.as_deref(), Some("gemini-2.5-flash-001"));
    assert_eq!(response.avg_logprobs, Some(-0.25));
    assert_eq!(response.grounding_metadata.unwrap().value(), &json!({ "web_search_queries": ["q"] }));
    assert_eq!(
        response.usage_metadata.unwrap().value(),
        &json!({ "prompt_token_count": 4, "candidates_token_count": 2, "total_token_count": 6 })
    );
}

#[tokio::test]
async fn an_answer_without_content_carries_the_reason_as_its_error_code() {
    let nothing =
        |finish: &str| json!({ "candidates": [{ "finishReason": finish, "finishMessage": "because" }] });
    let cases = [
        (nothing("SAFETY"), "SAFETY", "because"),
        (
            nothing("STOP"),
            "MODEL_RETURNED_NO_CONTENT",
            "the model stopped without saying or calling anything",
        ),
        (
            candidate(json!([{ "text": "hm", "thought": true }, { "text": " \n" }]), Some("STOP")),
            "MODEL_RETURNED_NO_CONTENT",
            "the model stopped without saying or calling anything",
        ),
        (json!({}), "MODEL_RETURNED_NO_CONTENT", "the model stopped without saying or calling anything"),
        (
            json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "no" } }),
            "PROHIBITED_CONTENT",
            "no",
        ),
        (json!({ "promptFeedback": { "blockReason": "OTHER" } }), "OTHER", "the prompt was blocked"),
    ];
    for (body, code, message) in cases {
        let server = Server::start([Answer::json(&body)]).await;
        let response = whole(&gemini(&server)).await.unwrap();
        assert_eq!(response.error_code.as_deref(), Some(code), "{body}");
        assert_eq!(response.error_message.as_deref(), Some(message), "{body}");
    }
    let server =
        Server::start([Answer::json(&candidate(json!([{ "text": "half" }]), Some("MAX_TOKENS")))]).await;
    let response = whole(&gemini(&server)).await.unwrap();
    assert_eq!((response.error_code, response.finish_reason.as_deref()), (None, Some("MAX_TOKENS")));
}

/// A stream with everything in it, however it is cut.
fn everything() -> Vec<Value> {
    let mut first = candidate(json!([{ "text": "Let me ", "thought": true }]), None);
    first["usageMetadata"] = json!({ "totalTokenCount": 1 });
    vec![
        first,
        candidate(json!([{ "text": "think.", "thought": true }]), None),
        candidate(json!([{ "text": "Grüße, " }]), None),
        candidate(json!([{ "text": "🦀 und " }, { "text": "mehr" }]), None),
        candidate(json!([{ "text": "", "thoughtSignature": "c2ln" }]), None),
        candidate(json!([{ "functionCall": { "name": "a", "args": { "ä": "ö" } } }]), None),
        candidate(
            json!([{ "functionCall": { "id": "7", "name": "b", "args": {} }, "thoughtSignature": "dHdv" }]),
            None,
        ),
        candidate(json!([{ "text": "Done" }]), None),
        candidate(json!([{ "text": "" }]), Some("STOP")),
    ]
}

fn everything_joined() -> Value {
    json!([
        { "text": "Let me think.", "thought": true },
        { "text": "Grüße, 🦀 und mehr", "thoughtSignature": "c2ln" },
        { "functionCall": { "name": "a", "args": { "ä": "ö" } } },
        { "functionCall": { "id": "7", "name": "b", "args": {} }, "thoughtSignature": "dHdv" },
        { "text": "Done" },
    ])
}

#[tokio::test]
async fn pieces_come_as_they_are_and_the_whole_joins_what_belongs_together() {
    let server = Server::start([Answer::events(&everything())]).await;
    let (pieces, last) = pieces(&gemini(&server)).await;
    let sent: Vec<Value> =
        everything().iter().map(|event| event["candidates"][0]["content"]["parts"].clone()).collect();
    assert_eq!(pieces, sent[..8], "all but the last, which says nothing");
    let last = last.unwrap();
    assert_eq!(parts(&last), everything_joined());
    assert_eq!(last.partial, Some(false));
    assert_eq!(last.finish_reason.as_deref(), Some("STOP"));
    assert_eq!(last.usage_metadata.unwrap().value()["total_token_count"], 6);
    let asked = server.asked().remove(0);
    assert_eq!(asked.path, "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse");
}

#[tokio::test]
async fn a_stream_may_be_cut_anywhere() {
    for bytes in [1, 2, 3, 5, 7, 64, 1000] {
        let server = Server::start([Answer::events(&everything()).in_chunks_of(bytes)]).await;
        let (pieces, last) = pieces(&gemini(&server)).await;
        assert_eq!(pieces.len(), 8, "in chunks of {bytes}");
        assert_eq!(parts(&last.unwrap()), everything_joined(), "in chunks of {bytes}");
    }
}

#[tokio::test]
async fn a_stream_may_have_other_line_ends_comments_fields_and_a_byte_order_mark() {
    let hello = candidate(json!([{ "text": "hel" }]), None);
    let end = candidate(json!([{ "text": "lo" }]), Some("STOP")).to_string();
    let (left, right) = end.split_once(',').expect("JSON has commas");
    let text = format!(
        "\u{feff}: a comment\r\nevent: message\r\nid: 4\r\ndata:{hello}\r\n\r\n\r\n:\r\nretry: 10\r\ndata: {left},\r\ndata: {right}\r\n\r\n"
    );
    for bytes in [1, 2, 4096] {
        let server = Server::start([Answer::status(200, &text).in_chunks_of(bytes)]).await;
        let (pieces, last) = pieces(&gemini(&server)).await;
        assert_eq!(pieces, [json!([{ "text": "hel" }]), json!([{ "text": "lo" }])]);
        assert_eq!(parts(&last.unwrap()), json!([{ "text": "hello" }]));
    }
}

#[tokio::test]
async fn a_picture_in_one_line_comes_whole() {
    let data = "QUJD".repeat(200_000);
    let picture = json!([{ "inlineData": { "mimeType": "image/png", "data": data } }]);
    let server =
        Server::start([Answer::events(&[candidate(picture.clone(), Some("STOP"))]).in_chunks_of(1000)]).await;
    let (pieces, last) = pieces(&gemini(&server)).await;
    assert!(pieces == [picture.clone()]);
    assert!(parts(&last.unwrap()) == picture);
}

#[tokio::test]
async fn a_stream_that_is_blocked_or_says_nothing_ends_with_an_error_code() {
    let blocked =
        json!({ "promptFeedback": { "blockReason": "SAFETY" }, "usageMetadata": { "promptTokenCount": 1 } });
    let server = Server::start([
        Answer::events(&[blocked]),
        Answer::events(&[candidate(json!([]), Some("STOP"))]),
        Answer::events(&[
            candidate(json!([{ "text": "bad" }]), None),
            json!({ "candidates": [{ "finishReason": "RECITATION" }] }),
        ]),
    ])
    .await;
    let model = gemini(&server);
    let (none, last) = pieces(&model).await;
    assert!(none.is_empty());
    assert_eq!(last.unwrap().error_code.as_deref(), Some("SAFETY"));
    assert_eq!(pieces(&model).await.1.unwrap().error_code.as_deref(), Some("MODEL_RETURNED_NO_CONTENT"));
    let (one, last) = pieces(&model).await;
    let last = last.unwrap();
    assert_eq!(one, [json!([{ "text": "bad" }])]);
    assert_eq!(
        (parts(&last), last.finish_reason.as_deref()),
        (json!([{ "text": "bad" }]), Some("RECITATION"))
    );
}

#[tokio::test]
async fn a_stream_that_ends_too_soon_is_an_error_after_its_pieces() {
    let half = || [candidate(json!([{ "text": "half an" }]), None)];
    let server = Server::start([
        Answer::events(&half()),
        Answer::events(&half()).ending(End::CutOff),
        Answer::events(&[
            candidate(json!([{ "text": "a" }]), None),
            json!({ "error": { "code": 503, "message": "overloaded" } }),
        ]),
        Answer::status(200, "data: {\"candidates\": [}\n\n"),
    ])
    .await;
    let model = gemini(&server);
    for _ in 0..2 {
        let (one, last) = pieces(&model).await;
        assert_eq!(one, [json!([{ "text": "half an" }])]);
        assert_eq!(last.unwrap_err().code(), "MODEL_UNAVAILABLE");
    }
    let (one, last) = pieces(&model).await;
    assert_eq!(one.len(), 1);
    assert_eq!(
        last.unwrap_err().to_string(),
        "the model \"gemini-2.5-flash\" is unavailable: overloaded (503)"
    );
    assert_eq!(pieces(&model).await.1.unwrap_err().code(), "MODEL_MALFORMED_ANSWER");
    assert_eq!(server.asked().len(), 4, "nothing is asked again once an answer has begun");
}

struct Tokens;

#[async_trait]
impl TokenProvider for Tokens {
    async fn token(&self) -> Result<String, BoxError> {
        Ok("short-lived".to_owned())
    }
}

struct NoTokens;

#[async_trait]
impl TokenProvider for NoTokens {
    async fn token(&self) -> Result<String, BoxError> {
        Err("not logged in".into())
    }
}

#[tokio::test]
async fn google_cloud_is_asked_in_a_project_with_a_token() {
    let server = Server::start([Answer::json(&candidate(json!([{ "text": "hi" }]), Some("STOP")))]).await;
    let endpoint = Endpoint::vertex("my-project", "europe-west4", Arc::new(Tokens));
    assert!(
        format!("{endpoint:?}")
            .contains("https://europe-west4-aiplatform.googleapis.com/v1beta1/projects/my-project")
    );
    let endpoint = endpoint.with_base_url(&server.url);
    whole(&Gemini::new("gemini-2.5-pro", endpoint.clone()).unwrap()).await.unwrap();
    let asked = server.asked().remove(0);
    assert_eq!(
        asked.path,
        "/v1beta1/projects/my-project/locations/europe-west4/publishers/google/models/gemini-2.5-pro:generateContent"
    );
    assert_eq!(asked.header("authorization"), Some("Bearer short-lived"));
    assert_eq!(asked.header("x-goog-api-key"), None);
    let endpoint = endpoint.with_credentials(Credentials::tokens(Arc::new(NoTokens)));
    let error = whole(&Gemini::new("gemini-2.5-pro", endpoint).unwrap()).await.unwrap_err();
    assert_eq!(
        crate::wire::text(&error),
        "the model \"gemini-2.5-pro\" is unavailable: no access token is available: not logged in"
    );
}
