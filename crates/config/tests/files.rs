//! What files say, what they may not say, and how errors tell it.

use std::fs;
use std::path::Path;

use serde_json::json;
use sessile_config::{ConfigError, LoadedApp, load_app, load_apps};
use tempfile::TempDir;

const SCRIPT: &str = "turns: [{ reply: hello }]\nrepeat: true\n";

/// A folder of applications with one, named `shop`, of these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("there is room");
    write(&folder.path().join("shop"), files);
    folder
}

fn write(app: &Path, files: &[(&str, &str)]) {
    for (name, text) in files.iter().chain(&[("script.yaml", SCRIPT)]) {
        let path = app.join(name);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("there is room");
        fs::write(path, text).expect("there is room");
    }
}

fn load(files: &[(&str, &str)]) -> Result<LoadedApp, ConfigError> {
    load_app(&folder(files).path().join("shop"))
}

fn error_of(files: &[(&str, &str)]) -> String {
    load(files).expect_err("it is refused").to_string()
}

/// The error of a file whose first line is a good model.
fn error_in(yaml: &str) -> String {
    error_of(&[("root_agent.yaml", &format!("model: scripted:script.yaml\n{yaml}"))])
}

#[test]
fn an_agent_has_all_that_its_file_says() {
    let root = "
name: seller
model: scripted:script.yaml
description: sells
instruction: Sell {thing?}.
static_instruction: Be kind.
global_instruction: You are all one.
output_key: last
output_schema: { type: object, properties: { price: { type: number } } }
include_contents: none
disallow_transfer_to_parent: true
disallow_transfer_to_peers: true
generate_content_config:
  temperature: 0.5
  maxOutputTokens: 100
  thinking_config: { thinking_budget: 5 }
tools:
  - name: load_memory
  - name: google.adk.tools.exit_loop
  - { name: AgentTool, args: { agent: { config_path: helpers/taxes.yaml }, skip_summarization: true } }
sub_agents:
  - config_path: packer.yaml
";
    let app = load(&[
        ("root_agent.yaml", root),
        ("packer.yaml", "name: packer\ninstruction: pack"),
        ("helpers/taxes.yaml", "name: taxes\nmodel: scripted:rates.yaml"),
        ("helpers/rates.yaml", SCRIPT),
    ])
    .unwrap();
    assert_eq!((app.name.as_str(), app.language, app.files.len()), ("shop", "yaml", 3));
    assert_eq!(app.root.description(), "sells");
    assert_eq!(app.root.sub_agents()[0].name(), "packer");
    let agent = app.root.as_llm().expect("it asks a model");
    let tools: Vec<&str> = agent.tools().iter().map(|tool| tool.name()).collect();
    assert_eq!(tools, ["load_memory", "exit_loop", "taxes"]);
    assert_eq!(agent.model().expect("it has one").name(), "scripted:script.yaml");
}

#[test]
fn agents_of_other_classes_run_those_below() {
    let app = load(&[
        ("root_agent.yaml", "agent_class: SequentialAgent\nname: all\ndescription: d\nsub_agents: [{ config_path: a.yaml }, { config_path: b.yaml }]"),
        ("a.yaml", "agent_class: ParallelAgent\nname: both\nsub_agents: [{ config_path: c.yaml }]"),
        ("b.yaml", "agent_class: google.adk.agents.LoopAgent\nname: again\nmax_iterations: 3\nsub_agents: [{ config_path: d.yaml }]"),
        ("c.yaml", "agent_class: LlmAgent\nname: c\nmodel: scripted:script.yaml"),
        ("d.yaml", "name: d\nmodel: scripted:script.yaml"),
    ])
    .unwrap();
    let below: Vec<&str> = app.root.sub_agents().iter().map(|agent| agent.name()).collect();
    assert_eq!((app.root.name(), app.root.description(), below), ("all", "d", vec!["both", "again"]));
}

