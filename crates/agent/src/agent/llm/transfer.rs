//! Transferring to other agents.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::json;

use super::LlmAgent;
use crate::agent::Agent;
use crate::agent::tree::Tree;
use crate::model::FunctionDeclaration;

/// The name of the tool with which a model transfers.
pub(super) const TRANSFER: &str = "transfer_to_agent";

/// The argument that names the agent.
pub(super) const AGENT_NAME: &str = "agent_name";

impl LlmAgent {
    /// The agents that the model may transfer to: its sub-agents, its parent, and the other agents
    /// of its parent.
    pub(super) fn transfer_targets<'a>(&'a self, tree: &'a Tree) -> Vec<&'a Arc<dyn Agent>> {
        let mut targets: Vec<&Arc<dyn Agent>> = self.sub_agents.iter().collect();
        let parent = tree.parent(&self.name).filter(|parent| parent.as_llm().is_some());
        if let Some(parent) = parent {
            if !self.disallow_transfer_to_parent {
                targets.push(parent);
            }
            if !self.disallow_transfer_to_peers {
                targets.extend(parent.sub_agents().iter().filter(|agent| agent.name() != self.name));
            }
        }
        targets
    }
}

/// The declaration of the tool for the model.
pub(super) fn declaration(targets: &[&Arc<dyn Agent>]) -> FunctionDeclaration {
    let names: Vec<&str> = targets.iter().map(|agent| agent.name()).collect();
    let parameters = json!({
        "type": "object",
        "properties": { AGENT_NAME: {
            "type": "string", "enum": names, "description": "The agent that goes on.",
        } },
        "required": [AGENT_NAME],
    });
    FunctionDeclaration {
        name: TRANSFER.to_owned(),
        description: "Hands the conversation over to another agent.".to_owned(),
        parameters: Some(parameters.into()),
    }
}

/// The instruction about the tool for the model.
pub(super) fn instruction(targets: &[&Arc<dyn Agent>]) -> String {
    let mut text = format!(
        "Other agents can answer too. If one of them fits the question better than you do, call `{TRANSFER}` with \
         its name and say nothing else. If you fit best, answer yourself. The other agents are:"
    );
    for agent in targets {
        write!(text, "\n- `{}`", agent.name()).expect("a text takes what is written to it");
        if !agent.description().is_empty() {
            write!(text, ": {}", agent.description()).expect("a text takes what is written to it");
        }
    }
    text
}
