//! The scripted model: turns, rules, pieces, failures, and many conversations at once.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use sessile_agent::{Model, ModelError, ModelRequest, ModelResponse, Streaming};
use sessile_model::{Call, Requests, Rule, Scripted, call, calls, fail, reply, respond};
use sessile_session::{Content, FunctionResponse, Part};

/// A conversation that ends with what the user says.
fn said(texts: &[&str]) -> ModelRequest {
    let role = |index: usize| if (texts.len() - index) % 2 == 1 { "user" } else { "model" };
    let contents = texts.iter().enumerate().map(|(index, text)| Content::text(role(index), *text)).collect();
    ModelRequest { contents, ..ModelRequest::default() }
}

/// A conversation that ends with the result of a tool.
fn answered(tool: &str, result: Value) -> ModelRequest {
    let response = FunctionResponse {
        name: Some(tool.to_owned()),
        response: serde_json::from_value(result).expect("a result is an object"),
        ..FunctionResponse::default()
    };
    let part = Part::from(response);
    let content = Content { role: Some("user".to_owned()), parts: Some(vec![part]), ..Content::default() };
    ModelRequest { contents: vec![content], ..ModelRequest::default() }
}

async fn ask(
    model: &Scripted,
    request: ModelRequest,
    streaming: Streaming,
) -> Vec<Result<ModelResponse, ModelError>> {
    match model.generate(request, streaming).await {
        Ok(stream) => stream.collect().await,
        Err(error) => vec![Err(error)],
    }
}

async fn whole(model: &Scripted, request: ModelRequest) -> Value {
    let mut answers = ask(model, request, Streaming::Whole).await;
    assert_eq!(answers.len(), 1, "a whole answer is one response");
    json(&answers.remove(0).expect("the model answers"))
}

async fn failure(model: &Scripted, request: ModelRequest) -> String {
    let mut answers = ask(model, request, Streaming::Whole).await;
    let error = answers.remove(0).expect_err("the model fails");
    format!("{}: {error}", error.code())
}

fn json(response: &ModelResponse) -> Value {
    serde_json::to_value(response.content.as_ref().map(Content::parts)).expect("parts have a JSON form")
}

#[tokio::test]
async fn turns_are_given_in_order_and_their_end_is_an_error() {
    let model = Scripted::new([reply("one"), call("add", json!({ "n": 1 }))]);
    assert_eq!(whole(&model, said(&["a"])).await, json!([{ "text": "one" }]));
    assert_eq!(
        whole(&model, said(&["a"])).await,
        json!([{ "functionCall": { "name": "add", "args": { "n": 1 } } }])
    );
    assert_eq!(
        failure(&model, said(&["a"])).await,
        "SCRIPT_ENDED: the script \"scripted\" has only 2 turns and was asked once more"
    );
}

#[tokio::test]
async fn each_conversation_gets_the_script_from_its_beginning() {
    let model = Scripted::per_conversation([reply("one"), reply("two")]);
    for _ in 0..3 {
        assert_eq!(whole(&model, said(&["a"])).await, json!([{ "text": "one" }]));
    }
    assert_eq!(whole(&model, said(&["a", "one", "b"])).await, json!([{ "text": "two" }]));
    assert!(failure(&model, said(&["a", "one", "b", "two", "c"])).await.starts_with("SCRIPT_ENDED"));
    let model = Scripted::per_conversation([reply("one"), reply("two")]).with_repeat();
    assert_eq!(whole(&model, said(&["a", "one", "b", "two", "c"])).await, json!([{ "text": "one" }]));
}

#[tokio::test]
async fn several_calls_come_in_one_answer_with_text_thoughts_and_ids() {
    let turn = calls([Call::new("a", json!({})).with_id("7"), Call::new("b", json!({ "x": [1] }))]);
    let model = Scripted::new([turn.and_thought("hm").and_text("both")]);
    assert_eq!(
        whole(&model, said(&["go"])).await,
        json!([
            { "functionCall": { "id": "7", "name": "a", "args": {} } },
            { "functionCall": { "name": "b", "args": { "x": [1] } } },
            { "text": "hm", "thought": true },
            { "text": "both" },
        ])
    );
}