#[test]
fn errors_name_file_line_column_and_field() {
    let mut wrong = Vec::new();
    for (yaml, error) in [
        ("nmae: a", "2:1: nmae: there is no such field; did you mean `name`?"),
        ("name: a\ntotally_unknown: 1", "3:1: totally_unknown: there is no such field"),
        ("instruction: hi", "1:1: name: it is missing; every agent has a name"),
        ("name: a\nname: b", "3:1: duplicate mapping key: name not allowed here"),
        ("name: [a]", "2:7: name: "),
        (
            "name: a\ninclude_contents: some",
            "3:19: include_contents: it is `default` or `none`, not \"some\"",
        ),
        ("name: a\nmax_iterations: 3", "3:17: max_iterations: only a LoopAgent has it; this is a LlmAgent"),
        (
            "name: a\nagent_class: Sequental",
            "3:14: agent_class: there is no class `Sequental`; did you mean `SequentialAgent`?",
        ),
        (
            "name: a\nagent_class: my.Agent",
            "3:14: agent_class: `my.Agent` is code; agents that are code are made in Rust",
        ),
        ("name: a\nagent_class: LoopAgent", "1:8: model: only an LlmAgent has it; this is a LoopAgent"),
        ("name: a\ndisallow_transfer_to_peers: perhaps", "3:29: disallow_transfer_to_peers: "),
        (
            "name: a\nbefore_model_callbacks:\n  - name: x.y",
            "4:3: before_model_callbacks: it names code; callbacks and other code are written in Rust",
        ),
        (
            "name: a\noutput_schema:\n  name: my.Schema",
            "4:3: output_schema: `my.Schema` is code; write the JSON Schema of the answer here, or the agent in Rust",
        ),
        ("name: a\noutput_schema: 3", "3:16: output_schema: it is not a JSON Schema, which is a mapping"),
        (
            "name: a\noutput_schema: { price: number }",
            "3:16: output_schema: it is not a JSON Schema: it has neither `type` nor `properties`",
        ),
        (
            "name: a\ngenerate_content_config:\n  temprature: 1",
            "4:15: generate_content_config.temprature: there is no such setting; did you mean `temperature`?",
        ),
        (
            "name: a\ngenerate_content_config:\n  seed: 1\n  top_p: high",
            "5:10: generate_content_config.top_p: invalid type: string \"high\", expected f64",
        ),
        (
            "name: a\ngenerate_content_config:\n  tools: []",
            "4:10: generate_content_config.tools: tools are given in `tools` of the agent",
        ),
        (
            "name: a\ntools:\n  - name: exit_lop",
            "4:11: tools: there is no tool `exit_lop` here; did you mean `exit_loop`? (there are exit_loop, load_memory, AgentTool)",
        ),
        (
            "name: a\ntools:\n  - name: my.tools.add",
            "4:11: tools: `my.tools.add` is code; tools that are code are written in Rust",
        ),
        (
            "name: a\ntools: [{ name: exit_loop, args: { agent: {} } }]",
            "3:34: tools: the tool `exit_loop` takes no `args`",
        ),
        (
            "name: a\ntools: [{ name: AgentTool }]",
            "3:17: tools: AgentTool needs `args` with an `agent`, which has a `config_path`",
        ),
        (
            "name: a\nsub_agents:\n  - code: my.agent",
            "4:11: sub_agents: my.agent is code; agents that are code are made in Rust",
        ),
        ("name: a\nsub_agents: [{}]", "3:14: sub_agents: `config_path` is missing: the file of the agent"),
        (
            "name: a\nsub_agents: [{ config_pth: x }]",
            "3:16: config_pth: there is no such field; did you mean `config_path`?",
        ),
        (
            "name: a\nsub_agents: [{ config_path: gone.yaml }]",
            "3:29: sub_agents: \"gone.yaml\" cannot be read: No such file or directory (os error 2)",
        ),
        (
            "name: a\nsub_agents: [{ config_path: ../x.yaml }]",
            "3:29: sub_agents: \"../x.yaml\" is not a file in the folder of this file, or below it",
        ),
        (
            "name: a\nsub_agents: [{ config_path: /etc/passwd }]",
            "3:29: sub_agents: \"/etc/passwd\" is not a file in the folder of this file, or below it",
        ),
        (
            "name: a\nsub_agents: [{ config_path: root_agent.yaml }]",
            "3:29: sub_agents: \"root_agent.yaml\" leads back to an agent above; a tree of agents has no cycles",
        ),
        (
            "name: 1st",
            "2:7: cannot build agent `1st`: the agent name \"1st\" is not made of letters, digits and `_`, a digit not first",
        ),
        (
            "name: a\ntools: [{ name: exit_loop }, { name: exit_loop }]",
            "2:7: cannot build agent `a`: two tools are named `exit_loop`; give each its own name",
        ),
        ("name: a\ninstruction: 'open", "3:14: "),
    ] {
        let text = error_in(yaml);
        let expected = format!("shop/root_agent.yaml:{error}");
        // The rest is in the words of the YAML parser.
        let fits = if expected.ends_with(": ") { text.starts_with(&expected) } else { text == expected };
        if !fits {
            wrong.push(format!("{yaml}\n  is       {text}\n  expected {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_model_that_cannot_be_used_is_told_at_the_start() {
    assert_eq!(
        error_of(&[("root_agent.yaml", "name: a\nmodel: gpt")]),
        "shop/root_agent.yaml:2:8: model: the model \"gpt\" cannot be used: \
         there is no such model; names are gemini-…, gemma-…, openai/NAME and scripted:FILE"
    );
    assert!(
        error_of(&[("root_agent.yaml", "name: a\nmodel: scripted:../../x.yaml")])
            .contains("the script must be a file in the folder of the agent")
    );
    let broken = error_of(&[
        ("root_agent.yaml", "name: a\nmodel: scripted:s.yaml"),
        ("s.yaml", "turns: [{ repyl: a }]"),
    ]);
    assert!(broken.contains("repyl") && broken.contains("line 1"), "{broken}");
}

#[test]
fn names_are_used_once_and_files_do_not_lead_in_circles() {
    let root = "name: a\nmodel: scripted:script.yaml\nsub_agents: [{ config_path: sub/b.yaml }, { config_path: c.yaml }]";
    assert_eq!(
        error_of(&[("root_agent.yaml", root), ("sub/b.yaml", "name: x"), ("c.yaml", "\nname: x")]),
        "shop/c.yaml:2:7: name: another agent is named `x`, at shop/sub/b.yaml:1:7"
    );
    assert_eq!(
        error_of(&[
            ("root_agent.yaml", root),
            ("sub/b.yaml", "name: b\nsub_agents: [{ config_path: deep/d.yaml }]"),
            ("sub/deep/d.yaml", "name: d\nsub_agents: [{ config_path: d.yaml }]"),
            ("c.yaml", "name: c"),
        ]),
        "shop/sub/deep/d.yaml:2:29: sub_agents: \"d.yaml\" leads back to an agent above; a tree of agents has no cycles"
    );
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_out_of_the_folder_is_refused() {
    let folder = folder(&[(
        "root_agent.yaml",
        "name: a\nmodel: scripted:script.yaml\nsub_agents: [{ config_path: b.yaml }]",
    )]);
    fs::write(folder.path().join("outside.yaml"), "name: b").unwrap();
    std::os::unix::fs::symlink("../outside.yaml", folder.path().join("shop/b.yaml")).unwrap();
    assert_eq!(
        load_app(&folder.path().join("shop")).err().unwrap().to_string(),
        "shop/root_agent.yaml:3:29: sub_agents: \"b.yaml\" leads out of the folder of this file"
    );
}

#[test]
fn files_that_are_empty_huge_or_not_text_are_refused() {
    assert_eq!(
        error_of(&[("root_agent.yaml", " \n")]),
        "shop/root_agent.yaml:1:1: the file is empty; it needs at least a name"
    );
    let huge = format!("name: a # {}", "x".repeat(1 << 20));
    assert_eq!(
        error_of(&[("root_agent.yaml", &huge)]),
        "shop/root_agent.yaml cannot be read: it is larger than 1048576 bytes"
    );
    assert!(error_of(&[("root_agent.yaml", "- a\n- b")]).starts_with("shop/root_agent.yaml:1:1: "));
    let folder = folder(&[]);
    fs::write(folder.path().join("shop/root_agent.yaml"), [0xFF, 0xFE, 0x00]).unwrap();
    let error = load_app(&folder.path().join("shop")).err().unwrap().to_string();
    assert!(error.starts_with("shop/root_agent.yaml cannot be read: "), "{error}");
    let bomb = format!(
        "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [{0}]\nc: &c [{1}]\nname: [{2}]",
        ["*a"; 9].join(","),
        ["*b"; 9].join(","),
        ["*c"; 9].join(",")
    );
    assert!(load(&[("root_agent.yaml", &bomb)]).is_err());
}

#[test]
fn all_applications_of_a_folder_are_loaded_and_one_that_is_wrong_does_not_hinder_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let good = ("root_agent.yaml", "name: a\nmodel: scripted:script.yaml");
    write(&folder.path().join("b-app"), &[good]);
    write(&folder.path().join("a_app"), &[("root_agent.yaml", "name: [")]);
    write(&folder.path().join("1app"), &[good]);
    write(&folder.path().join("user"), &[good]);
    write(&folder.path().join(".hidden"), &[good]);
    write(&folder.path().join("python"), &[("agent.py", "")]);
    fs::write(folder.path().join("README.md"), "").unwrap();
    let apps = load_apps(folder.path()).unwrap();
    let seen: Vec<String> = apps
        .iter()
        .map(|(name, app)| match app {
            Ok(app) => format!("{name}: {}", app.root.name()),
            Err(error) => error.to_string(),
        })
        .collect();
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert_eq!(
        seen[0],
        "\"1app\" cannot be the name of an application: it begins with a letter and has letters, digits, \"_\" and \"-\" only"
    );
    assert!(seen[1].starts_with("a_app/root_agent.yaml:1:"), "{}", seen[1]);
    assert_eq!(seen[2], "b-app: a");
    assert_eq!(seen[3], "\"user\" cannot be the name of an application: that is the author of messages");
}

#[test]
fn a_folder_may_be_an_application_itself_and_other_folders_are_told_apart() {
    let one = folder(&[("root_agent.yaml", "name: a\nmodel: scripted:script.yaml")]);
    let apps = load_apps(&one.path().join("shop")).unwrap();
    assert_eq!((apps.len(), apps[0].0.as_str()), (1, "shop"));
    assert!(load_apps(tempfile::tempdir().unwrap().path()).unwrap().is_empty());
    assert!(
        load_apps(Path::new("/nowhere")).err().unwrap().to_string().starts_with("/nowhere cannot be read: ")
    );
    let none = folder(&[]);
    assert_eq!(
        load_app(&none.path().join("shop")).err().unwrap().to_string(),
        "shop contains no root_agent.yaml"
    );
}

#[test]
fn the_root_file_declares_what_the_state_may_hold() {
    let root = "
name: seller
model: scripted:script.yaml
state_schema:
  step: string
  user:points: { type: integer, min: 0, max: 100 }
  user:email: { type: string, nullable: true }
  app:rates: { type: list, items: { type: number, min: 0 } }
  cart: { type: list }
  profile: object
  note: any
";
    let folder = folder(&[("root_agent.yaml", root)]);
    let app = load_app(&folder.path().join("shop")).unwrap();
    let schema = app.schema.expect("it is declared");
    for (key, value) in [
        ("step", json!("one")),
        ("user:points", json!(100)),
        ("user:email", json!(null)),
        ("app:rates", json!([0.5])),
        ("cart", json!([1, "two"])),
        ("profile", json!({})),
        ("note", json!(null)),
        ("temp:free", json!(1)),
    ] {
        assert!(schema.check(key, &value).is_ok(), "{key}");
    }
    for (key, value) in [
        ("step", json!(1)),
        ("user:points", json!(101)),
        ("user:points", json!(1.5)),
        ("user:email", json!(1)),
        ("app:rates", json!([-1])),
        ("cart", json!({})),
        ("profile", json!([])),
        ("user:undeclared", json!(1)),
        ("undeclared", json!(1)),
    ] {
        assert!(schema.check(key, &value).is_err(), "{key}");
    }
    let schemas = sessile_config::load_schemas(folder.path()).unwrap();
    assert!(matches!(&schemas[..], [(name, Ok(Some(_)))] if name == "shop"));
    assert!(load(&[("root_agent.yaml", "name: a\nmodel: scripted:script.yaml")]).unwrap().schema.is_none());
}

#[test]
fn a_schema_is_read_although_its_agents_cannot_be_made() {
    let folder =
        folder(&[("root_agent.yaml", "name: a\nmodel: scripted:missing.yaml\nstate_schema: { n: integer }")]);
    assert!(load_app(&folder.path().join("shop")).is_err());
    let schema = sessile_config::load_schema(&folder.path().join("shop")).unwrap().expect("it is declared");
    assert!(schema.check("n", &json!("text")).is_err());
}

#[test]
fn a_wrong_schema_is_told_with_its_place() {
    for (declared, told) in [
        (
            "n: intger",
            "shop/root_agent.yaml:4:6: state_schema: `n`: there is no type `intger`; did you mean `integer`?",
        ),
        ("n: 5", "`n`: a type is a name (string, integer,"),
        ("n: { min: 0 }", "`n`: `type` is missing"),
        ("n: { type: integer, minn: 0 }", "`n`: there is no such field as `minn`; did you mean `min`?"),
        ("n: { type: string, min: 0 }", "only numbers have `min` and `max`, and the type is `string`"),
        ("n: { type: integer, min: 2, max: 1 }", "`min` 2 is above `max` 1"),
        ("n: { type: integer, min: low }", "`min` is a number"),
        ("n: { type: integer, items: string }", "only a list has `items`"),
        ("n: { type: list, items: strng }", "`items`: there is no type `strng`; did you mean `string`?"),
        ("n: { type: string, nullable: 1 }", "`nullable` is true or false"),
    ] {
        let error = error_in(&format!("name: a\nstate_schema:\n  {declared}"));
        assert!(error.contains(told), "{error}");
    }
    let error = error_of(&[
        ("root_agent.yaml", "agent_class: SequentialAgent\nname: all\nsub_agents: [{ config_path: a.yaml }]"),
        ("a.yaml", "name: a\nmodel: scripted:script.yaml\nstate_schema: { n: integer }"),
    ]);
    assert!(error.contains("a.yaml:3") && error.contains("only root_agent.yaml has it"), "{error}");
}

#[test]
fn reducers_and_the_answer_to_overwrites_reach_the_agents() {
    use sessile_agent::Reducer;
    use sessile_session::OnOverwrite;

    let root = "
name: root
agent_class: ParallelAgent
on_overwrite: refuse
reducers: { findings: append }
state_schema:
  user:points: { type: integer, min: 0, reducer: add }
  findings: { type: list }
sub_agents: [{ config_path: leaf.yaml }]
";
    let leaf = "
name: leaf
model: scripted:script.yaml
on_overwrite: report
reducers: { tags: union }
";
    let app = load(&[("root_agent.yaml", root), ("leaf.yaml", leaf)]).expect("it is good");
    assert_eq!(app.root.on_overwrite(), Some(OnOverwrite::Refuse));
    assert_eq!(app.root.reducers().expect("it has some")["findings"], Reducer::Append);
    let leaf = &app.root.sub_agents()[0];
    assert_eq!(leaf.on_overwrite(), Some(OnOverwrite::Report));
    assert_eq!(leaf.reducers().expect("it has some")["tags"], Reducer::Union);
    assert_eq!(app.schema.expect("it is declared").reducers()["user:points"], Reducer::Add);
}

#[test]
fn what_is_no_reducer_and_no_answer_to_overwrites_is_told_with_its_place() {
    for (yaml, told) in [
        ("name: a\non_overwrite: ignore\n", "it is `report` or `refuse`, not \"ignore\""),
        ("name: a\nreducers: { n: sum }\n", "`n`: there is no reducer \"sum\""),
        (
            "name: a\nstate_schema: { n: { type: integer, reducer: 1 } }\n",
            "`reducer` is the name of a reducer",
        ),
    ] {
        let error = error_in(yaml);
        assert!(error.contains(told) && error.contains("root_agent.yaml:3"), "{error}");
    }
    let sequence = "name: a\nagent_class: SequentialAgent\nreducers: { n: add }\n";
    let error = error_of(&[("root_agent.yaml", sequence)]);
    assert!(error.contains("only an LlmAgent and a ParallelAgent"), "{error}");
}
