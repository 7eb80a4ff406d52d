use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use adk_core::Content;
use adk_runner::Runner;
use adk_session::{CreateRequest, InMemorySessionService, SessionService};
use futures_util::StreamExt;

use crate::agent::counter;

/// Turns on one session in memory; prints the median of their nanoseconds.
pub async fn turns(turns: usize) -> anyhow::Result<()> {
    let sessions = Arc::new(InMemorySessionService::new());
    let create = CreateRequest {
        app_name: "count".to_owned(),
        user_id: "ada".to_owned(),
        session_id: Some("s".to_owned()),
        state: HashMap::new(),
    };
    sessions.create(create).await?;
    let runner =
        Runner::builder().app_name("count").agent(Arc::new(counter()?)).session_service(sessions).build()?;
    let mut nanoseconds = Vec::with_capacity(turns);
    for _ in 0..turns {
        let start = Instant::now();
        let mut events = runner.run_str("ada", "s", Content::new("user").with_text("count")).await?;
        let mut seen = 0;
        while let Some(event) = events.next().await {
            event?;
            seen += 1;
        }
        nanoseconds.push(start.elapsed().as_nanos());
        anyhow::ensure!(seen >= 3, "a turn has a call, an answer and a reply; {seen} events were seen");
    }
    nanoseconds.sort_unstable();
    println!("{}", nanoseconds[turns / 2]);
    Ok(())
}
