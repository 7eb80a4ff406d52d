use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::Response;
use futures_util::stream::{self, StreamExt};
use serde_json::Value;
use sessile_agent::{Model, ModelError, ModelRequest, ModelResponse, Streaming};
use sessile_session::Content;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// A server on the loopback that gives prepared answers and remembers what it was asked.
pub(crate) struct Server {
    pub(crate) url: String,
    shared: Arc<Shared>,
    closed: mpsc::UnboundedReceiver<()>,
}

struct Shared {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<Asked>>,
    /// Told when a body is dropped, at its end or because the client is gone.
    closed: mpsc::UnboundedSender<()>,
}

/// A request that the server saw.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

/// An answer that the server gives.
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    chunks: Vec<Vec<u8>>,
    end: End,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum End {
    /// As it should be.
    Good,
    /// The connection is closed in the middle of the body.
    CutOff,
    /// Nothing more comes, and the connection stays open.
    Silent,
}

impl Answer {
    pub(crate) fn json(body: &Value) -> Self {
        Self::status(200, &body.to_string())
    }

    pub(crate) fn status(status: u16, body: &str) -> Self {
        Self { status, headers: Vec::new(), chunks: vec![body.as_bytes().to_vec()], end: End::Good }
    }

    /// A stream of events, one for each JSON value.
    pub(crate) fn events(events: &[Value]) -> Self {
        let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        Self::status(200, &text).with_header("content-type", "text/event-stream")
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Cuts the body into chunks of so many bytes.
    pub(crate) fn in_chunks_of(mut self, bytes: usize) -> Self {
        let body = self.chunks.concat();
        self.chunks = body.chunks(bytes).map(<[u8]>::to_vec).collect();
        self
    }

    pub(crate) fn ending(self, end: End) -> Self {
        Self { end, ..self }
    }
}

impl Server {
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let (sender, closed) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            answers: Mutex::new(answers.into_iter().collect()),
            asked: Mutex::new(Vec::new()),
            closed: sender,
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("the loopback has a free port");
        let url = format!("http://{}", listener.local_addr().expect("a listener has an address"));
        let router = Router::new().fallback(answer).with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, shared, closed }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().expect("no test panics with it").clone()
    }

    /// Waits until the body of an answer was given up.
    pub(crate) async fn body_closed(&mut self) {
        self.closed.recv().await.expect("the server runs");
    }
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.expect("a test sends whole requests");
    let header = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
        (name.to_string(), value.to_str().unwrap_or("not text").to_owned())
    };
    shared.asked.lock().expect("no test panics with it").push(Asked {
        path: parts.uri.to_string(),
        headers: parts.headers.iter().map(header).collect(),
        body: serde_json::from_slice(&body).expect("a request is JSON"),
    });
    let answer = shared.answers.lock().expect("no test panics with it").pop_front();
    let answer = answer.unwrap_or_else(|| Answer::status(418, "asked once too often"));
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    let guard = Guard(shared.closed.clone());
    let body = stream::iter(answer.chunks).then(|chunk| async {
        // Lets the server send what it has, so that chunks stay apart.
        tokio::task::yield_now().await;
        Ok::<_, std::io::Error>(chunk)
    });
    let body = match answer.end {
        End::Good => body.boxed(),
        End::CutOff => body.chain(stream::once(cut_off())).boxed(),
        End::Silent => body.chain(stream::pending()).boxed(),
    };
    let body = body.map(move |chunk| {
        let _held = &guard;
        chunk
    });
    response.body(Body::from_stream(body)).expect("a test gives good headers")
}

/// What came before it is sent first.
async fn cut_off() -> Result<Vec<u8>, std::io::Error> {
    tokio::time::sleep(Duration::from_millis(100)).await;
    Err(std::io::Error::other("cut off"))
}

struct Guard(mpsc::UnboundedSender<()>);

impl Drop for Guard {
    fn drop(&mut self) {
        if self.0.send(()).is_err() {
            // The test is over.
        }
    }
}

/// Asks something, and takes all that comes.
pub(crate) async fn ask(
    model: &dyn Model,
    request: ModelRequest,
    streaming: Streaming,
) -> Vec<Result<ModelResponse, ModelError>> {
    match model.generate(request, streaming).await {
        Ok(stream) => stream.collect().await,
        Err(error) => vec![Err(error)],
    }
}

/// The one whole response to a greeting.
pub(crate) async fn whole(model: &dyn Model) -> Result<ModelResponse, ModelError> {
    let mut answers = ask(model, hello(), Streaming::Whole).await;
    assert_eq!(answers.len(), 1, "a whole answer is one response");
    answers.remove(0)
}

/// The pieces of the answer to a greeting, and how it ends.
pub(crate) async fn pieces(model: &dyn Model) -> (Vec<Value>, Result<ModelResponse, ModelError>) {
    let mut answers = ask(model, hello(), Streaming::Pieces).await;
    let last = answers.pop().expect("a stream has an end");
    let pieces = answers.into_iter().map(|piece| {
        let piece = piece.expect("an error is the last item");
        assert_eq!(piece.partial, Some(true));
        parts(&piece)
    });
    (pieces.collect(), last)
}

pub(crate) fn hello() -> ModelRequest {
    ModelRequest { contents: vec![Content::text("user", "hello")], ..ModelRequest::default() }
}

/// The parts of a response as JSON; null if there is no content.
pub(crate) fn parts(response: &ModelResponse) -> Value {
    serde_json::to_value(response.content.as_ref().map(Content::parts)).expect("parts have a JSON form")
}

/// An error with its causes.
pub(crate) fn text(error: &ModelError) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
    std::iter::once(error.to_string()).chain(causes.map(ToString::to_string)).collect::<Vec<_>>().join(": ")
}
