//! Many sessions at once.

use serde_json::json;
use sessile_agent::{CallbackContext, LlmAgent, RunRequest, Runner};
use sessile_session::{CreateSession, EventWindow, SessionKey, SessionService};
use sessile_sqlite::SqliteStore;

use crate::support::*;

const SESSIONS: usize = 1_000;
const TURNS: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_sessions_of_ten_turns_lose_nothing_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:///{}", folder.path().join("sessile.db").display());
    let sessions = SessionService::new(SqliteStore::open_url(&url).await.unwrap());
    let agent = LlmAgent::builder("agent")
        .model(Says("counted"))
        .before_model(async |ctx: CallbackContext, request: sessile_agent::ModelRequest| {
            ctx.state().modify("turns", 0_usize, |turns| turns + 1);
            Ok(request.into())
        })
        .output_key("answer")
        .include_contents(sessile_agent::IncludeContents::None)
        .build()
        .unwrap();
    let runner = Runner::builder("app", agent, sessions.clone()).build().unwrap();

    let tasks = (0..SESSIONS).map(|number| {
        let (runner, sessions) = (runner.clone(), sessions.clone());
        tokio::spawn(async move {
            let id = format!("s{number}");
            sessions.create(CreateSession::new("app", "ada").with_id(&id)).await.unwrap();
            for turn in 0..TURNS {
                let request = RunRequest::new("ada", &id).with_text(format!("turn {turn}"));
                assert_eq!(runner.run(request).collect().await.unwrap().len(), 1);
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }

    for number in 0..SESSIONS {
        let key = SessionKey::new("app", "ada", &format!("s{number}")).unwrap();
        let session = sessions.get(&key, EventWindow::NONE).await.unwrap().unwrap();
        assert_eq!(session.version(), 2 * TURNS as u64, "{key}");
        assert_eq!(session.state().get_raw("turns"), Some(&json!(TURNS).into()), "{key}");
    }
}
