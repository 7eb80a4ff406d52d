//! Extractors: a model reads the transcript, and fills state.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use sessile_agent::Model;
use sessile_live::{Extractor, LiveEvent, LiveTurn, Phase, Script, Trigger, TurnExtractor};
use sessile_model::{Scripted, reply};
use sessile_session::BoxError;

use crate::common::{connect, said, spoke, turn_complete};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Caller {
    #[expect(dead_code, reason = "the state is looked at instead")]
    name: Option<String>,
    #[expect(dead_code, reason = "the state is looked at instead")]
    age: Option<u32>,
}

fn answers(answers: &[&str]) -> Arc<dyn Model> {
    Arc::new(Scripted::new(answers.iter().map(|answer| reply(*answer))))
}

fn one_turn() -> Script {
    Script::new().send(said("I am Ada")).send(spoke("Hello")).send(turn_complete())
}

/// An extractor that returns its input.
struct Echo(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl TurnExtractor for Echo {
    async fn extract(&self, turns: &[Arc<LiveTurn>]) -> Result<Value, BoxError> {
        let seen = turns
            .iter()
            .map(|turn| format!("{}|{}", turn.user(), turn.model()))
            .collect::<Vec<_>>()
            .join(";");
        self.0.lock().unwrap().push(seen.clone());
        Ok(json!({"seen": seen}))
    }
}

struct Never;

#[async_trait]
impl TurnExtractor for Never {
    async fn extract(&self, _: &[Arc<LiveTurn>]) -> Result<Value, BoxError> {
        std::future::pending().await
    }
}

scenarios! {
    async fn fields_become_keys_and_nulls_change_nothing() {
        let model = answers(&[r#"{"name": "Ada", "age": null, "user:admin": true}"#, "```json\n{\"name\": null, \"age\": 36}\n```"]);
        let script = one_turn().send(said("and 36")).send(turn_complete());
        let mut session = connect(script, |live| {
            live.extract(Extractor::of::<Caller>("caller", model, "Who calls?"))
                .computed("adult", ["age"], |state| Some(state.get::<u32>("age")? >= 18))
        })
        .await;
        session.turn().await;
        assert_eq!(session.state().get::<String>("name").as_deref(), Some("Ada"));
        assert!(!session.state().contains("age") && !session.state().contains("user:admin"));
        session.turn().await;
        assert_eq!(session.state().get::<String>("name").as_deref(), Some("Ada"));
        assert_eq!(session.state().get::<u32>("age"), Some(36));
        assert_eq!(session.state().get::<bool>("adult"), Some(true));
        assert_eq!(session.handle.extracted::<Value>("caller").unwrap(), Some(json!({"name": null, "age": 36})));
    }

    async fn an_answer_that_is_not_json_does_not_fit_or_is_not_accepted_changes_nothing() {
        for (answer, problem) in [
            ("I do not know", "did not answer with JSON"),
            (r#"{"age": "old"}"#, "does not fit"),
            (r#"{"name": "Ada", "age": 7}"#, "too young"),
        ] {
            let model = answers(&[answer]);
            let errors = Arc::new(Mutex::new(Vec::new()));
            let note = errors.clone();
            let mut session = connect(one_turn(), |live| {
                live.extract(Extractor::of::<Caller>("caller", model, "Who calls?").accept_if(|state| {
                    match state.get::<u32>("age") {
                        Some(age) if age < 18 => Err("too young".to_owned()),
                        _ => Ok(()),
                    }
                }))
                .on_extraction_error(move |name, reason| {
                    note.lock().unwrap().push(format!("{name}: {reason}"));
                    async {}
                })
            })
            .await;
            let event = session.until(|event| matches!(event, LiveEvent::ExtractionFailed { .. })).await;
            assert!(matches!(&event, LiveEvent::ExtractionFailed { reason, .. } if reason.contains(problem)), "{event:?}");
            session.turn().await;
            assert!(!session.state().contains("caller") && !session.state().contains("name"));
            assert_eq!(errors.lock().unwrap().len(), 1);
        }
    }

    async fn an_extractor_that_takes_too_long_is_given_up() {
        let mut session = connect(one_turn(), |live| {
            live.extract(Extractor::new("never", Never).with_timeout(Duration::from_millis(50)))
        })
        .await;
        let event = session.until(|event| matches!(event, LiveEvent::ExtractionFailed { .. })).await;
        assert!(matches!(&event, LiveEvent::ExtractionFailed { reason, .. } if reason.contains("50ms")), "{event:?}");
        session.turn().await;
    }

    async fn triggers_windows_and_words_decide_when_and_what() {
        let seen: Vec<_> = (0..5).map(|_| Arc::new(Mutex::new(Vec::new()))).collect();
        let echo = |number: usize| Echo(seen[number].clone());
        let script = Script::new()
            .send(said("one"))
            .send(json!({"serverContent": {"generationComplete": true}}))
            .send(turn_complete())
            .send(said("two words"))
            .send(turn_complete());
        let mut session = connect(script, |live| {
            live.extract(Extractor::new("every", echo(0)).with_window(2))
                .extract(Extractor::new("second", echo(1)).with_trigger(Trigger::Interval(2)).with_window(1))
                .extract(Extractor::new("wordy", echo(2)).with_min_words(2).with_window(1))
                .extract(Extractor::new("generated", echo(3)).with_trigger(Trigger::OnGenerationComplete))
                .extract(Extractor::new("phase", echo(4)).with_trigger(Trigger::OnPhaseChange))
                .phase(Phase::new("a").with_transition("b", |state| state.get("session:turn_count") == Some(2)))
                .phase(Phase::new("b"))
        })
        .await;
        session.turn().await;
        session.turn().await;
        let seen: Vec<_> = seen.iter().map(|seen| seen.lock().unwrap().clone()).collect();
        assert_eq!(seen[0], ["one|", "one|;two words|"]);
        assert_eq!(seen[1], ["two words|"]);
        assert_eq!(seen[2], ["two words|"]);
        assert_eq!(seen[3], ["one|"]);
        assert_eq!(seen[4], ["one|;two words|"]);
    }

    async fn an_extraction_is_reported_and_guards_see_it_in_the_same_turn() {
        let model = answers(&[r#"{"name": "Ada"}"#]);
        let told = Arc::new(Mutex::new(Vec::new()));
        let note = told.clone();
        let mut session = connect(one_turn(), |live| {
            live.extract(Extractor::of::<Caller>("caller", model, "Who calls?"))
                .on_extracted(move |name, value| {
                    note.lock().unwrap().push(format!("{name} {value}"));
                    async {}
                })
                .phase(Phase::new("who").with_transition("known", |state| state.contains("name")))
                .phase(Phase::new("known"))
        })
        .await;
        session.turn().await;
        assert_eq!(session.handle.phase().as_deref(), Some("known"));
        assert_eq!(*told.lock().unwrap(), [r#"caller {"name":"Ada"}"#]);
    }
}
