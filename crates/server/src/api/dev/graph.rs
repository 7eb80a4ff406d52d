//! Graphs of an application's agents and tools, as sources for Graphviz.

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::{Value, json};
use sessile_agent::Agent;
use sessile_session::{Event, EventWindow, SessionKey};

use crate::api::shared::Shared;
use crate::describe::route_doc::{Answer, Doc, Param};
use crate::http::error::ApiError;
use crate::http::path_params::{InApp, OfSession, param};
use crate::http::query::Query;
use crate::http::response;

const DARK: &[Param] = &[Param::new("dark_mode", "boolean", "For a dark background.")];

pub(crate) const GRAPH: Doc =
    Doc::new("dev", "The agents and tools of an application, as a graph.", Answer::Object)
        .with_query(DARK)
        .failing(&[403, 404, 500]);
pub(crate) const IMAGES: Doc = Doc::new("dev", "The graphs of an application, by path.", Answer::Object)
    .with_query(DARK)
    .failing(&[403, 404, 500]);
pub(crate) const TREE: Doc =
    Doc::new("dev", "The agents of an application as a tree.", Answer::Object).failing(&[403, 404, 500]);
pub(crate) const EVENT: Doc =
    Doc::new("dev", "The graph, with what an event did in another colour.", Answer::Object)
        .failing(&[403, 404, 500]);

pub(crate) async fn graph(
    State(shared): State<Shared>,
    InApp(app): InApp,
    query: Query,
) -> Result<Response, ApiError> {
    let root = shared.apps.find(&app)?.runner().root().clone();
    response::json(&json!({ "dotSrc": dot(&*root, query.flag("dark_mode")?, &[]) }))
}

pub(crate) async fn images(
    State(shared): State<Shared>,
    InApp(app): InApp,
    query: Query,
) -> Result<Response, ApiError> {
    let root = shared.apps.find(&app)?.runner().root().clone();
    response::json(&json!({ "": { "dotSrc": dot(&*root, query.flag("dark_mode")?, &[]) } }))
}

pub(crate) async fn tree(State(shared): State<Shared>, InApp(app): InApp) -> Result<Response, ApiError> {
    let root = shared.apps.find(&app)?.runner().root().clone();
    response::json(&json!({ "name": app, "root_agent": described(&*root) }))
}

pub(crate) async fn event(
    State(shared): State<Shared>,
    OfEvent { key, event }: OfEvent,
) -> Result<Response, ApiError> {
    let root = shared.apps.find(key.app())?.runner().root().clone();
    let session = shared.sessions.get(&key, EventWindow::ALL).await?;
    let found = session.iter().flat_map(|session| session.events()).find(|other| other.id == event);
    match found {
        Some(event) => response::json(&json!({ "dotSrc": dot(&*root, true, &touched(event)) })),
        None => response::json(&json!({})),
    }
}

/// The agent that made an event, and the tools that it calls or that answer in it.
fn touched(event: &Event) -> Vec<&str> {
    let calls = event.function_calls().filter_map(|call| call.name.as_deref());
    let responses = event.function_responses().filter_map(|response| response.name.as_deref());
    [event.author.as_str()].into_iter().chain(calls).chain(responses).collect()
}

fn dot(root: &dyn Agent, dark: bool, touched: &[&str]) -> String {
    let (ground, line) = if dark { ("#333537", "#cccccc") } else { ("#F8FAFC", "#334155") };
    let mut text = format!("strict digraph {{\n\tgraph [bgcolor=\"{ground}\" rankdir=LR]\n");
    draw(root, &mut text, line, touched);
    text.push_str("}\n");
    text
}

fn draw(agent: &dyn Agent, text: &mut String, line: &str, touched: &[&str]) {
    node(text, agent.name(), "🤖", "ellipse", line, touched);
    let tools = agent.as_llm().map_or(&[][..], |agent| agent.tools());
    for tool in tools {
        node(text, tool.name(), "🔧", "box", line, touched);
        edge(text, agent.name(), tool.name(), line, touched);
    }
    for below in agent.sub_agents() {
        draw(&**below, text, line, touched);
        edge(text, agent.name(), below.name(), line, touched);
    }
}

fn node(text: &mut String, name: &str, sign: &str, shape: &str, line: &str, touched: &[&str]) {
    let (id, label) = (quoted(name), quoted(&format!("{sign} {name}")));
    let style = match touched.contains(&name) {
        true => "color=\"#0F5223\" fillcolor=\"#0F5223\" fontcolor=\"#cccccc\" style=\"filled,rounded\""
            .to_owned(),
        false => format!("color=\"{line}\" fontcolor=\"{line}\" style=rounded"),
    };
    text.push_str(&format!("\t{id} [label={label} shape={shape} {style}]\n"));
}

fn edge(text: &mut String, from: &str, to: &str, line: &str, touched: &[&str]) {
    let both = touched.contains(&from) && touched.contains(&to);
    let style = match both {
        true => "color=\"#69CB87\"".to_owned(),
        false => format!("arrowhead=none color=\"{line}\""),
    };
    text.push_str(&format!("\t{} -> {} [{style}]\n", quoted(from), quoted(to)));
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn described(agent: &dyn Agent) -> Value {
    let below: Vec<Value> = agent.sub_agents().iter().map(|agent| described(&**agent)).collect();
    let mut description =
        json!({ "name": agent.name(), "description": agent.description(), "sub_agents": below });
    if let Some(llm) = agent.as_llm() {
        let tools: Vec<Value> =
            llm.tools().iter().map(|tool| json!({ "name": tool.name(), "type": "tool" })).collect();
        description["tools"] = json!(tools);
        description["instruction"] = json!(llm.instruction().unwrap_or(""));
        description["model"] = json!(llm.model().map(|model| model.name()));
        description["output_key"] = json!(llm.output_key());
    }
    description
}

/// An event of a session that the caller may use.
pub(crate) struct OfEvent {
    key: SessionKey,
    event: String,
}

impl FromRequestParts<Shared> for OfEvent {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, ApiError> {
        let OfSession(key) = OfSession::from_request_parts(parts, shared).await?;
        Ok(Self { key, event: param(parts, shared, "event_id").await? })
    }
}
