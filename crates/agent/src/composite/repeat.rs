use async_trait::async_trait;

use super::{Composite, composite};
use crate::agent::Agent;
use crate::context::InvocationContext;
use crate::error::{AgentError, BuildError};

/// Runs agents one after the other, again and again, until one of them escalates.
pub struct LoopAgent {
    composite: Composite,
    /// `None`: unlimited.
    max_iterations: Option<u32>,
}

impl LoopAgent {
    /// Runs these agents in order, at most this many times; 0 is unlimited.
    ///
    /// # Errors
    ///
    /// [`BuildError`] lists all names that are invalid or used twice.
    pub fn new<A: Agent + 'static>(
        name: impl Into<String>,
        agents: impl IntoIterator<Item = A>,
        max_iterations: u32,
    ) -> Result<Self, BuildError> {
        let max_iterations = (max_iterations > 0).then_some(max_iterations);
        Ok(Self { composite: Composite::new(name.into(), agents)?, max_iterations })
    }
}

composite!(LoopAgent);

#[async_trait]
impl Agent for LoopAgent {
    composite!(methods);

    async fn run(&self, ctx: &InvocationContext) -> Result<(), AgentError> {
        ctx.frame.stop_on_escalation();
        let mut iterations = 0;
        while self.max_iterations.is_none_or(|max| iterations < max) && !self.composite.sub_agents.is_empty()
        {
            iterations += 1;
            for agent in &self.composite.sub_agents {
                ctx.run(agent).await?;
                if ctx.is_stopped() {
                    return Ok(());
                }
            }
            // A loop whose agents never wait must not keep its thread from others.
            tokio::task::yield_now().await;
            if ctx.is_cancelled() {
                return Err(AgentError::Cancelled);
            }
        }
        Ok(())
    }
}
