//! An agent whose tool counts.

use serde_json::{Value, json};
use sessile_agent::{FunctionTool, IncludeContents, LlmAgent, Runner, ToolContext};
use sessile_contestant::Tool;
use sessile_model::{Scripted, call, reply};
use sessile_session::{BoxError, Event, SessionService};

const COUNTER: &str = "user:counter";

/// A runner of an agent that calls the tool at every message, then says "done".
pub(crate) fn runner(sessions: SessionService, tool: Tool) -> Result<Runner, BoxError> {
    let model = Scripted::from_fn(|request| {
        let parts = request.contents.last().map_or(&[][..], |content| content.parts());
        let answered = parts.iter().any(|part| part.function_response.is_some());
        if answered { reply("done") } else { call("count", json!({})) }
    });
    let builder = LlmAgent::builder("counter").model(model).include_contents(IncludeContents::None);
    let builder = match tool {
        Tool::ReadAndSet => {
            builder.tool(FunctionTool::new("count", "Counts.", async |_: Value, ctx: ToolContext| {
                let now: i64 = ctx.state().get(COUNTER).unwrap_or(0);
                ctx.state().try_set(COUNTER, now + 1)?;
                Ok::<_, BoxError>("counted")
            }))
        }
        Tool::Add => {
            builder.tool(FunctionTool::new("count", "Counts.", async |_: Value, ctx: ToolContext| {
                ctx.state().try_add(COUNTER, 1)?;
                Ok::<_, BoxError>("counted")
            }))
        }
    };
    Ok(Runner::builder("bench", builder.build()?, sessions).build()?)
}

/// How much of the counter an event reports as overwritten.
pub(crate) fn reported(event: &Event) -> i64 {
    let Some(report) = event.overwrote().and_then(|overwrote| overwrote.get(COUNTER)) else { return 0 };
    let reports = match report {
        Value::Array(reports) => reports.as_slice(),
        report => std::slice::from_ref(report),
    };
    let value = |report: &Value, name: &str| report.get(name).and_then(Value::as_i64).unwrap_or(0);
    reports.iter().map(|report| value(report, "found") - value(report, "read")).sum()
}
