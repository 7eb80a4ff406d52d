//! The documentation of routes. Each `Doc` stands beside its handler; the OpenAPI document, the
//! metrics and the middleware use it.

use axum::http::Method;

use super::model::Model;

/// A row of the route table.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) method: Method,
    /// The path as it is documented.
    pub(crate) path: String,
    /// The path as the router knows it.
    pub(crate) served: String,
    pub(crate) doc: &'static Doc,
}

/// The documentation of a route, and its policies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doc {
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) query: &'static [Param],
    pub(crate) headers: &'static [Param],
    pub(crate) body: BodyDoc,
    pub(crate) answer: Answer,
    /// The error statuses of this route, without those that all routes have.
    pub(crate) fails: &'static [u16],
    pub(crate) access: Access,
    pub(crate) time_limit: TimeLimit,
}

/// Which callers may use a route if authentication is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Every client, with or without a token.
    Open,
    /// Clients with a valid token; where the path or the body names a user, it must be that user's.
    Token,
    /// Clients whose token has the right admin.
    Admin,
}

/// Which limit ends a request that takes too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeLimit {
    /// The middleware ends it after `Limits::request_time`.
    Request,
    /// The run ends itself after `Limits::run_time`.
    Run,
}

/// A parameter of the query or a header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Param {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) about: &'static str,
}

/// The body of the request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BodyDoc {
    None,
    Required(&'static Model),
    Optional(&'static Model),
    OptionalMap,
}

/// The body of the response.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    /// A schema of the document, by its name.
    One(&'static str),
    List(&'static str),
    /// A JSON object that is not described further.
    Object,
    /// Any JSON.
    Any,
    Null,
    Texts,
    Numbers,
    /// Something else than JSON, of this type.
    Media(&'static str),
}

impl Doc {
    pub(crate) const fn new(tag: &'static str, summary: &'static str, answer: Answer) -> Self {
        Self {
            tag,
            summary,
            query: &[],
            headers: &[],
            body: BodyDoc::None,
            answer,
            fails: &[],
            access: Access::Token,
            time_limit: TimeLimit::Request,
        }
    }

    pub(crate) const fn with_query(mut self, query: &'static [Param]) -> Self {
        self.query = query;
        self
    }

    pub(crate) const fn with_headers(mut self, headers: &'static [Param]) -> Self {
        self.headers = headers;
        self
    }

    pub(crate) const fn with_body(mut self, body: BodyDoc) -> Self {
        self.body = body;
        self
    }

    pub(crate) const fn failing(mut self, fails: &'static [u16]) -> Self {
        self.fails = fails;
        self
    }

    pub(crate) const fn open(mut self) -> Self {
        self.access = Access::Open;
        self
    }

    pub(crate) const fn timed_by_run(mut self) -> Self {
        self.time_limit = TimeLimit::Run;
        self
    }

    pub(crate) const fn admin(mut self) -> Self {
        self.access = Access::Admin;
        self
    }
}

impl Param {
    pub(crate) const fn new(name: &'static str, kind: &'static str, about: &'static str) -> Self {
        Self { name, kind, about }
    }
}

/// The windows of events.
pub(crate) const WINDOW: &[Param] = &[
    Param::new("numRecentEvents", "integer", "Only the last few events; 0 for none."),
    Param::new("afterTimestamp", "number", "Only events that are not older, in Unix seconds."),
    Param::new("afterVersion", "integer", "Only events later than this version."),
];

/// The version that must be stored.
pub(crate) const IF_MATCH: &[Param] = &[EXPECTED];

/// The headers of a change: the version that must be stored, and the key that makes retries safe.
pub(crate) const CONDITIONS: &[Param] = &[
    EXPECTED,
    Param::new(
        "Idempotency-Key",
        "string",
        "1 to 128 characters that the client chooses for this change. A repetition with the same key and body changes \
         nothing and answers as the first time; another body under the same key is 409.",
    ),
];

const EXPECTED: Param = Param::new(
    "If-Match",
    "string",
    "ETags, one of which must be that of the stored version; otherwise 412.",
);
