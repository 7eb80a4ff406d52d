pub(crate) mod callback;
pub(crate) mod llm;
pub(crate) mod tree;

use std::sync::Arc;

use async_trait::async_trait;
use sessile_session::OnOverwrite;
use sessile_state::Reducers;

use crate::context::InvocationContext;
use crate::error::AgentError;
use callback::AgentCallbacks;
use llm::LlmAgent;

/// An agent: it answers messages.
///
/// It emits events through the context: [`InvocationContext::emit`] commits an event and passes it
/// to the reader of the run's stream. It returns after the commit, so the code that follows sees
/// the state after the event. [`InvocationContext::run`] runs other agents.
///
/// ```
/// use sessile_agent::{Agent, AgentError, InvocationContext};
/// use sessile_session::{Content, Event};
///
/// /// Counts how often it was asked.
/// struct Counter;
///
/// #[async_trait::async_trait]
/// impl Agent for Counter {
///     fn name(&self) -> &str {
///         "counter"
///     }
///
///     async fn run(&self, ctx: &InvocationContext) -> Result<(), AgentError> {
///         let changes = ctx.changes();
///         let count = changes.state().modify("count", 0_u32, |n| n + 1);
///         let event = Event::new(self.name()).with_content(Content::text("model", format!("{count} times")));
///         ctx.emit_with(event, changes).await?;
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait Agent: Send + Sync {
    /// Its name, which is the author of its events, unique among the agents of a runner.
    fn name(&self) -> &str;

    /// What it is for. Models read it to decide when to transfer to this agent.
    fn description(&self) -> &str {
        ""
    }

    /// The agents below it.
    fn sub_agents(&self) -> &[Arc<dyn Agent>] {
        &[]
    }

    /// The callbacks that run before and after it.
    fn callbacks(&self) -> Option<&AgentCallbacks> {
        None
    }

    /// The keys whose sets become operations in the contexts of this agent and those below it; an
    /// agent below may declare another reducer for the same key.
    fn reducers(&self) -> Option<&Reducers> {
        None
    }

    /// What happens in its contexts when a key that was read and then set holds another value at
    /// the commit. `None` inherits from the agent above it, or from the runner.
    fn on_overwrite(&self) -> Option<OnOverwrite> {
        None
    }

    /// Whether it or an agent below looks at events of earlier turns. If no agent does, they are
    /// not read from the store.
    fn reads_history(&self) -> bool {
        true
    }

    /// This agent, if it is one that asks a model.
    fn as_llm(&self) -> Option<&LlmAgent> {
        None
    }

    /// Answers.
    ///
    /// # Errors
    ///
    /// An error ends the run. It is stored as an event, and returned to the caller.
    async fn run(&self, ctx: &InvocationContext) -> Result<(), AgentError>;
}

/// A shared agent is an agent.
#[async_trait]
impl<A: Agent + ?Sized> Agent for Arc<A> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn description(&self) -> &str {
        (**self).description()
    }

    fn sub_agents(&self) -> &[Arc<dyn Agent>] {
        (**self).sub_agents()
    }

    fn callbacks(&self) -> Option<&AgentCallbacks> {
        (**self).callbacks()
    }

    fn reducers(&self) -> Option<&Reducers> {
        (**self).reducers()
    }

    fn on_overwrite(&self) -> Option<OnOverwrite> {
        (**self).on_overwrite()
    }

    fn reads_history(&self) -> bool {
        (**self).reads_history()
    }

    fn as_llm(&self) -> Option<&LlmAgent> {
        (**self).as_llm()
    }

    async fn run(&self, ctx: &InvocationContext) -> Result<(), AgentError> {
        (**self).run(ctx).await
    }
}
