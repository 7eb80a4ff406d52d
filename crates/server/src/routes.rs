//! The route table: every route is a row of method, path, handler and documentation. The access
//! right and the time limit of a route are part of its [`Doc`]. The OpenAPI document, the metrics
//! and the policies of the middleware are made from the same rows.

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::extract::OriginalUri;
use axum::handler::Handler;
use axum::http::{Method, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodFilter, get, on};

use crate::api::dev::{eval, graph, settings, trace, ui};
use crate::api::runs::{follow, run, stream};
use crate::api::scopes::{history as scope_history, state as scope_state, watch as scope_watch};
use crate::api::sessions::{append, change, create, delete, history, list, read, watch};
use crate::api::shared::Shared;
use crate::api::{artifacts, docs, health, info, live, memory, metrics};
use crate::describe::route_doc::{Doc, Route};
use crate::http::error::ApiError;
use crate::http::route_policy::{RoutePolicies, RoutePolicy};

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
    table.add(GET, "/openapi.json", docs::document, &docs::DOCUMENT);
    table.add(GET, "/docs", docs::page, &docs::PAGE);
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

    table.add(GET, "{app}/state", scope_state::read_app, &scope_state::READ_APP);
    table.add(PATCH, "{app}/state", scope_state::change_app, &scope_state::CHANGE_APP);
    table.add(GET, "{user}/state", scope_state::read_user, &scope_state::READ_USER);
    table.add(PATCH, "{user}/state", scope_state::change_user, &scope_state::CHANGE_USER);
    table.add(GET, "{app}/state/history", scope_history::of_app, &scope_history::APP_HISTORY);
    table.add(GET, "{app}/state/watch", scope_watch::watch_app, &scope_watch::WATCH_APP);
    table.add(GET, "{user}/state/history", scope_history::of_user, &scope_history::USER_HISTORY);
    table.add(GET, "{user}/state/watch", scope_watch::watch_user, &scope_watch::WATCH_USER);

    table.add(GET, "{session}/artifacts", artifacts::names, &artifacts::NAMES);
    table.add(POST, "{session}/artifacts", artifacts::save, &artifacts::SAVE);
    table.add(DELETE, "{session}/artifacts/{*path}", artifacts::delete, &artifacts::DELETE);
    table.add(GET, "{session}/artifacts/{*path}", artifacts::load, &artifacts::LOAD);
    table.also(GET, "{session}/artifacts/{path}/versions", &artifacts::VERSIONS);
    table.also(GET, "{session}/artifacts/{path}/versions/metadata", &artifacts::ALL_METADATA);
    table.also(GET, "{session}/artifacts/{path}/versions/{version_id}", &artifacts::VERSION);
    table.also(GET, "{session}/artifacts/{path}/versions/{version_id}/metadata", &artifacts::METADATA);

    table.add(PATCH, "{user}/memory", memory::remember, &memory::REMEMBER);

    table.add(POST, "/run", run::run, &run::RUN);
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
    table.add(POST, "/config/telemetry", settings::set_telemetry, &settings::SET_TELEMETRY);
    table.add(GET, "/dev-ui/config", settings::logo, &settings::LOGO);
    table.add(GET, "/dev-ui/assets/config/runtime-config.json", settings::runtime, &settings::RUNTIME);
    table
}

/// The routes, and what the rest of the server knows of them.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) router: Router<Shared>,
    pub(crate) rows: Vec<Route>,
    pub(crate) policies: RoutePolicies,
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
        self.policies.set(&full(path), doc.into());
        self.also(method, path, doc);
    }

    /// Documents a path that another row serves, because a name in it may hold slashes.
    fn also(&mut self, method: Method, path: &str, doc: &'static Doc) {
        let served = full(path);
        self.rows.push(Route { method, path: served.replace("{*", "{"), served, doc });
    }

    /// Serves the files of Google's web UI from a folder at `/dev-ui/`, and leads there from `/`.
    /// They are not part of the API, so they are open and not documented.
    pub(crate) fn add_web_ui(&mut self, folder: &Path) {
        self.router = std::mem::take(&mut self.router)
            .route("/", get(ui::redirect))
            .route("/dev-ui", get(ui::redirect))
            .nest_service("/dev-ui/", ui::files(folder));
        for path in ["/", "/dev-ui", "/dev-ui/"] {
            self.policies.set(path, RoutePolicy::OPEN);
        }
    }

    /// Answers requests that no row serves.
    pub(crate) fn add_fallbacks(&mut self) {
        let paths: Arc<[String]> = self.rows.iter().map(|row| row.path.clone()).collect();
        self.router = std::mem::take(&mut self.router)
            .fallback(move |OriginalUri(uri): OriginalUri| std::future::ready(no_route(&uri, &paths)))
            .method_not_allowed_fallback(async || ApiError::MethodNotAllowed);
    }
}

fn full(path: &str) -> String {
    path.replace("{session}", "{user}/sessions/{session_id}")
        .replace("{user}", "{app}/users/{user_id}")
        .replace("{app}", "/apps/{app_name}")
}

/// 404, or a redirect if there is a route without the slash at the end.
fn no_route(uri: &Uri, paths: &[String]) -> Response {
    let is_served = |path: &&str| paths.iter().any(|route| fits(route, path));
    let shorter = uri.path().strip_suffix('/').filter(is_served);
    match (shorter, uri.query()) {
        (Some(path), Some(query)) => Redirect::temporary(&format!("{path}?{query}")).into_response(),
        (Some(path), None) => Redirect::temporary(path).into_response(),
        (None, _) => ApiError::not_found("Not Found").into_response(),
    }
}

/// Whether a path is one of a route's.
fn fits(route: &str, path: &str) -> bool {
    let (mut steps, mut names) = (path.split('/'), route.split('/'));
    loop {
        match (steps.next(), names.next()) {
            (None, None) => return true,
            (Some(step), Some(name)) if step == name || (name.starts_with('{') && !step.is_empty()) => {}
            _ => return false,
        }
    }
}
