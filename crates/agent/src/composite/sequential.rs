use async_trait::async_trait;

use super::{Composite, composite};
use crate::agent::Agent;
use crate::context::InvocationContext;
use crate::error::{AgentError, BuildError};

/// Runs agents one after the other; each sees the events and the state of those before it.
pub struct SequentialAgent {
    composite: Composite,
}

impl SequentialAgent {
    /// Runs these agents in order.
    ///
    /// # Errors
    ///
    /// [`BuildError`] lists all names that are invalid or used twice.
    pub fn new<A: Agent + 'static>(
        name: impl Into<String>,
        agents: impl IntoIterator<Item = A>,
    ) -> Result<Self, BuildError> {
        Ok(Self { composite: Composite::new(name.into(), agents)? })
    }
}

composite!(SequentialAgent);

#[async_trait]
impl Agent for SequentialAgent {
    composite!(methods);

    async fn run(&self, ctx: &InvocationContext) -> Result<(), AgentError> {
        for agent in &self.composite.sub_agents {
            ctx.run(agent).await?;
            if ctx.is_stopped() {
                break;
            }
        }
        Ok(())
    }
}
