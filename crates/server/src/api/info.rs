//! The version of the server, and its applications.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use sessile_agent::{Agent, LlmAgent};

use super::apps::App;
use super::shared::Shared;
use crate::describe::route_doc::{Answer, Doc, Param};
use crate::http::error::ApiError;
use crate::http::path_params::InApp;
use crate::http::query::Query;
use crate::http::response;

pub(crate) const VERSION: Doc = Doc::new("server", "The server's version.", Answer::Object).open();

pub(crate) const APPS: Doc = Doc::new("apps", "Lists the applications.", Answer::Any)
    .with_query(&[Param::new("detailed", "boolean", "Whether to describe each application.")]);

pub(crate) const APP: Doc = Doc::new("apps", "Describes an application and its agents.", Answer::Object)
    .failing(&[400, 403, 404, 500]);

pub(crate) async fn version() -> Result<Response, ApiError> {
    let rust = env!("CARGO_PKG_RUST_VERSION");
    response::json(
        &json!({ "version": env!("CARGO_PKG_VERSION"), "language": "rust", "language_version": rust }),
    )
}

pub(crate) async fn apps(State(shared): State<Shared>, query: Query) -> Result<Response, ApiError> {
    if query.flag("detailed")? {
        let apps: Vec<Value> = shared.apps.loaded().map(|app| summary(app, Value::Null)).collect();
        return response::json(&json!({ "apps": apps }));
    }
    response::json(&shared.apps.names().collect::<Vec<_>>())
}

pub(crate) async fn app(State(shared): State<Shared>, InApp(name): InApp) -> Result<Response, ApiError> {
    let app = shared.apps.find(&name)?;
    let Some(root) = app.runner().root().as_llm() else {
        return Err(ApiError::BadRequest("Root agent is not an LlmAgent".to_owned()));
    };
    let mut agents = BTreeMap::new();
    describe(root, &mut agents);
    response::json(&summary(app, json!(agents)))
}

fn summary(app: &App, agents: Value) -> Value {
    let root = app.runner().root();
    json!({
        "name": app.runner().app(),
        "rootAgentName": root.name(),
        "description": root.description(),
        "language": app.language(),
        "isComputerUse": false,
        "agents": agents,
    })
}

/// An agent that asks a model, and those below it.
fn describe(agent: &LlmAgent, agents: &mut BTreeMap<String, Value>) {
    let declarations: Vec<Value> = agent
        .tools()
        .iter()
        .filter_map(|tool| tool.declaration())
        .map(|tool| {
            let mut declaration = json!({ "name": tool.name, "description": tool.description });
            if let Some(parameters) = tool.parameters {
                declaration["parametersJsonSchema"] = parameters.into_value();
            }
            declaration
        })
        .collect();
    let tools: Vec<Value> =
        declarations.into_iter().map(|tool| json!({ "functionDeclarations": [tool] })).collect();
    let below: Vec<&Arc<dyn Agent>> = agent.sub_agents().iter().collect();
    let description = json!({
        "name": agent.name(),
        "description": agent.description(),
        "instruction": agent.instruction().unwrap_or(""),
        "tools": tools,
        "sub_agents": below.iter().map(|agent| agent.name()).collect::<Vec<_>>(),
    });
    agents.insert(agent.name().to_owned(), description);
    below.iter().filter_map(|agent| agent.as_llm()).for_each(|agent| describe(agent, agents));
}
