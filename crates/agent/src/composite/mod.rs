//! Agents that run other agents.

mod parallel;
mod repeat;
mod sequential;

pub use parallel::ParallelAgent;
pub use repeat::LoopAgent;
pub use sequential::SequentialAgent;

use std::sync::Arc;

use sessile_session::OnOverwrite;

use crate::agent::Agent;
use crate::agent::callback::AgentCallbacks;
use crate::agent::tree;
use crate::error::BuildError;

/// What all composite agents have.
struct Composite {
    name: String,
    description: String,
    sub_agents: Vec<Arc<dyn Agent>>,
    callbacks: AgentCallbacks,
    on_overwrite: Option<OnOverwrite>,
}

impl Composite {
    fn new<A: Agent + 'static>(
        name: String,
        agents: impl IntoIterator<Item = A>,
    ) -> Result<Self, BuildError> {
        let sub_agents: Vec<Arc<dyn Agent>> = agents.into_iter().map(|agent| Arc::new(agent) as _).collect();
        tree::check(&name, &sub_agents, Vec::new())?;
        let (description, callbacks) = (String::new(), AgentCallbacks::new());
        Ok(Self { name, description, sub_agents, callbacks, on_overwrite: None })
    }

    fn reads_history(&self) -> bool {
        self.sub_agents.iter().any(|agent| agent.reads_history())
    }
}

/// The methods that every composite agent has.
macro_rules! composite {
    (methods) => {
        fn name(&self) -> &str {
            &self.composite.name
        }

        fn description(&self) -> &str {
            &self.composite.description
        }

        fn sub_agents(&self) -> &[std::sync::Arc<dyn Agent>] {
            &self.composite.sub_agents
        }

        fn callbacks(&self) -> Option<&crate::agent::callback::AgentCallbacks> {
            Some(&self.composite.callbacks)
        }

        fn on_overwrite(&self) -> Option<sessile_session::OnOverwrite> {
            self.composite.on_overwrite
        }

        fn reads_history(&self) -> bool {
            self.composite.reads_history()
        }
    };
    ($agent:ident) => {
        impl std::fmt::Debug for $agent {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($agent)).field("name", &self.composite.name).finish_non_exhaustive()
            }
        }

        impl $agent {
            /// With a description, which the models of other agents read to decide when to
            /// transfer.
            #[must_use]
            pub fn with_description(mut self, description: impl Into<String>) -> Self {
                self.composite.description = description.into();
                self
            }

            /// With this reaction if a key that a callback or tool of an agent below read and then
            /// set holds another value at the commit: the event reports it, or the write is
            /// refused.
            #[must_use]
            pub fn with_on_overwrite(mut self, on_overwrite: sessile_session::OnOverwrite) -> Self {
                self.composite.on_overwrite = Some(on_overwrite);
                self
            }

            /// With callbacks that run before and after it.
            #[must_use]
            pub fn with_callbacks(mut self, callbacks: crate::agent::callback::AgentCallbacks) -> Self {
                self.composite.callbacks = callbacks;
                self
            }
        }
    };
}
use composite;