#[tokio::test]
async fn pieces_join_to_the_whole_which_comes_last() {
    let model = Scripted::new([reply("to be or").with_usage(3, 4), reply("").in_pieces(["He", "llo"])]);
    let answers = ask(&model, said(&["a"]), Streaming::Pieces).await;
    let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
    let texts: Vec<_> =
        answers.iter().map(|answer| (answer.partial, json(answer)[0]["text"].clone())).collect();
    assert_eq!(
        texts,
        [
            (Some(true), json!("to ")),
            (Some(true), json!("be ")),
            (Some(true), json!("or")),
            (Some(false), json!("to be or"))
        ]
    );
    assert_eq!(answers[0].usage_metadata, None);
    assert_eq!(answers[0].finish_reason, None);
    assert_eq!(answers[3].finish_reason.as_deref(), Some("STOP"));
    assert_eq!(
        answers[3].usage_metadata.as_ref().unwrap().value(),
        &json!({ "prompt_token_count": 3, "candidates_token_count": 4, "total_token_count": 7 })
    );
}

#[tokio::test]
async fn a_failure_comes_alone_or_after_pieces() {
    let broken = || {
        reply("half an").then_fail(|| ModelError::Timeout { model: "m".to_owned(), after: Duration::ZERO })
    };
    let model = Scripted::new([fail("QUOTA", "no more"), broken(), broken()]);
    assert_eq!(failure(&model, said(&["a"])).await, "QUOTA: no more");
    assert!(failure(&model, said(&["a"])).await.starts_with("MODEL_TIMEOUT"));
    let answers = ask(&model, said(&["a"]), Streaming::Pieces).await;
    assert_eq!(answers.len(), 3);
    assert!(answers[1].is_ok() && answers[2].is_err());
}

#[tokio::test(start_paused = true)]
async fn delays_come_before_the_first_piece_and_between_pieces() {
    let turn = reply("a b").after(Duration::from_secs(60)).with_delay_between(Duration::from_secs(5));
    let model = Scripted::new([turn]);
    let start = tokio::time::Instant::now();
    let mut stream = model.generate(said(&["a"]), Streaming::Pieces).await.unwrap();
    let mut seconds = Vec::new();
    while let Some(answer) = stream.next().await {
        answer.unwrap();
        seconds.push(start.elapsed().as_secs());
    }
    assert_eq!(seconds, [60, 65, 70]);
}

#[tokio::test]
async fn the_first_rule_that_fits_answers_as_often_as_it_fits() {
    let model = Scripted::from_rules([
        Rule::user("my name is {name}")
            .unwrap()
            .then(call("remember", json!({ "name": "{name}", "said": "({user})" }))),
        Rule::tool("remember").and_result("error").then(reply("No: {result.error}")),
        Rule::tool("remember").then(reply("Hello {result.name}, for the {result.times}. time. {unknown}")),
        Rule::user("hello").unwrap().and_instruction("talking to {who}").unwrap().then(reply("Hello {who}!")),
        Rule::always().then(reply("What?")),
    ]);
    for _ in 0..2 {
        assert_eq!(
            whole(&model, said(&["My name is Ada."])).await,
            json!([{ "functionCall": { "name": "remember", "args": { "name": "Ada", "said": "(My name is Ada.)" } } }])
        );
    }
    assert_eq!(
        whole(&model, answered("remember", json!({ "name": "Ada", "times": 2 }))).await,
        json!([{ "text": "Hello Ada, for the 2. time. {unknown}" }])
    );
    assert_eq!(
        whole(&model, answered("remember", json!({ "error": "full" }))).await,
        json!([{ "text": "No: full" }])
    );
    assert_eq!(whole(&model, answered("other", json!({}))).await, json!([{ "text": "What?" }]));
    assert_eq!(whole(&model, said(&["hello"])).await, json!([{ "text": "What?" }]));
    let request =
        ModelRequest { system_instruction: Some("You are talking to Bo.".to_owned()), ..said(&["hello"]) };
    assert_eq!(whole(&model, request).await, json!([{ "text": "Hello Bo!" }]));
}

#[tokio::test]
async fn a_function_may_answer_and_requests_are_recorded() {
    let requests = Requests::default();
    let model = Scripted::from_fn(|request| reply(format!("{} contents", request.contents.len())))
        .with_recording(&requests)
        .with_name("counter");
    assert_eq!(model.name(), "counter");
    assert_eq!(whole(&model, said(&["a", "b", "c"])).await, json!([{ "text": "3 contents" }]));
    assert_eq!(requests.all().len(), 1);
    assert_eq!(requests.last().unwrap().contents.len(), 3);
}

