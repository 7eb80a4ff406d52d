use std::sync::Arc;

use sessile_session::{Event, SessionError};

use crate::agent::Agent;
use crate::agent::callback::{AgentCallback, call_guarded};
use crate::catch_panic::catch_panic;
use crate::context::{CallbackContext, InvocationContext};
use crate::error::{AgentError, untold};

impl InvocationContext {
    /// Runs an agent, its callbacks, and the agents that it transfers to.
    ///
    /// # Errors
    ///
    /// [`AgentError::Failed`] if it fails; the failure is already stored as an event.
    pub async fn run(&self, agent: &Arc<dyn Agent>) -> Result<(), AgentError> {
        run_agents(self, agent.clone()).await
    }
}

/// Runs an agent, then those that it transfers to, one after the other. It is a loop and not a
/// recursion, so a chain of transfers needs no more memory than one agent.
pub(crate) async fn run_agents(ctx: &InvocationContext, first: Arc<dyn Agent>) -> Result<(), AgentError> {
    let mut agent = first;
    loop {
        let here = ctx.below(&*agent);
        let next = match run_agent(&here, &*agent).await {
            Ok(()) => next(&here),
            Err(error) => Err(error),
        };
        match next {
            Ok(Some(next)) => agent = next,
            Ok(None) => return Ok(()),
            Err(error) => return Err(record(&here, error).await),
        }
    }
}

/// The agent that was transferred to, if there is one.
fn next(here: &InvocationContext) -> Result<Option<Arc<dyn Agent>>, AgentError> {
    let Some(target) = here.frame.transfer().take() else { return Ok(None) };
    match here.invocation.tree.find(&target) {
        Some(agent) => Ok(Some(agent.clone())),
        None => Err(AgentError::Transfer {
            agent: here.agent_name().to_owned(),
            reason: format!("there is no such agent; there are {}", here.invocation.tree.names().join(", ")),
            target,
        }),
    }
}

/// Runs one agent between its callbacks.
async fn run_agent(ctx: &InvocationContext, agent: &dyn Agent) -> Result<(), AgentError> {
    let callbacks = agent.callbacks();
    if let Some(callbacks) = callbacks
        && call(ctx, &callbacks.before, "before_agent", Some(agent)).await?
    {
        return Ok(());
    }
    if ctx.frame.transfer().is_some() {
        return Ok(());
    }
    catch_panic(agent.run(ctx)).await.map_err(|panic| AgentError::Other {
        code: "AGENT_PANICKED".to_owned(),
        source: format!("agent `{}` panicked: {panic}", ctx.agent_name()).into(),
    })??;
    if let Some(callbacks) = callbacks {
        call(ctx, &callbacks.after, "after_agent", None).await?;
    }
    Ok(())
}

/// Runs callbacks until one returns a content, and commits the content and the changes of all.
/// Returns whether there was a content. If it is the agent's answer, it is stored under the output
/// key.
async fn call(
    ctx: &InvocationContext,
    callbacks: &[AgentCallback],
    hook: &'static str,
    answers_for: Option<&dyn Agent>,
) -> Result<bool, AgentError> {
    if callbacks.is_empty() {
        return Ok(false);
    }
    let changes = CallbackContext::new(ctx);
    let mut answer = None;
    for callback in callbacks {
        match call_guarded(ctx, hook, async { callback(changes.clone()).await }).await {
            Ok(content) => answer = content,
            Err(error) => {
                changes.changes.forget();
                return Err(error);
            }
        }
        if answer.is_some() {
            break;
        }
    }
    let is_answer = answer.is_some();
    let llm = answers_for.and_then(|agent| agent.as_llm()).filter(|_| is_answer);
    ctx.emit_changes(answer, &changes, |event| llm.map_or(Ok(()), |llm| llm.keep_output(ctx, event))).await?;
    Ok(is_answer)
}

/// Stores the failure of an agent as an event, unless one records it already or nothing can be
/// stored.
async fn record(ctx: &InvocationContext, error: AgentError) -> AgentError {
    let stored = match &error {
        AgentError::Cancelled | AgentError::Failed { .. } => return error,
        AgentError::Session(error) => matches!(
            error,
            SessionError::InvalidState { .. }
                | SessionError::InvalidEvent { .. }
                | SessionError::EventConflict { .. }
                | SessionError::Operation { .. }
                | SessionError::Overwritten { .. }
                | SessionError::TooLarge { .. }
        ),
        _ => true,
    };
    if !stored {
        return error;
    }
    let (code, message) = (error.code().to_owned(), error.to_string());
    if let Some(cause) = untold(&error) {
        tracing::error!(session = %ctx.session_key(), agent = ctx.agent_name(), %error, %cause, "an agent failed");
    }
    let mut event = Event::new(ctx.agent_name());
    event.error_code = Some(code.clone());
    event.error_message = Some(message.clone());
    match ctx.emit(event).await {
        Ok(_) => {}
        Err(AgentError::Cancelled) => return AgentError::Cancelled,
        Err(problem) => {
            tracing::error!(%problem, %error, session = %ctx.session_key(), "cannot store that an agent failed")
        }
    }
    AgentError::Failed { agent: ctx.agent_name().to_owned(), code, message, source: Box::new(error) }
}
