use serde_json::json;

use crate::apps::{server, sessions};
use crate::client::Client;

fn on_loopback() -> Client {
    Client::new(server(sessions()).with_host("127.0.0.1"))
}

/// Asks for health under another host's name.
async fn as_host(api: &Client, host: &str) -> u16 {
    let request = axum::http::Request::get("/health").header("host", host);
    api.call(request.body(axum::body::Body::empty()).unwrap()).await.status.as_u16()
}

#[tokio::test]
async fn a_server_on_loopback_answers_under_loopback_names_only() {
    let api = on_loopback();
    for host in ["127.0.0.1:8000", "localhost", "LOCALHOST.:80", "[::1]:8000", "127.9.9.9"] {
        assert_eq!(as_host(&api, host).await, 200, "{host}");
    }
    for host in ["evil.com", "127.0.0.1:8000.evil.com", "localhost.evil.com", "[::1].evil.com", "10.0.0.1"] {
        assert_eq!(as_host(&api, host).await, 403, "{host}");
    }
    let elsewhere = Client::new(server(sessions()).with_host("0.0.0.0"));
    assert_eq!(as_host(&elsewhere, "example.com").await, 200);
    let named =
        server(sessions()).with_host("127.0.0.1").with_origins(&["https://ok.com".to_owned()]).unwrap();
    assert_eq!(as_host(&Client::new(named), "ok.com").await, 200);
}

#[tokio::test]
async fn requests_of_foreign_pages_are_refused() {
    let api = on_loopback();
    let detail = api.with("origin", "https://evil.com").get("/health").await.fails(403);
    assert_eq!(detail, "Forbidden: origin not allowed");
    api.with("origin", "http://127.0.0.1:8000").get("/health").await.ok();
    api.with("origin", "http://127.0.0.1:9999")
        .post("/apps/echo/users/a/sessions", json!({}))
        .await
        .fails(403);
    api.with("origin", "null").get("/health").await.fails(403);
}

#[tokio::test]
async fn pages_of_allowed_origins_may_read_answers() {
    let origins = ["https://ok.com".to_owned(), "regex:https://.*\\.good\\.org".to_owned()];
    let api = Client::new(server(sessions()).with_host("127.0.0.1").with_origins(&origins).unwrap());
    for origin in ["https://ok.com", "https://a.good.org"] {
        let answer = api.with("origin", origin).get("/health").await;
        assert_eq!(answer.header("access-control-allow-origin"), origin);
        let exposed = answer.header("access-control-expose-headers");
        for header in ["etag", "sessile-last-update-time", "sessile-overwrote", "sessile-unreadable"] {
            assert!(exposed.contains(header), "{header}: {exposed}");
        }
    }
    for origin in ["https://ok.com.evil.com", "https://a.good.org.evil.com", "https://evil.com"] {
        let answer = api.with("origin", origin).get("/health").await;
        assert_eq!(answer.status.as_u16(), 403);
    }
    assert!(server(sessions()).with_origins(&["regex:(".to_owned()]).is_err());
}

#[tokio::test]
async fn without_allowed_origins_a_preflight_request_is_allowed_nothing() {
    let api = on_loopback();
    for path in ["/health", "/nothing"] {
        let asking = api.with("origin", "https://evil.com").with("access-control-request-method", "PATCH");
        let answer = asking.send(axum::http::Method::OPTIONS, path, None).await;
        assert_eq!((answer.status.as_u16(), answer.header("vary")), (200, "origin"), "{path}");
        let allows = answer.headers.keys().any(|name| name.as_str().starts_with("access-control-"));
        assert!(!allows, "{path}: {:?}", answer.headers);
    }
    assert_eq!(api.get("/health").await.header("vary"), "origin", "caches tell answers apart");
}
