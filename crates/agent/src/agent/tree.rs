use std::collections::HashMap;
use std::sync::Arc;

use crate::agent::Agent;
use crate::error::BuildError;
use crate::model::Model;

/// The agents of a runner, found by name.
pub(crate) struct Tree {
    root: Arc<dyn Agent>,
    by_name: HashMap<String, Node>,
}

struct Node {
    agent: Arc<dyn Agent>,
    parent: Option<String>,
    /// The path of the node in events of the agent.
    path: String,
}

impl Tree {
    /// The tree under an agent. It is refused, with all problems, if an agent or a name occurs
    /// twice, or if an LLM agent has no model.
    pub(crate) fn new(root: Arc<dyn Agent>) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let mut tree = Self { root: root.clone(), by_name: HashMap::new() };
        let mut path = Vec::new();
        tree.add(&root, &mut path, &mut problems);
        if problems.is_empty() {
            tree.check_models(&mut problems);
        }
        if problems.is_empty() { Ok(tree) } else { Err(problems) }
    }

    pub(crate) fn root(&self) -> &Arc<dyn Agent> {
        &self.root
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Arc<dyn Agent>> {
        self.by_name.get(name).map(|node| &node.agent)
    }

    pub(crate) fn parent(&self, name: &str) -> Option<&Arc<dyn Agent>> {
        self.find(self.by_name.get(name)?.parent.as_ref()?)
    }

    /// The path of the node in events of an agent, such as `root@1/child@1`. Agents that are below
    /// an agent that is not an LLM agent have none, as in google-adk.
    pub(crate) fn node_path(&self, name: &str) -> &str {
        self.by_name.get(name).map_or("", |node| &node.path)
    }

    /// The names of all agents, sorted.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// The agent's own model, or that of the nearest agent above that has one.
    pub(crate) fn model(&self, name: &str) -> Option<&Arc<dyn Model>> {
        let mut name = name;
        loop {
            let node = self.by_name.get(name)?;
            if let Some(model) = node.agent.as_llm().and_then(|agent| agent.model()) {
                return Some(model);
            }
            name = node.parent.as_ref()?;
        }
    }

    fn add(&mut self, agent: &Arc<dyn Agent>, path: &mut Vec<Arc<dyn Agent>>, problems: &mut Vec<String>) {
        let name = agent.name();
        if path.iter().any(|above| is_same(above, agent)) {
            problems.push(format!("agent `{name}` is below itself; a tree of agents has no cycles"));
            return;
        }
        let parent = path.last().map(|parent| parent.name().to_owned());
        if let Some(first) = self.by_name.get(name) {
            problems.push(match is_same(&first.agent, agent) {
                true => format!("agent `{name}` is in the tree twice; give each place an agent of its own"),
                false => format!("two agents are named `{name}`; give each its own name"),
            });
            return;
        }
        check_name(name, problems);
        path.push(agent.clone());
        self.by_name.insert(name.to_owned(), Node { agent: agent.clone(), parent, path: node_path(path) });
        for below in agent.sub_agents() {
            self.add(below, path, problems);
        }
        path.pop();
    }

    fn check_models(&self, problems: &mut Vec<String>) {
        for name in self.names() {
            let asks = self.find(name).is_some_and(|agent| agent.as_llm().is_some());
            if asks && self.model(name).is_none() {
                problems.push(format!("agent `{name}` has no model, and no agent above it has one"));
            }
        }
    }
}

fn is_same(a: &Arc<dyn Agent>, b: &Arc<dyn Agent>) -> bool {
    // Agents without fields share an address, so the name is compared too.
    std::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b)) && a.name() == b.name()
}

/// The path of an agent, given with all agents above it; empty unless all of them are LLM agents.
pub(crate) fn node_path(agents: &[Arc<dyn Agent>]) -> String {
    let all_ask = agents.iter().all(|agent| agent.as_llm().is_some());
    let names = agents.iter().filter(|_| all_ask).map(|agent| format!("{}@1", agent.name()));
    names.collect::<Vec<_>>().join("/")
}

/// Checks a name: a letter or `_`, then letters, digits and `_`. It is not `user`, which is the
/// author of messages.
fn check_name(name: &str, problems: &mut Vec<String>) {
    let mut characters = name.chars();
    let begins = characters.next().is_some_and(|first| first.is_alphabetic() || first == '_');
    if name.trim().is_empty() {
        problems.push("an agent's name is blank; give it one".to_owned());
    } else if name == "user" {
        problems.push("no agent can be named `user`: that is the author of messages".to_owned());
    } else if !begins || !characters.all(|next| next.is_alphanumeric() || next == '_') {
        problems.push(format!(
            "the agent name {name:?} is not made of letters, digits and `_`, a digit not first"
        ));
    }
}

/// Checks an agent and all below it: invalid names, names that are used twice, and cycles.
pub(crate) fn check(
    name: &str,
    sub_agents: &[Arc<dyn Agent>],
    mut problems: Vec<String>,
) -> Result<(), BuildError> {
    check_name(name, &mut problems);
    let mut names: Vec<String> = Vec::new();
    let mut path: Vec<Arc<dyn Agent>> = Vec::new();
    for agent in sub_agents {
        collect(agent, &mut names, &mut path, &mut problems);
    }
    names.push(name.to_owned());
    names.sort_unstable();
    let mut twice: Vec<&String> =
        names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| &pair[0]).collect();
    twice.dedup();
    problems.extend(
        twice.iter().map(|name| format!("more than one agent is named `{name}`; give each its own name")),
    );
    BuildError::check(|| format!("agent `{name}`"), problems)
}

fn collect(
    agent: &Arc<dyn Agent>,
    names: &mut Vec<String>,
    path: &mut Vec<Arc<dyn Agent>>,
    problems: &mut Vec<String>,
) {
    if path.iter().any(|above| above.name() == agent.name()) {
        problems.push(format!("agent `{0}` is below itself, or below another `{0}`", agent.name()));
        return;
    }
    names.push(agent.name().to_owned());
    path.push(agent.clone());
    for below in agent.sub_agents() {
        collect(below, names, path, problems);
    }
    path.pop();
}
