//! The errors that clients get when a store or a service fails: advice, and not the text of its
//! error.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use sessile_agent::{Agent, AgentError, InvocationContext, Runner};
use sessile_artifact::{ArtifactError, ArtifactKey, ArtifactService, ArtifactVersion, NewArtifact};
use sessile_memory::{MemoryEntry, MemoryError, MemoryService};
use sessile_server::{App, Apps, Limits, Server};
use sessile_session::{BoxError, Part, Session, SessionError, SessionKey, SessionService};

use crate::apps::{server, sessions};
use crate::client::Client;
use crate::runs::{frames, says};

const SESSION: &str = "/apps/echo/users/ada/sessions/s";

/// A cause that must not reach a client.
fn secret() -> BoxError {
    "INSERT INTO x failed at postgresql://me:password@db".into()
}

/// A server whose store stores this many events and then fails in this way.
async fn failing_after(events: usize, fault: fn() -> SessionError) -> Client {
    let api = Client::new(server(SessionService::new(crate::stores::failing_after(events, fault))));
    api.post(SESSION, json!({})).await.ok();
    api
}

fn broken() -> SessionError {
    SessionError::Backend { action: "append an event", source: secret() }
}

fn in_doubt() -> SessionError {
    SessionError::InDoubt { action: "append an event", advice: "append it again", source: secret() }
}

fn unavailable() -> SessionError {
    SessionError::Unavailable {
        action: "append an event",
        reason: "the disk is full".into(),
        source: secret(),
    }
}

#[tokio::test]
async fn a_store_that_fails_says_what_to_do() {
    let change = json!({"stateDelta": {"a": 1}});
    let answer = failing_after(0, broken).await.patch(SESSION, change.clone()).await;
    let text = "Cannot append an event; the server's log has the cause under this request's id";
    assert_eq!(answer.fails(503), text);
    let answer = failing_after(0, in_doubt).await.patch(SESSION, change.clone()).await;
    assert_eq!(answer.header("retry-after"), "", "asking again could do it twice");
    let text = "tried to append an event, which is done or not done; read the state and decide; a PATCH with an \
                Idempotency-Key can be repeated safely";
    assert_eq!(answer.fails(503), text);
    let answer = failing_after(0, unavailable).await.patch(SESSION, change).await;
    assert_eq!(answer.header("retry-after"), "1");
    assert_eq!(answer.fails(503), "Cannot append an event now: the disk is full");
}

#[tokio::test]
async fn a_stream_ends_with_the_failure_and_without_the_text_of_the_store() {
    let told = [
        (broken as fn() -> _, "SessionError: cannot append an event; the server's log has the cause"),
        (
            in_doubt,
            "SessionError: tried to append an event, which is done or not done; \
             read the session to see what was stored before you run it again",
        ),
        (unavailable, "SessionError: cannot append an event now: the disk is full"),
    ];
    for (fault, text) in told {
        // What the user said is stored, and the answer is not.
        let answer = failing_after(1, fault).await.post("/run_sse", says("hello")).await;
        assert_eq!(frames(&answer).pop().unwrap()["error"], text);
        assert!(!answer.text.contains("password"), "{}", answer.text);
    }
}

/// Uses a service that fails.
struct User(&'static str);

#[async_trait]
impl Agent for User {
    fn name(&self) -> &str {
        "user_of_services"
    }

    async fn run(&self, ctx: &InvocationContext) -> Result<(), AgentError> {
        match self.0 {
            "artifacts" => ctx.load_artifact("a", None).await.map(drop),
            _ => ctx.search_memory("a").await.map(drop),
        }
    }
}

struct NoService;

#[async_trait]
impl ArtifactService for NoService {
    async fn save(&self, _: &ArtifactKey, _: NewArtifact) -> Result<ArtifactVersion, ArtifactError> {
        Err(ArtifactError::Backend { action: "save the artifact", source: secret() })
    }
    async fn load(&self, _: &ArtifactKey, _: Option<u64>) -> Result<Option<Part>, ArtifactError> {
        Err(ArtifactError::Backend { action: "load the artifact", source: secret() })
    }
    async fn names(&self, _: &SessionKey) -> Result<Vec<String>, ArtifactError> {
        Ok(Vec::new())
    }
    async fn versions(&self, _: &ArtifactKey) -> Result<Vec<ArtifactVersion>, ArtifactError> {
        Ok(Vec::new())
    }
    async fn delete(&self, _: &ArtifactKey) -> Result<(), ArtifactError> {
        Ok(())
    }
}

#[async_trait]
impl MemoryService for NoService {
    async fn add_session(&self, _: &Session) -> Result<(), MemoryError> {
        Ok(())
    }
    async fn search(&self, _: &str, _: &str, _: &str) -> Result<Vec<MemoryEntry>, MemoryError> {
        Err(MemoryError::Backend { action: "search the memory", source: secret() })
    }
}

fn using(agent: impl Agent + 'static) -> Client {
    let sessions = sessions();
    let runner = Runner::builder("echo", agent, sessions.clone())
        .artifacts(Arc::new(NoService))
        .memory(Arc::new(NoService))
        .build()
        .unwrap();
    Client::new(Server::new(sessions, Apps::new().with(App::new(runner))))
}

#[tokio::test]
async fn errors_of_services_are_not_sent_to_clients() {
    let services =
        [("artifacts", "ARTIFACT: cannot load the artifact"), ("memory", "MEMORY: cannot search the memory")];
    for (service, text) in services {
        let api = using(User(service));
        api.post(SESSION, json!({})).await.ok();
        assert_eq!(api.post("/run", says("x")).await.fails(500), text);
        let streamed = api.post("/run_sse", says("x")).await;
        assert_eq!(frames(&streamed).pop().unwrap()["error"], text);
        let stored = api.get(SESSION).await;
        assert!(!streamed.text.contains("password") && !stored.text.contains("password"), "{}", stored.text);
    }
    // What a tool says is read by the model and stored.
    let api = using(crate::apps::echo());
    api.post(SESSION, json!({})).await.ok();
    api.post("/run", says("save")).await.ok();
    let stored = api.get(SESSION).await.ok();
    let response = &stored["events"][2]["content"]["parts"][0]["functionResponse"]["response"];
    assert_eq!(*response, json!({"error": "cannot save the artifact"}));
}

#[tokio::test]
async fn agents_write_no_more_than_a_scope_may_hold() {
    let mut limits = Limits::default();
    limits.state = 200;
    let api = Client::new(server(sessions().with_max_scope_bytes(200)).with_limits(limits));
    api.post(SESSION, json!({"kept": "x".repeat(100)})).await.ok();
    api.post("/run", says(&"y".repeat(50))).await.ok();
    let detail = api.post("/run", says(&"z".repeat(80))).await.fails(500);
    let text = "SESSION: the session state would be 201 bytes, and at most 200 are kept; \
                remove keys, or store large values as artifacts";
    assert_eq!(detail, text);
    let session = api.get(SESSION).await.ok();
    assert_eq!(session["state"]["last"], format!("you said {}", "y".repeat(50)));
    let last: &Value = session["events"].as_array().unwrap().last().unwrap();
    assert_eq!(last["errorCode"], "SESSION");
    // What is replaced makes room.
    for _ in 0..5 {
        api.post("/run", says(&"w".repeat(50))).await.ok();
    }
}
