//! The cost of one turn of an agent: a message, a call of a tool that writes state, its answer, a
//! reply.
//!
//! `turn TURNS HISTORY` prints the nanoseconds of a turn, the median of all, on a session in memory
//! that begins with so many events.

#![expect(clippy::print_stdout, reason = "the answer goes to standard output")]

use std::time::Instant;

use sessile_agent::{FunctionTool, IncludeContents, LlmAgent, RunRequest, Runner, ToolContext};
use sessile_model::{Scripted, call, reply};
use sessile_session::{Content, CreateSession, Event, MemoryStore, SessionService};
use sessile_state::StateError;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("usage: turn TURNS HISTORY");
    let (turns, history): (usize, usize) = (next()?.parse()?, next()?.parse()?);
    let sessions = SessionService::new(MemoryStore::new());
    let said = (0..history).map(|_| Event::new("user").with_content(Content::text("user", "hello")));
    sessions.create(CreateSession::new("count", "ada").with_id("s").with_events(said)).await?;
    let runner = Runner::builder("count", counter()?, sessions).build()?;

    let mut nanoseconds = Vec::with_capacity(turns);
    for _ in 0..turns {
        let start = Instant::now();
        let mut events = runner.run(RunRequest::new("ada", "s").with_text("count"));
        let mut seen = 0;
        while let Some(event) = events.next().await {
            event?;
            seen += 1;
        }
        nanoseconds.push(start.elapsed().as_nanos());
        if seen != 3 {
            return Err(format!("a turn is a call, an answer and a reply; {seen} events were seen").into());
        }
    }
    nanoseconds.sort_unstable();
    println!("{}", nanoseconds[turns / 2]);
    Ok(())
}

/// Calls the tool at every message, then says "done".
fn counter() -> Result<LlmAgent, Box<dyn std::error::Error>> {
    let model = Scripted::from_fn(|request| {
        let parts = request.contents.last().map_or(&[][..], |content| content.parts());
        let answered = parts.iter().any(|part| part.function_response.is_some());
        if answered { reply("done") } else { call("count", serde_json::json!({})) }
    });
    let count = FunctionTool::new("count", "Counts.", async |_: serde_json::Value, ctx: ToolContext| {
        ctx.state().try_set("count", 1)?;
        Ok::<_, StateError>(serde_json::json!({ "count": 1 }))
    });
    let builder = LlmAgent::builder("counter").model(model).tool(count);
    Ok(builder.include_contents(IncludeContents::None).build()?)
}
