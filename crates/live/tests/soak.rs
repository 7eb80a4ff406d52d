//! Many sessions with many turns in one process: no event is lost, nothing is left behind.
//!
//! `SESSILE_SOAK_SESSIONS` (20 unless set) and `SESSILE_SOAK_TURNS` (20) say how many; the full run
//! is 1000 × 20.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use sessile_live::{
    KeyWatch, Live, LiveEvent, LiveTool, LiveToolContext, Pattern, Phase, Platform, Script, ScriptedServer,
    WebSocket,
};
use sessile_session::{EventWindow, MemoryStore, SessionKey, SessionService};
use tokio::task::JoinSet;

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// Resident memory in bytes, where the operating system reports it.
fn memory() -> Option<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(pages.split(' ').nth(1)?.parse::<usize>().ok()? * 4096)
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// One turn: the user speaks, a tool runs, the model speaks.
fn script() -> Script {
    let heard = |text: &str| json!({"serverContent": {"inputTranscription": {"text": text}}});
    Script::new()
        .wait_for("clientContent")
        .send(heard("please "))
        .send(heard("count"))
        .send(json!({"toolCall": {"functionCalls": [{"id": "c", "name": "count"}]}}))
        .wait_for("toolResponse")
        .send(json!({"serverContent": {"modelTurn": {"parts": [{"inlineData": {"mimeType": "audio/pcm", "data": "AAAA"}}]}}}))
        .send(json!({"serverContent": {"outputTranscription": {"text": "counted"}}}))
        .send(json!({"serverContent": {"turnComplete": true}}))
        .again()
}

/// Talks for some turns, and checks that everything was heard.
#[cfg(test)]
async fn talk(number: usize, turns: usize, url: String, service: SessionService) {
    let key = SessionKey::new("soak", "user", &format!("s{number}")).unwrap();
    let counts: [Arc<AtomicUsize>; 4] = std::array::from_fn(|_| Arc::default());
    let [audio, heard, watched, ended] = counts.clone();
    let seen = watched.clone();
    let session = Live::builder()
        .keepalive(Duration::from_secs(600)) // on a busy machine the server may seem silent
        .connect_timeout(Duration::from_secs(600), Duration::from_secs(600))
        .session(service.clone(), key.clone())
        .tool(LiveTool::function("count", "", async |_: Nothing, ctx: LiveToolContext| {
            Ok(ctx.state().try_modify("count", 0usize, |n| n + 1)?)
        }))
        .computed("double", ["count"], |state| Some(state.get::<usize>("count")? * 2))
        .watch(KeyWatch::on("double").then(move |_| {
            seen.fetch_add(1, Ordering::SeqCst);
            async {}
        }))
        .pattern(Pattern::turns(2, |_| true).then(|state| async move { state.set("two", true) }))
        .phase(Phase::new("a").with_transition("b", |state| state.contains("two")))
        .phase(Phase::new("b"))
        .on_audio(move |_| {
            audio.fetch_add(1, Ordering::SeqCst);
        })
        .on_input_transcript(move |_, _| {
            heard.fetch_add(1, Ordering::SeqCst);
        })
        .on_event(move |event| {
            if let LiveEvent::TurnEnd(_) = event {
                ended.fetch_add(1, Ordering::SeqCst);
            }
        })
        .connect(WebSocket::new(Platform::GoogleAi, url))
        .await
        .unwrap();
    let mut events = session.events();
    for _ in 0..turns {
        session.send_text("go on: ").await.unwrap();
        loop {
            match events.next().await.expect("the session goes on") {
                LiveEvent::TurnEnd(turn) => {
                    assert_eq!(
                        (turn.user().as_str(), turn.model().as_str()),
                        ("go on: please count", "counted")
                    );
                    break;
                }
                LiveEvent::Missed(missed) => panic!("{missed} events were missed"),
                LiveEvent::Error(error) => panic!("{error}"),
                _ => {}
            }
        }
    }
    session.disconnect().await;
    let counts = counts.map(|count| count.load(Ordering::SeqCst));
    assert_eq!(counts, [turns, turns * 2, turns, turns]);
    let stored = service.get(&key, EventWindow::ALL).await.unwrap().unwrap();
    assert_eq!(stored.state().get::<usize>("count"), Some(turns));
    assert_eq!(stored.state().get::<usize>("live:turn_count"), Some(turns));
    assert!(stored.events().len() >= turns * 4);
    service.delete(&key).await.unwrap();
}

#[cfg(test)]
async fn round(sessions: usize, turns: usize) {
    let server = ScriptedServer::start([script()]).await.unwrap();
    let service = SessionService::new(MemoryStore::new());
    let mut running = JoinSet::new();
    for number in 0..sessions {
        running.spawn(talk(number, turns, server.url().to_owned(), service.clone()));
    }
    while let Some(result) = running.join_next().await {
        result.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_sessions_lose_no_event_and_leave_nothing_behind() {
    let (sessions, turns) = (number("SESSILE_SOAK_SESSIONS", 20), number("SESSILE_SOAK_TURNS", 20));
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    round(sessions, turns).await; // what is allocated once is allocated now
    round(sessions, turns).await; // and the allocator has found its way
    let used = memory();
    round(sessions, turns).await;
    tokio::time::timeout(Duration::from_secs(10), async {
        while tasks() > before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("all tasks have ended");
    if let (Some(used), Some(now)) = (used, memory()) {
        let grown = now.saturating_sub(used);
        println!("{sessions} sessions, {turns} turns: {used} bytes, then {now}");
        assert!(grown < used / 4 + (8 << 20), "another round needs {grown} bytes more than {used}");
    }
}
