//! Sessile's server, in this process.

use std::path::Path;
use std::sync::Arc;

use sessile_agent::{LlmAgent, Runner};
use sessile_artifact::MemoryArtifacts;
use sessile_memory::InMemoryMemory;
use sessile_model::{Scripted, reply};
use sessile_server::{App, Apps, Server, serve};
use sessile_session::SessionService;
use sessile_sqlite::{SqliteOptions, SqliteStore};
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// A server with the agent `echo`, and a new SQLite file.
pub(crate) struct Ours {
    address: String,
    sessions: SessionService,
    serving: JoinHandle<()>,
    /// Holds the file, and is removed with the server.
    _folder: TempDir,
}

impl Ours {
    pub(crate) async fn start() -> Self {
        Self::start_as(|server| server).await
    }

    /// With the files of Google's web UI.
    pub(crate) async fn start_with_web_ui(files: &Path) -> Self {
        Self::start_as(|server| server.with_adk_web(files)).await
    }

    async fn start_as(finish: impl FnOnce(Server) -> Server) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder is made");
        let store = SqliteStore::open(SqliteOptions::new(folder.path().join("sessions.db"))).await;
        let sessions = SessionService::new(store.expect("a new file opens"));
        let memory = Arc::new(InMemoryMemory::new());
        let artifacts = Arc::new(MemoryArtifacts::new());
        let runner = Runner::builder("echo", echo(), sessions.clone())
            .artifacts(artifacts.clone())
            .memory(memory.clone())
            .build()
            .expect("the agent is valid");
        let apps = Apps::new().with(App::new(runner));
        let server = Server::new(sessions.clone(), apps).with_artifacts(artifacts).with_memory(memory);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = format!("http://{}", listener.local_addr().expect("a bound listener has an address"));
        let server = finish(server);
        let serving = tokio::spawn(async move {
            serve(listener, server, std::future::pending())
                .await
                .expect("the server serves until it is stopped");
        });
        Self { address, sessions, serving, _folder: folder }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The sessions as a Rust application would see them.
    pub(crate) fn sessions(&self) -> &SessionService {
        &self.sessions
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The agent of `agents/echo/agent.py`.
fn echo() -> LlmAgent {
    let model = Scripted::from_fn(|request| {
        let last = request.contents.last().map_or(&[][..], |content| content.parts());
        let said: Vec<&str> = last.iter().filter_map(|part| part.text.as_deref()).collect();
        reply(format!("you said: {}", said.join(" ")))
    });
    LlmAgent::builder("echo")
        .description("Says it again.")
        .model(model)
        .output_key("last_reply")
        .instruction("Echo.")
        .build()
        .expect("the agent is valid")
}
