//! How frames travel.
//!
//! To add a way, implement [`Transport`]: [`WebSocket`] is the one for the network; a test or a
//! benchmark can hand over frames in memory.

mod platform;
mod websocket;

use async_trait::async_trait;
use sessile_session::BoxError;

pub use platform::Platform;
pub use websocket::WebSocket;

/// A way to the server. It is asked for a new connection each time one is lost.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Whose server it is: names of models and a few messages differ.
    fn platform(&self) -> &Platform;

    /// Opens a connection.
    ///
    /// # Errors
    ///
    /// [`TransportError`] says what went wrong; secrets in the address are not in it.
    async fn connect(&self) -> Result<Connection, TransportError>;
}

/// An open connection, in two halves that are used at the same time.
pub struct Connection {
    /// Where frames go.
    pub sender: Box<dyn FrameSender>,
    /// Where they come from.
    pub receiver: Box<dyn FrameReceiver>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// The half of a connection that sends.
#[async_trait]
pub trait FrameSender: Send {
    /// Sends one frame, a JSON text.
    ///
    /// # Errors
    ///
    /// [`TransportError`] if the connection is lost.
    async fn send(&mut self, frame: &str) -> Result<(), TransportError>;

    /// Asks the other side for a sign of life, which arrives as [`Received::SignOfLife`].
    ///
    /// # Errors
    ///
    /// [`TransportError`] if the connection is lost.
    async fn ping(&mut self) -> Result<(), TransportError>;

    /// Says goodbye.
    ///
    /// # Errors
    ///
    /// [`TransportError`] if the connection is lost already.
    async fn close(&mut self) -> Result<(), TransportError>;
}

/// The half of a connection that receives.
#[async_trait]
pub trait FrameReceiver: Send {
    /// Waits for what comes next. The future may be dropped at any time without losing a frame.
    ///
    /// # Errors
    ///
    /// [`TransportError`] if the connection is lost.
    async fn receive(&mut self) -> Result<Received, TransportError>;
}

/// What arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A message, as text or as bytes: both hold JSON.
    Frame(bytes::Bytes),
    /// The other side is there.
    SignOfLife,
    /// The other side closes.
    Closed {
        /// Why, as a number: 1000 is an ordinary end.
        code: Option<u16>,
        /// Why, in words.
        reason: String,
    },
}

/// Why a connection could not be opened, or was lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The address is none.
    #[error("cannot connect to {address}: {reason}")]
    Address {
        /// The address, without secrets.
        address: String,
        /// What is wrong with it.
        reason: String,
    },

    /// The server answers, and does not want this connection.
    #[error("{address} refuses the connection with HTTP status {status}: {message}")]
    Refused {
        /// The address, without secrets.
        address: String,
        /// The HTTP status.
        status: u16,
        /// What the server says.
        message: String,
    },

    /// The network failed.
    #[error("cannot {action}: {source}")]
    Network {
        /// What was being done.
        action: &'static str,
        /// What went wrong.
        source: BoxError,
    },
}
