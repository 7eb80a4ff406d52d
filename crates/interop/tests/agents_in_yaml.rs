//! The same folder of agents in google-adk and in Sessile.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::{Value, json};
use sessile_agent::Agent;
use sessile_config::load_app;

const FILES: [(&str, &str); 5] = [
    (
        "root_agent.yaml",
        "
agent_class: SequentialAgent
name: journey
description: Plans, then packs.
sub_agents:
  - config_path: planner.yaml
  - config_path: packing/again.yaml
",
    ),
    (
        "planner.yaml",
        "
agent_class: LlmAgent
name: planner
model: scripted:script.yaml
description: Plans.
instruction: Plan for {user:name?}.
static_instruction: Be brief.
output_key: plan
include_contents: none
disallow_transfer_to_parent: true
disallow_transfer_to_peers: true
generate_content_config:
  temperature: 0.5
  max_output_tokens: 100
tools:
  - name: load_memory
  - name: exit_loop
",
    ),
    (
        "packing/again.yaml",
        "
agent_class: LoopAgent
name: again
max_iterations: 3
sub_agents: [{ config_path: both.yaml }]
",
    ),
    (
        "packing/both.yaml",
        "
agent_class: ParallelAgent
name: both
sub_agents: [{ config_path: packer.yaml }]
",
    ),
    ("packing/packer.yaml", "name: packer\ninstruction: Pack.\nmodel: scripted:script.yaml\n"),
];

/// Loads a folder and prints its tree.
const PYTHON: &str = "
import json, sys
from google.adk.agents.config_agent_utils import from_config

def name(tool):
    return getattr(tool, 'name', None) or tool.__name__

def tree(agent):
    return {
        'name': agent.name,
        'description': agent.description,
        'tools': [name(tool) for tool in getattr(agent, 'tools', [])],
        'below': [tree(below) for below in agent.sub_agents],
    }

print(json.dumps(tree(from_config(sys.argv[1]))))
";

fn tree(agent: &dyn Agent) -> Value {
    let tools: Vec<&str> =
        agent.as_llm().map_or_else(Vec::new, |agent| agent.tools().iter().map(|tool| tool.name()).collect());
    let below: Vec<Value> = agent.sub_agents().iter().map(|below| tree(&**below)).collect();
    json!({ "name": agent.name(), "description": agent.description(), "tools": tools, "below": below })
}

#[test]
fn google_adk_and_sessile_make_the_same_agents_of_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    let app = folder.path().join("journey");
    fs::create_dir_all(app.join("packing")).unwrap();
    let script = "turns: [{ reply: hello }]";
    let scripts = [("script.yaml", script), ("packing/script.yaml", script)];
    for (name, text) in FILES.iter().chain(&scripts) {
        fs::write(app.join(name), text).unwrap();
    }
    let ours = tree(&*load_app(&app).unwrap().root);
    let python = env::var_os("SESSILE_TEST_PYTHON").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/python"),
        PathBuf::from,
    );
    assert!(python.exists(), "there is no {}: run ./test, which installs google-adk", python.display());
    let output = Command::new(python).args(["-c", PYTHON]).arg(app.join("root_agent.yaml")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let theirs: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(ours, theirs);
    assert_eq!(ours["below"][0]["tools"], json!(["load_memory", "exit_loop"]));
}
