//! Every route, one line each: method, path, handler, documentation.

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, on};

use crate::doc::Doc;
use crate::error::ApiError;
use crate::server::Shared;
use crate::sessions::{change, create, delete, list, read};
use crate::{health, info};

const GET: Method = Method::GET;
const POST: Method = Method::POST;
const PATCH: Method = Method::PATCH;
const DELETE: Method = Method::DELETE;

const ALL_SESSIONS: &str = "/apps/{app_name}/sessions";
const SESSIONS: &str = "/apps/{app_name}/users/{user_id}/sessions";
const SESSION: &str = "/apps/{app_name}/users/{user_id}/sessions/{session_id}";

/// The table of routes.
pub(crate) fn table() -> Table {
    let mut table = Table::default();
    table.add(GET, "/health", health::health, &health::HEALTH);
    table.add(GET, "/readyz", health::ready, &health::READY);
    table.add(GET, "/version", info::version, &info::VERSION);
    table.add(GET, "/list-apps", info::apps, &info::APPS);

    table.add(GET, ALL_SESSIONS, list::list_all, &list::LIST_ALL);
    table.add(GET, SESSIONS, list::list, &list::LIST);
    table.add(POST, SESSIONS, create::create, &create::CREATE);
    table.add(GET, SESSION, read::read, &read::READ);
    table.add(POST, SESSION, create::create_at, &create::CREATE_AT);
    table.add(PATCH, SESSION, change::change, &change::CHANGE);
    table.add(DELETE, SESSION, delete::delete, &delete::DELETE);
    table
}

/// Routes, and what is said of them.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) router: Router<Shared>,
    pub(crate) docs: Vec<(Method, &'static str, &'static Doc)>,
}

impl Table {
    fn add<H: Handler<T, Shared>, T: 'static>(
        &mut self,
        method: Method,
        path: &'static str,
        handler: H,
        doc: &'static Doc,
    ) {
        let filter = MethodFilter::try_from(method.clone()).expect("routes use the ordinary methods");
        self.router = std::mem::take(&mut self.router).route(path, on(filter, handler));
        self.docs.push((method, path, doc));
    }
}

pub(crate) async fn no_route() -> ApiError {
    ApiError::not_found("Not Found")
}

pub(crate) async fn no_method() -> ApiError {
    ApiError::MethodNotAllowed
}
