//! What models read of earlier turns.

use serde_json::json;
use sessile_agent::{FunctionTool, IncludeContents, LlmAgent, RunConfig};
use sessile_session::{BoxError, Compaction, Content, Event, EventWindow};

use crate::support::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn texts(script: &Script) -> Vec<String> {
    let asked = script.last_asked();
    asked
        .contents
        .iter()
        .map(|content| content.parts()[0].text.clone().unwrap_or("(a call)".into()))
        .collect()
}

#[tokio::test]
async fn a_model_reads_the_whole_conversation_or_only_its_turn() {
    for (include, expected) in
        [(IncludeContents::Default, vec!["one", "1", "two"]), (IncludeContents::None, vec!["two"])]
    {
        let sessions = sessions().await;
        let script = Script::new([reply("1"), reply("2")]);
        let agent =
            LlmAgent::builder("agent").model(script.clone()).include_contents(include).build().unwrap();
        let runner = runner(agent, &sessions);
        runner.run(says("one")).collect().await.unwrap();
        runner.run(says("two")).collect().await.unwrap();
        assert_eq!(texts(&script), expected);
    }
}

#[tokio::test]
async fn a_turn_holds_its_own_calls_and_responses_also_without_contents() {
    let sessions = sessions().await;
    let script = Script::new([reply("1"), call("look", json!({})), reply("2")]);
    let agent = LlmAgent::builder("agent")
        .model(script.clone())
        .tool(FunctionTool::new("look", "", async |_: Nothing| Ok::<_, BoxError>("seen")))
        .include_contents(IncludeContents::None)
        .build()
        .unwrap();
    let runner = runner(agent, &sessions);
    runner.run(says("one")).collect().await.unwrap();
    runner.run(says("two")).collect().await.unwrap();
    assert_eq!(texts(&script), ["two", "(a call)", "(a call)"]);
}

#[tokio::test]
async fn a_window_limits_what_is_read() {
    let sessions = sessions().await;
    let script = Script::new([reply("1"), reply("2"), reply("3")]);
    let runner = runner(LlmAgent::builder("agent").model(script.clone()).build().unwrap(), &sessions);
    let config = RunConfig { window: EventWindow::last(1), ..RunConfig::default() };
    for text in ["one", "two", "three"] {
        runner.run(says(text).with_config(config.clone())).collect().await.unwrap();
    }
    assert_eq!(texts(&script), ["2", "three"]);
}

#[tokio::test]
async fn what_was_rewound_is_not_read() {
    let sessions = sessions().await;
    let script = Script::new([reply("1"), reply("2"), reply("3")]);
    let runner = runner(LlmAgent::builder("agent").model(script.clone()).build().unwrap(), &sessions);
    runner.run(says("one")).collect().await.unwrap();
    let second = runner.run(says("two")).collect().await.unwrap();
    sessions.rewind(&key(), &second[0].invocation_id).await.unwrap();
    runner.run(says("three")).collect().await.unwrap();
    assert_eq!(texts(&script), ["one", "1", "three"]);
}

#[tokio::test]
async fn a_summary_is_read_in_the_place_of_what_it_sums_up() {
    let sessions = sessions().await;
    let script = Script::new([reply("1"), reply("2"), reply("3")]);
    let runner = runner(LlmAgent::builder("agent").model(script.clone()).build().unwrap(), &sessions);
    runner.run(says("one")).collect().await.unwrap();
    let events = session(&sessions).await;
    let (start, end) = (events.events()[0].timestamp, events.events()[1].timestamp);
    runner.run(says("two")).collect().await.unwrap();
    let mut summary = Event::new("user");
    summary.actions.compaction = Some(Compaction {
        start_timestamp: start,
        end_timestamp: end,
        compacted_content: Some(Content::text("model", "they counted")),
        ..Compaction::default()
    });
    sessions.append_to(&key(), summary).await.unwrap();
    runner.run(says("three")).collect().await.unwrap();
    assert_eq!(texts(&script), ["they counted", "two", "2", "three"]);
}

#[tokio::test]
async fn the_history_before_the_last_events_is_read_when_an_old_call_is_answered() {
    let sessions = sessions().await;
    let wait = FunctionTool::new("wait", "", async |_: Nothing| Ok::<_, BoxError>(())).long_running();
    let script = Script::new([call("wait", json!({}))]);
    let agent = LlmAgent::builder("agent")
        .model(script.clone())
        .tool(wait)
        .include_contents(IncludeContents::None)
        .build()
        .unwrap();
    let runner = runner(agent, &sessions);
    let events = runner.run(says("start")).collect().await.unwrap();
    for _ in 0..60 {
        script.then(reply("still waiting"));
        runner.run(says("and?")).collect().await.unwrap();
    }
    script.then(reply("at last"));
    let id = events[0].function_calls().next().unwrap().id.clone();
    let message: Content = serde_json::from_value(
        json!({"parts": [{"functionResponse": {"id": id, "name": "wait", "response": {}}}]}),
    )
    .unwrap();
    let request = sessile_agent::RunRequest::new("ada", "s1").with_message(message);

    let answered = runner.run(request).collect().await.unwrap();

    assert_eq!(text(&answered[0]), "at last");
    assert_eq!(answered[0].invocation_id, events[0].invocation_id);
}
