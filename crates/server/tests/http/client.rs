//! A client that calls the router without a socket.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, Response, StatusCode};
use serde_json::Value;
use sessile_server::{Apps, Server, router};
use sessile_session::{MemoryStore, SessionService};
use tower::ServiceExt;

pub(crate) struct Client {
    router: Router,
    headers: Vec<(String, String)>,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Client {
    pub(crate) fn new(server: Server) -> Self {
        Self { router: router(server), headers: Vec::new() }
    }

    /// Sessions in memory and no applications.
    pub(crate) fn empty() -> Self {
        Self::new(Server::new(SessionService::new(MemoryStore::new()), Apps::new()))
    }

    /// The same server, asked only to change this version.
    pub(crate) fn if_match(&self, etag: &str) -> Self {
        self.with("if-match", etag)
    }

    /// The same server, asked with this `Idempotency-Key`.
    pub(crate) fn once(&self, key: &str) -> Self {
        self.with("idempotency-key", key)
    }

    /// The same server, asked with one more header.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut headers = self.headers.clone();
        headers.push((name.to_owned(), value.to_owned()));
        Self { router: self.router.clone(), headers }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, None).await
    }

    /// The answer as it begins; its body is read, and held open, by the caller.
    pub(crate) async fn open(&self, path: &str) -> Response<Body> {
        let mut request = Request::builder().uri(path).header("host", "127.0.0.1:8000");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, Some(body.to_string())).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PATCH, path, Some(body.to_string())).await
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<String>) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header("host", "127.0.0.1:8000");
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(body.map_or_else(Body::empty, Body::from)).unwrap();
        self.call(request).await
    }

    pub(crate) async fn call(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        Answer {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The body of a success.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{}", self.text);
        self.json()
    }

    /// The `detail` of a failure with this status.
    #[track_caller]
    pub(crate) fn fails(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        assert_eq!(self.headers["content-type"], "application/json");
        self.json()["detail"].clone()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The `ETag` of a success.
    #[track_caller]
    pub(crate) fn etag(&self) -> String {
        assert_eq!(self.status, StatusCode::OK, "{}", self.text);
        assert!(self.header("etag").starts_with('"'), "{:?}", self.headers);
        self.header("etag").to_owned()
    }

    /// The version in the `ETag` of a success: the digits that it begins with.
    #[track_caller]
    pub(crate) fn version(&self) -> u64 {
        let etag = self.etag();
        etag[1..].split(['-', '"']).next().unwrap().parse().unwrap()
    }
}
