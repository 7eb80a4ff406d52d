//! Every route, one line each: method, path, handler, documentation.

use axum::Router;
use axum::extract::{OriginalUri, State};
use axum::handler::Handler;
use axum::http::Method;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodFilter, on};

use crate::dev::{eval, graph, settings, trace};
use crate::doc::Doc;
use crate::error::ApiError;
use crate::run::{follow, stream, whole};
use crate::server::Shared;
use crate::sessions::{append, change, create, delete, history, list, read, watch};
use crate::{artifacts, health, info, live, memory, metrics, openapi, scope_history, scopes};

const GET: Method = Method::GET;
const POST: Method = Method::POST;
const PATCH: Method = Method::PATCH;
const DELETE: Method = Method::DELETE;

/// The table of routes. `{app}`, `{user}` and `{session}` stand for `/apps/{app_name}`,
/// `{app}/users/{user_id}` and `{user}/sessions/{session_id}`.
pub(crate) fn table() -> Table {
    let mut table = Table::default();
    table.add(GET, "/health", health::health, &health::HEALTH);
    table.add(GET, "/readyz", health::ready, &health::READY);
    table.add(GET, "/metrics", metrics::metrics, &metrics::METRICS);
    table.add(GET, "/openapi.json", openapi::serve_document, &openapi::DOCUMENT);
    table.add(GET, "/docs", openapi::page, &openapi::PAGE);
    table.add(GET, "/version", info::version, &info::VERSION);
    table.add(GET, "/list-apps", info::apps, &info::APPS);
    table.add(GET, "{app}/app-info", info::app, &info::APP);

    table.add(GET, "{app}/sessions", list::list_all, &list::LIST_ALL);
    table.add(GET, "{user}/sessions", list::list, &list::LIST);
    table.add(POST, "{user}/sessions", create::create, &create::CREATE);
    table.add(GET, "{session}", read::read, &read::READ);
    table.add(POST, "{session}", create::create_at, &create::CREATE_AT);
    table.add(PATCH, "{session}", change::change, &change::CHANGE);
    table.add(DELETE, "{session}", delete::delete, &delete::DELETE);
    table.add(POST, "{session}/events", append::append, &append::APPEND);
    table.add(GET, "{session}/watch", watch::watch, &watch::WATCH);
    table.add(GET, "{session}/state", history::state, &history::STATE);
    table.add(POST, "{session}/rewind", history::rewind, &history::REWIND);
    table.add(POST, "{session}/fork", history::fork, &history::FORK);

    table.add(GET, "{app}/state", scopes::read_app, &scopes::READ_APP);
    table.add(PATCH, "{app}/state", scopes::change_app, &scopes::CHANGE_APP);
    table.add(GET, "{user}/state", scopes::read_user, &scopes::READ_USER);
    table.add(PATCH, "{user}/state", scopes::change_user, &scopes::CHANGE_USER);
    table.add(GET, "{app}/state/history", scope_history::of_app, &scope_history::APP_HISTORY);
    table.add(GET, "{app}/state/watch", scope_history::watch_app, &scope_history::WATCH_APP);
    table.add(GET, "{user}/state/history", scope_history::of_user, &scope_history::USER_HISTORY);
    table.add(GET, "{user}/state/watch", scope_history::watch_user, &scope_history::WATCH_USER);

    table.add(GET, "{session}/artifacts", artifacts::names, &artifacts::NAMES);
    table.add(POST, "{session}/artifacts", artifacts::save, &artifacts::SAVE);
    table.add(DELETE, "{session}/artifacts/{*path}", artifacts::delete, &artifacts::DELETE);
    table.add(GET, "{session}/artifacts/{*path}", artifacts::load, &artifacts::LOAD);
    table.also(GET, "{session}/artifacts/{path}/versions", &artifacts::VERSIONS);
    table.also(GET, "{session}/artifacts/{path}/versions/metadata", &artifacts::ALL_METADATA);
    table.also(GET, "{session}/artifacts/{path}/versions/{version_id}", &artifacts::VERSION);
    table.also(GET, "{session}/artifacts/{path}/versions/{version_id}/metadata", &artifacts::METADATA);

    table.add(PATCH, "{user}/memory", memory::remember, &memory::REMEMBER);

    table.add(POST, "/run", whole::run, &whole::RUN);
    table.add(POST, "/run_sse", stream::run_sse, &stream::RUN_SSE);
    table.add(GET, "/run_live", live::run_live, &live::RUN_LIVE);
    table.add(GET, "{session}/runs", follow::list, &follow::LIST);
    table.add(GET, "{session}/runs/{invocation_id}", follow::follow, &follow::FOLLOW);
    table.add(DELETE, "{session}/runs/{invocation_id}", follow::cancel, &follow::CANCEL);

    table.add(GET, "/dev{app}/debug/trace/{id}", trace::event, &trace::EVENT);
    table.add(GET, "/dev{app}/debug/trace/session/{id}", trace::session, &trace::SESSION);
    table.add(GET, "/dev{app}/graph", graph::graph, &graph::GRAPH);
    table.add(GET, "/dev{app}/build_graph", graph::tree, &graph::TREE);
    table.add(GET, "/dev{app}/build_graph_image", graph::images, &graph::IMAGES);
    table.add(GET, "/dev{session}/events/{event_id}/graph", graph::event, &graph::EVENT);
    table.add(GET, "/dev{app}/tests", eval::empty, &eval::NONE);
    table.add(GET, "/dev{app}/eval_sets", eval::empty, &eval::NONE);
    table.add(GET, "/dev{app}/eval-sets", eval::no_sets, &eval::NONE);
    table.add(GET, "/dev{app}/eval_results", eval::empty, &eval::NONE);
    table.add(GET, "/dev{app}/eval-results", eval::no_results, &eval::NONE);
    table.add(GET, "/dev{app}/metrics-info", eval::no_metrics, &eval::NONE);
    table.add(GET, "/config/telemetry", settings::telemetry, &settings::TELEMETRY);
    table.add(POST, "/config/telemetry", settings::switch, &settings::SWITCH);
    table.add(GET, "/dev-ui/config", settings::logo, &settings::LOGO);
    table.add(GET, "/dev-ui/assets/config/runtime-config.json", settings::runtime, &settings::RUNTIME);
    table
}