#[tokio::test]
async fn a_response_is_given_exactly() {
    let response = ModelResponse { error_code: Some("SAFETY".to_owned()), ..ModelResponse::default() };
    let model = Scripted::new([respond(response)]);
    let answers = ask(&model, said(&["a"]), Streaming::Whole).await;
    assert_eq!(answers[0].as_ref().unwrap().error_code.as_deref(), Some("SAFETY"));
    assert!(answers[0].as_ref().unwrap().content.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_conversations_at_once_do_not_disturb_each_other() {
    let model = std::sync::Arc::new(Scripted::per_conversation((0..5).map(|n| reply(n.to_string()))));
    let conversations = (0..100).map(|_| {
        let model = model.clone();
        tokio::spawn(async move {
            let mut request = said(&["a"]);
            for n in 0..5 {
                assert_eq!(whole(&model, request.clone()).await, json!([{ "text": n.to_string() }]));
                request.contents.extend([Content::text("model", "x"), Content::text("user", "y")]);
            }
        })
    });
    for conversation in conversations.collect::<Vec<_>>() {
        conversation.await.unwrap();
    }
}

const FILE: &str = r#"
rules:
  - when: { user: [hello, "good day"] }
    then: { reply: "Hi!" }
  - when: { tool: look, instruction: "you are {who}" }
    then: { reply: "{who} saw {result.thing}" }
turns:
  - thought: let me see
    calls:
      - { name: look, args: { deep: { where: [here] } }, id: c1 }
      - { name: wait }
    usage: { prompt: 1, answer: 2 }
  - pieces: [a, b]
    finish_reason: MAX_TOKENS
  - error: { code: RESOURCE_EXHAUSTED, message: try later }
"#;

#[tokio::test]
async fn a_file_says_the_same_as_code() {
    let model = Scripted::from_yaml("script.yaml", FILE).unwrap();
    assert_eq!(model.name(), "scripted:script.yaml");
    assert_eq!(whole(&model, said(&["Good day"])).await, json!([{ "text": "Hi!" }]));
    assert_eq!(
        whole(&model, said(&["x"])).await,
        json!([
            { "text": "let me see", "thought": true },
            { "functionCall": { "id": "c1", "name": "look", "args": { "deep": { "where": ["here"] } } } },
            { "functionCall": { "name": "wait", "args": {} } },
        ])
    );
    let mut request = answered("look", json!({ "thing": "a bird" }));
    request.system_instruction = Some("Now you are Ada".to_owned());
    assert_eq!(whole(&model, request).await, json!([{ "text": "Ada saw a bird" }]));
    let answers = ask(&model, said(&["x", "y", "z"]), Streaming::Pieces).await;
    assert_eq!(answers.len(), 3);
    let last = answers[2].as_ref().unwrap();
    assert_eq!(json(last), json!([{ "text": "ab" }]));
    assert_eq!(last.finish_reason.as_deref(), Some("MAX_TOKENS"));
    assert_eq!(failure(&model, said(&["a", "b", "c", "d", "e"])).await, "RESOURCE_EXHAUSTED: try later");
}

#[test]
fn a_file_that_is_wrong_is_refused_with_its_place() {
    for (yaml, reason) in [
        ("{}", "the script has neither rules nor turns"),
        (
            "turns: [{ reply: a, pieces: [b] }]",
            "turn 1: \"reply\" and \"pieces\" are two ways to say the text; give one",
        ),
        (
            "turns:\n- reply: a\n- delay_ms: 3",
            "turn 2: it says nothing: give \"reply\", \"pieces\", \"call\", \"calls\" or \"error\"",
        ),
        (
            "rules: [{ when: { result: error }, then: { reply: b } }]",
            "rule 1: \"result\" is about a tool; name it in \"tool\"",
        ),
        (
            "rules: [{ when: { user: '{a' }, then: { reply: b } }]",
            "rule 1: the pattern \"{a\" has a \"{\" without \"}\"",
        ),
    ] {
        let error = Scripted::from_yaml("s.yaml", yaml).unwrap_err();
        assert_eq!(error.to_string(), format!("the model \"scripted:s.yaml\" cannot be used: {reason}"));
    }
    let error = Scripted::from_yaml("s.yaml", "turns:\n  - repyl: hello\n").unwrap_err().to_string();
    assert!(error.contains("repyl") && error.contains("line 2"), "{error}");
    let error = Scripted::from_file("/nowhere/s.yaml").unwrap_err().to_string();
    assert!(error.contains("/nowhere/s.yaml") && error.contains("cannot be read"), "{error}");
}
