//! Writes side by side come out in one way, whatever the timing.

use proptest::prelude::*;
use serde_json::{Value, json};
use sessile_agent::{FunctionTool, Reducer, ToolContext};
use sessile_session::{BoxError, MemoryStore, SessionService};

use crate::support::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Write {
    /// How often it lets others go first.
    yields: u32,
    key: String,
    number: i64,
}

/// Runs the calls side by side, each giving way as often as it is told, and returns the state.
async fn outcome(writes: &[(u32, String, i64)]) -> Value {
    let sessions =
        with_session(SessionService::new(MemoryStore::new()), json!({"list": [0], "sum": 100})).await;
    let tool = FunctionTool::new("write", "", async |write: Write, ctx: ToolContext| {
        for _ in 0..write.yields {
            tokio::task::yield_now().await;
        }
        match write.key.as_str() {
            "list" | "set" => {
                ctx.state().try_modify(&write.key, Vec::new(), |mut list: Vec<i64>| {
                    list.push(write.number);
                    list
                })?;
            }
            "sum" => {
                ctx.state().try_modify("sum", 0, |sum: i64| sum + write.number)?;
            }
            key => ctx.state().set(key, write.number),
        }
        Ok::<_, BoxError>(())
    });
    let parts = writes
        .iter()
        .map(|(yields, key, number)| {
            call_part("write", json!({"yields": yields, "key": key, "number": number}))
        })
        .collect();
    let content =
        sessile_session::Content { role: Some("model".into()), parts: Some(parts), ..Default::default() };
    let agent = agent([Turn::Says(vec![content.into()]), reply("done")])
        .tool(tool)
        .reducer("list", Reducer::Append)
        .reducer("set", Reducer::Union)
        .reducer("sum", Reducer::Add)
        .build()
        .unwrap();
    run(agent, &sessions, "go").await.unwrap();
    state(&sessions).await
}

/// What the rules say, computed one write after the other.
fn expected(writes: &[(u32, String, i64)]) -> Value {
    let mut state = json!({"list": [0], "sum": 100});
    for (_, key, number) in writes {
        match key.as_str() {
            "list" => state["list"].as_array_mut().unwrap().push(json!(number)),
            "sum" => state["sum"] = json!(state["sum"].as_i64().unwrap() + number),
            "set" => {
                let mut set = state["set"].as_array().cloned().unwrap_or_default();
                if !set.contains(&json!(number)) {
                    set.push(json!(number));
                }
                state["set"] = set.into();
            }
            key => state[key] = json!(number),
        }
    }
    state
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_calls_decides_and_not_that_of_finishing(
        writes in prop::collection::vec((0..4_u32, "list|sum|set|plain|other", -5..5_i64), 1..8)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        prop_assert_eq!(runtime.block_on(outcome(&writes)), expected(&writes));
    }
}

#[tokio::test]
async fn two_plain_writes_of_different_values_are_logged() {
    use std::sync::{Arc, Mutex};
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let lines = Lines::default();
    let kept = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || kept.clone()).with_ansi(false).finish();
    let _logging = tracing::subscriber::set_default(subscriber);

    outcome(&[(0, "plain".into(), 1), (0, "plain".into(), 2), (0, "same".into(), 3), (0, "same".into(), 3)])
        .await;

    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("WARN") && text.contains("the key `plain`") && text.contains("`write`"), "{text}");
    assert!(!text.contains("`same`"), "equal values are no conflict: {text}");
}