/// Routes, and what is said of them.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) router: Router<Shared>,
    pub(crate) docs: Vec<Route>,
}

/// A line of the table.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// The path as it is documented, and as the router knows it.
    pub(crate) path: String,
    pub(crate) served: String,
    pub(crate) doc: &'static Doc,
}

impl Table {
    fn add<H: Handler<T, Shared>, T: 'static>(
        &mut self,
        method: Method,
        path: &str,
        handler: H,
        doc: &'static Doc,
    ) {
        let filter = MethodFilter::try_from(method.clone()).expect("routes use the ordinary methods");
        self.router = std::mem::take(&mut self.router).route(&full(path), on(filter, handler));
        self.also(method, path, doc);
    }

    /// A path that another line serves, because a name in it may hold slashes.
    fn also(&mut self, method: Method, path: &str, doc: &'static Doc) {
        let served = full(path);
        self.docs.push(Route { method, path: served.replace("{*", "{"), served, doc });
    }
}

fn full(path: &str) -> String {
    path.replace("{session}", "{user}/sessions/{session_id}")
        .replace("{user}", "{app}/users/{user_id}")
        .replace("{app}", "/apps/{app_name}")
}

/// Nothing is here; if something is without the slash at the end, that is where to look.
pub(crate) async fn no_route(State(shared): State<Shared>, OriginalUri(uri): OriginalUri) -> Response {
    let shorter = uri.path().strip_suffix('/').filter(|path| shared.has_route(path));
    match (shorter, uri.query()) {
        (Some(path), Some(query)) => Redirect::temporary(&format!("{path}?{query}")).into_response(),
        (Some(path), None) => Redirect::temporary(path).into_response(),
        (None, _) => ApiError::not_found("Not Found").into_response(),
    }
}

pub(crate) async fn no_method() -> ApiError {
    ApiError::MethodNotAllowed
}
