//! Every problem of a configuration is reported before anything is connected.

use std::time::Duration;

use serde_json::json;
use sessile_live::{
    Extractor, KeyWatch, LiveError, LiveTool, LiveTurn, Pattern, Phase, Platform, Reconnect, Trigger,
    TurnExtractor, WebSocket,
};
use sessile_session::BoxError;

use crate::common::builder;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

struct Some1;

#[async_trait::async_trait]
impl TurnExtractor for Some1 {
    async fn extract(&self, _: &[std::sync::Arc<LiveTurn>]) -> Result<serde_json::Value, BoxError> {
        Ok(json!(1))
    }
}

fn tool(name: &str) -> LiveTool {
    LiveTool::function(name, "", async |_: Nothing, _| Ok(()))
}

scenarios! {
    async fn every_problem_is_reported_together() {
        let live = builder()
            .model(" ")
            .name("user")
            .temperature(f32::NAN)
            .top_p(2.0)
            .top_k(0)
            .max_output_tokens(0)
            .text_only()
            .voice("Kore")
            .affective_dialog()
            .proactive_audio()
            .context_compression(10, 10)
            .greeting("")
            .input_rate(1)
            .transcription(false, true)
            .keepalive(Duration::ZERO)
            .send_timeout(Duration::ZERO)
            .connect_timeout(Duration::ZERO, Duration::ZERO)
            .reconnect(Reconnect { first: Duration::from_secs(9), longest: Duration::from_secs(1), attempts: 1 })
            .tool(tool("no spaces"))
            .tool(tool("twice"))
            .tool(tool("twice").with_timeout(Duration::ZERO))
            .phase(Phase::new("a").with_transition("nowhere", |_| true).terminal().with_tools(["unknown"]))
            .phase(Phase::new("a"))
            .phase(Phase::new(""))
            .initial_phase("b")
            .computed("x", ["derived:y"], |_| Some(1))
            .computed("y", ["x"], |_| Some(1))
            .computed("app:z", ["x"], |_| Some(1))
            .computed("app:z", ["x"], |_| Some(1))
            .watch(KeyWatch::on("").then(|_| async {}))
            .pattern(Pattern::turns(0, |_| true).then(|_| async {}))
            .pattern(Pattern::rate(0, Duration::ZERO, |_| true).then(|_| async {}))
            .pattern(Pattern::sustained(Duration::ZERO, |_| true).then(|_| async {}))
            .extract(Extractor::new("e", Some1).with_window(0).with_trigger(Trigger::Interval(0)).with_timeout(Duration::ZERO))
            .extract(Extractor::new("e", Some1))
            .extract(Extractor::new("", Some1));
        let error = live.connect(WebSocket::new(Platform::GoogleAi, "ws://127.0.0.1:1")).await.unwrap_err();
        let LiveError::Invalid { problems } = error else { panic!("{error}") };
        let all = problems.join("\n");
        for problem in [
            "the model has no name", "cannot be called \"user\"", "temperature", "top_p", "top_k", "max_output_tokens",
            "voice has no effect", "affective", "proactive", "target must be below", "greeting is empty", "input rate",
            "leave the transcription", "the keepalive", "the time to send", "the time to connect", "accept the setup",
            "first pause", "\"no spaces\"", "two tools are called \"twice\"", "the timeout of the tool", "the timeout of the extractor", "\"nowhere\"", "is terminal",
            "\"unknown\"", "two phases", "a phase has no name", "initial phase \"b\"", "in a circle: app:z, x, y", "without a prefix",
            "declared twice", "a watch has no key", "at least one turn", "a rate needs", "a sustained pattern",
            "must see at least one turn", "an interval of", "two extractors", "an extractor has no name",
        ] {
            assert!(all.contains(problem), "{problem:?} is not reported in:\n{all}");
        }
    }

    async fn an_instruction_that_needs_a_missing_key_is_reported_before_connecting() {
        let live = builder().instruction("Talk to {user:name}.");
        let error = live.connect(WebSocket::new(Platform::GoogleAi, "ws://127.0.0.1:1")).await.unwrap_err();
        assert!(matches!(&error, LiveError::Invalid { problems } if problems[0].contains("user:name")), "{error}");
    }
}
