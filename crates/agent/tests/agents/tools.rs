//! Tools: what models call, what comes back, and what it changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use sessile_agent::{FunctionTool, Reducer, RunError, ToolContext};
use sessile_session::BoxError;

use crate::support::*;

#[derive(Deserialize, JsonSchema)]
struct Item {
    /// What it is.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn a_tool_call_is_a_call_a_response_and_an_answer() {
    let sessions = sessions().await;
    let add = FunctionTool::new("add", "Adds an item.", async |item: Item, ctx: ToolContext| {
        ctx.state().set("cart", [item.name]);
        Ok::<_, BoxError>(json!({"items": 1}))
    });
    let agent = agent([call("add", json!({"name": "tea"})), reply("done")]).tool(add).build().unwrap();

    let events = run(agent, &sessions, "add tea").await.unwrap();

    assert_eq!(
        log(&sessions).await,
        ["user: add tea", "agent: calls add", r#"agent: add -> {"items":1}"#, "agent: done"]
    );
    assert_eq!(events.len(), 3, "the user's message is not in the stream");
    assert_eq!(state(&sessions).await, json!({"cart": ["tea"]}));
    let call_id = events[0].function_calls().next().unwrap().id.clone();
    assert!(call_id.as_ref().unwrap().starts_with("adk-"));
    assert_eq!(events[1].function_responses().next().unwrap().id, call_id);
    assert_eq!(events[1].content.as_ref().unwrap().role.as_deref(), Some("user"));
    assert_eq!(events[1].actions.state_delta, json!({"cart": ["tea"]}).into());
}

#[tokio::test]
async fn the_model_reads_the_schema_and_the_response() {
    let sessions = sessions().await;
    async fn shout(item: Item) -> Result<String, BoxError> {
        Ok(item.name.to_uppercase())
    }
    let script = Script::new([call("shout", json!({"name": "tea"})), reply("TEA")]);
    let agent = sessile_agent::LlmAgent::builder("agent")
        .model(script.clone())
        .tool(FunctionTool::new("shout", "Says it loudly.", shout))
        .build()
        .unwrap();

    run(agent, &sessions, "shout").await.unwrap();

    let asked = script.asked();
    let declared = &asked[0].tools[0];
    assert_eq!((declared.name.as_str(), declared.description.as_str()), ("shout", "Says it loudly."));
    let schema = declared.parameters.as_ref().unwrap();
    assert_eq!(schema["properties"]["name"], json!({"type": "string", "description": "What it is."}));
    assert_eq!(schema["required"], json!(["name"]));
    let response = asked[1].contents.last().unwrap().parts()[0].function_response.clone().unwrap();
    assert_eq!(response.response.unwrap()["result"], json!("TEA"));
}

#[tokio::test]
async fn a_tool_without_arguments_is_declared_as_an_empty_object_and_called_with_or_without_one() {
    let sessions = sessions().await;
    let script = Script::new([
        call("count", json!({})),
        call("count", Value::Null),
        call("count", json!({"unexpected": 1})),
        reply("3"),
    ]);
    let count = FunctionTool::new("count", "", async |(): (), ctx: ToolContext| {
        Ok::<_, BoxError>(ctx.state().modify("count", 0, |count| count + 1))
    });
    let agent = sessile_agent::LlmAgent::builder("agent").model(script.clone()).tool(count).build().unwrap();

    run(agent, &sessions, "count to three").await.unwrap();

    let declared = script.asked()[0].tools[0].parameters.clone().unwrap();
    assert_eq!(*declared, json!({"type": "object", "properties": {}}));
    assert_eq!(
        log(&sessions).await.iter().filter(|line| line.contains("->")).collect::<Vec<_>>(),
        [
            r#"agent: count -> {"result":1}"#,
            r#"agent: count -> {"result":2}"#,
            r#"agent: count -> {"result":3}"#
        ]
    );
}

#[tokio::test]
async fn a_tool_can_use_a_shared_value_with_and_without_a_context() {
    struct Stock {
        asked: AtomicU32,
    }
    let sessions = sessions().await;
    let stock = Arc::new(Stock { asked: AtomicU32::new(0) });
    let find = FunctionTool::with(
        stock.clone(),
        "find",
        "",
        async |stock: Arc<Stock>, item: Item, ctx: ToolContext| {
            ctx.state().set("found", &item.name);
            Ok::<_, BoxError>(stock.asked.fetch_add(1, Ordering::Relaxed))
        },
    );
    let count = FunctionTool::with(stock.clone(), "count", "", async |stock: Arc<Stock>, (): ()| {
        Ok::<_, BoxError>(stock.asked.fetch_add(1, Ordering::Relaxed))
    });
    let agent = agent([call("find", json!({"name": "tea"})), call("count", json!({})), reply("done")])
        .tool(find)
        .tool(count)
        .build()
        .unwrap();

    run(agent, &sessions, "find tea").await.unwrap();

    let log = log(&sessions).await;
    assert!(log.contains(&r#"agent: find -> {"result":0}"#.to_owned()), "{log:?}");
    assert!(log.contains(&r#"agent: count -> {"result":1}"#.to_owned()), "{log:?}");
    assert_eq!(state(&sessions).await, json!({"found": "tea"}));
    assert_eq!(stock.asked.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn arguments_that_do_not_fit_unknown_tools_errors_and_panics_are_responses() {
    let sessions = sessions().await;
    let item = FunctionTool::new("item", "", async |item: Item| Ok::<_, BoxError>(item.name));
    let fails = FunctionTool::new("fails", "", async |_: Nothing, ctx: ToolContext| {
        ctx.state().set("half", true);
        Err::<(), BoxError>("no stock".into())
    });
    let panics = FunctionTool::new("panics", "", async |_: Nothing, ctx: ToolContext| {
        ctx.state().set("half", true);
        if ctx.function_call_id().len() > 1 {
            panic!("oh no");
        }
        Ok::<_, BoxError>(())
    });
    let nan = FunctionTool::new("nan", "", async |_: Nothing| Ok::<_, BoxError>(f64::NAN));
    let script = [
        calls([
            ("item", json!({"nam": "x"})),
            ("nope", json!({})),
            ("fails", json!({})),
            ("panics", json!({})),
            ("nan", json!({})),
        ]),
        reply("sorry"),
    ];
    let agent = agent(script).tool(item).tool(fails).tool(panics).tool(nan).build().unwrap();

    let events = run(agent, &sessions, "go").await.unwrap();

    let errors: Vec<String> = events[1]
        .function_responses()
        .map(|response| response.response.as_ref().unwrap()["error"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        errors[0].contains("`item` do not fit") && errors[0].contains("missing field `name`"),
        "{errors:?}"
    );
    assert_eq!(errors[1], "there is no tool `nope`; the tools are item, fails, panics, nan");
    assert_eq!(errors[2], "no stock");
    assert_eq!(errors[3], "`panics` panicked: oh no");
    assert!(errors[4].contains("no JSON form"), "{errors:?}");
    assert_eq!(state(&sessions).await, json!({}), "what failed changed nothing");
    assert_eq!(text(&events[2]), "sorry");
}

#[tokio::test(start_paused = true)]
async fn calls_side_by_side_are_one_event_in_call_order_whoever_is_first() {
    let sessions = with_session(
        sessile_session::SessionService::new(sessile_session::MemoryStore::new()),
        json!({"list": ["a"], "sum": 10, "set": ["x"]}),
    )
    .await;
    #[derive(Deserialize, JsonSchema)]
    struct Write {
        wait: u64,
        word: String,
        number: i64,
    }
    let write = |name: &str| {
        FunctionTool::new(name, "", async |write: Write, ctx: ToolContext| {
            tokio::time::sleep(std::time::Duration::from_millis(write.wait)).await;
            let word = write.word.clone();
            let push = |mut list: Vec<String>| {
                list.push(word.clone());
                list
            };
            ctx.state().try_modify("list", Vec::new(), push)?;
            ctx.state().try_modify("set", Vec::new(), push)?;
            ctx.state().try_modify("sum", 0, |sum: i64| sum + write.number)?;
            ctx.state().set("plain", &write.word);
            ctx.state().set(format!("own_{}", write.word), true);
            Ok::<_, BoxError>(write.word)
        })
    };
    let script = [
        calls([
            ("one", json!({"wait": 30, "word": "x", "number": 1})),
            ("two", json!({"wait": 0, "word": "y", "number": 2})),
        ]),
        reply("done"),
    ];
    let agent = agent(script)
        .tool(write("one"))
        .tool(write("two"))
        .reducer("list", Reducer::Append)
        .reducer("sum", Reducer::Add)
        .reducer("set", Reducer::Union)
        .build()
        .unwrap();

    let events = run(agent, &sessions, "go").await.unwrap();

    assert_eq!(line(&events[1]), r#"agent: one -> {"result":"x"} two -> {"result":"y"}"#);
    assert_eq!(
        state(&sessions).await,
        json!({
            "list": ["a", "x", "y"], "sum": 13, "set": ["x", "y"], "plain": "y", "own_x": true, "own_y": true,
        })
    );
}

#[tokio::test]
async fn a_long_running_call_waits_for_the_users_answer() {
    let sessions = sessions().await;
    let ask = FunctionTool::new("approve", "Asks a human.", async |_: Nothing, ctx: ToolContext| {
        ctx.state().set("asked", true);
        Ok::<_, BoxError>(Value::Null)
    })
    .long_running();
    let script = Script::new([call("approve", json!({})), reply("approved, then")]);
    let agent = sessile_agent::LlmAgent::builder("agent").model(script.clone()).tool(ask).build().unwrap();
    let runner = runner(agent, &sessions);

    let events = runner.run(says("may I?")).collect().await.unwrap();
    assert!(events[0].is_final_response(), "clients can act on the call");
    assert_eq!(log(&sessions).await.last().unwrap(), "agent:", "an event carries what the tool changed");
    assert_eq!(state(&sessions).await, json!({"asked": true}));

    let call = events[0].function_calls().next().unwrap();
    let response: sessile_session::Content = serde_json::from_value(json!({
        "role": "user",
        "parts": [{"functionResponse": {"id": call.id, "name": "approve", "response": {"ok": true}}}],
    }))
    .unwrap();
    let answer = sessile_agent::RunRequest::new("ada", "s1").with_message(response);
    let more = runner.run(answer).collect().await.unwrap();

    assert_eq!(text(&more[0]), "approved, then");
    assert_eq!(more[0].invocation_id, events[0].invocation_id, "the invocation goes on");
    let contents = script.last_asked().contents;
    let response = contents.last().unwrap().parts()[0].function_response.clone().unwrap();
    assert_eq!(response.response.unwrap()["ok"], json!(true));
}

#[tokio::test]
async fn an_answer_to_a_call_that_is_not_there_is_refused() {
    let sessions = sessions().await;
    let runner = runner(agent([]).build().unwrap(), &sessions);
    let response: sessile_session::Content = serde_json::from_value(json!({
        "parts": [{"functionResponse": {"id": "adk-0", "name": "x", "response": {}}}],
    }))
    .unwrap();
    let request = sessile_agent::RunRequest::new("ada", "s1").with_message(response);

    let error = runner.run(request).collect().await.unwrap_err();

    assert!(matches!(&error, RunError::InvalidMessage { reason } if reason.contains("adk-0")), "{error}");
    assert_eq!(session(&sessions).await.version(), 0, "nothing is stored");
}
