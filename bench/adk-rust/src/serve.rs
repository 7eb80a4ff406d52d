use std::sync::Arc;

use adk_core::SingleAgentLoader;
use adk_server::{ServerConfig, create_app};
use adk_session::{InMemorySessionService, SessionService, SqliteSessionService};
use anyhow::bail;

use crate::agent::echo;

/// Serves until it is killed.
pub async fn serve(store: &str, port: u16) -> anyhow::Result<()> {
    let sessions: Arc<dyn SessionService> = match store.split_once(':') {
        None if store == "memory" => Arc::new(InMemorySessionService::new()),
        Some(("sqlite", file)) => {
            let service = SqliteSessionService::new(&format!("sqlite://{file}?mode=rwc")).await?;
            service.migrate().await?;
            Arc::new(service)
        }
        _ => bail!("the store is memory or sqlite:FILE"),
    };
    let app = create_app(ServerConfig::new(Arc::new(SingleAgentLoader::new(Arc::new(echo()?))), sessions));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    axum::serve(listener, app).await?;
    Ok(())
}
