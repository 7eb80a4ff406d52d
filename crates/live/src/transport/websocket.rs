use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as WebSocketError, Message};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config};

use super::{Connection, FrameReceiver, FrameSender, Platform, Received, Transport, TransportError};

/// A WebSocket, with TLS if the address begins with `wss:`.
pub struct WebSocket {
    platform: Platform,
    url: String,
    /// The token of the `Authorization` header.
    bearer: Option<String>,
}

/// The size limit of a received message, in bytes.
const MAX_MESSAGE: usize = 32 << 20;

impl WebSocket {
    /// Google AI, with an API key.
    pub fn google_ai(key: &str) -> Self {
        let host = "generativelanguage.googleapis.com";
        let method = "google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent";
        let url = format!("wss://{host}/ws/{method}?key={}", query_value(key));
        Self::new(Platform::GoogleAi, url)
    }

    /// Vertex AI, with an access token.
    pub fn vertex(project: &str, location: &str, token: &str) -> Self {
        let host = match location {
            "global" => "aiplatform.googleapis.com".to_owned(),
            location => format!("{location}-aiplatform.googleapis.com"),
        };
        let method = "google.cloud.aiplatform.v1beta1.LlmBidiService/BidiGenerateContent";
        let platform = Platform::Vertex { project: project.to_owned(), location: location.to_owned() };
        Self::new(platform, format!("wss://{host}/ws/{method}")).with_bearer(token)
    }

    /// A server at any address.
    pub fn new(platform: Platform, url: impl Into<String>) -> Self {
        Self { platform, url: url.into(), bearer: None }
    }

    /// With a token in the `Authorization` header.
    #[must_use]
    pub fn with_bearer(mut self, token: impl Into<String>) -> Self {
        self.bearer = Some(token.into());
        self
    }

    /// The address without its query, which may hold a key.
    fn address(&self) -> String {
        self.url.split('?').next().unwrap_or(&self.url).to_owned()
    }

    fn failed(&self, error: WebSocketError) -> TransportError {
        let address = self.address();
        match error {
            WebSocketError::Http(response) => {
                let body = response.body().as_deref().unwrap_or_default();
                let message = String::from_utf8_lossy(body).chars().take(500).collect();
                TransportError::Refused { address, status: response.status().as_u16(), message }
            }
            WebSocketError::Url(error) => TransportError::Address { address, reason: error.to_string() },
            error => network("connect")(error),
        }
    }
}

/// Shows the address without its query, and no token.
impl std::fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebSocket").field("address", &self.address()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Transport for WebSocket {
    fn platform(&self) -> &Platform {
        &self.platform
    }

    async fn connect(&self) -> Result<Connection, TransportError> {
        let invalid = |reason: String| TransportError::Address { address: self.address(), reason };
        let mut request = self.url.as_str().into_client_request().map_err(|error| self.failed(error))?;
        if let Some(token) = &self.bearer {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| invalid("the access token has characters that a header cannot hold".into()))?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE))
            .max_frame_size(Some(MAX_MESSAGE))
            .read_buffer_size(16 << 10)
            .write_buffer_size(0);
        let connector = Connector::Rustls(TLS.clone());
        let (socket, _) = connect_async_tls_with_config(request, Some(config), true, Some(connector))
            .await
            .map_err(|error| self.failed(error))?;
        let (sender, receiver) = socket.split();
        Ok(Connection { sender: Box::new(Sender(sender)), receiver: Box::new(Receiver(receiver)) })
    }
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

struct Sender(SplitSink<Socket, Message>);

#[async_trait]
impl FrameSender for Sender {
    async fn send(&mut self, frame: &str) -> Result<(), TransportError> {
        self.0.send(Message::text(frame)).await.map_err(network("send"))
    }

    async fn ping(&mut self) -> Result<(), TransportError> {
        self.0.send(Message::Ping(Bytes::new())).await.map_err(network("send a ping"))
    }

    async fn close(&mut self) -> Result<(), TransportError> {
        self.0.close().await.map_err(network("close"))
    }
}

struct Receiver(SplitStream<Socket>);

#[async_trait]
impl FrameReceiver for Receiver {
    async fn receive(&mut self) -> Result<Received, TransportError> {
        let received = match self.0.next().await {
            Some(message) => message.map_err(network("receive"))?,
            None => return Ok(Received::Closed { code: None, reason: "the connection ended".to_owned() }),
        };
        Ok(match received {
            Message::Text(text) => Received::Frame(text.into()),
            Message::Binary(bytes) => Received::Frame(bytes),
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => Received::SignOfLife,
            Message::Close(None) => Received::Closed { code: None, reason: String::new() },
            Message::Close(Some(close)) => {
                Received::Closed { code: Some(close.code.into()), reason: close.reason.to_string() }
            }
        })
    }
}

/// TLS with the root certificates of Mozilla and the crypto provider ring.
static TLS: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| {
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports the versions that rustls has by default");
    Arc::new(config.with_root_certificates(roots).with_no_client_auth())
});

/// Wraps an error of the socket together with the action that failed.
fn network(action: &'static str) -> impl FnOnce(WebSocketError) -> TransportError {
    move |error| TransportError::Network { action, source: Box::new(error) }
}

/// Percent-encodes the value of a query parameter.
fn query_value(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}
