//! The connection to the server.
//!
//! [`WebSocket`] is the transport for the network. Tests and benchmarks can implement [`Transport`]
//! to pass frames in memory.

mod platform;
mod websocket;

use async_trait::async_trait;
use sessile_session::BoxError;

pub use platform::Platform;
pub use websocket::WebSocket;

/// Opens connections to the server: the first one, and a new one for each reconnect.
#[async_trait]
pub trait Transport: Send + Sync {
    /// The platform of the server: names of models and some messages differ.
    fn platform(&self) -> &Platform;

    /// Opens a connection.
    ///
    /// # Errors
    ///
    /// [`TransportError`], which never contains secrets of the address.
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

    /// Sends a ping; the pong arrives as [`Received::SignOfLife`].
    ///
    /// # Errors
    ///
    /// [`TransportError`] if the connection is lost.
    async fn ping(&mut self) -> Result<(), TransportError>;

    /// Closes the connection.
    ///
    /// # Errors
    ///
    /// [`TransportError`] if the connection is lost already.
    async fn close(&mut self) -> Result<(), TransportError>;
}

/// The half of a connection that receives.
#[async_trait]
pub trait FrameReceiver: Send {
    /// Waits for the next message. The future is cancel safe: dropping it loses no frame.
    ///
    /// # Errors
    ///
    /// [`TransportError`] if the connection is lost.
    async fn receive(&mut self) -> Result<Received, TransportError>;
}

/// A message from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A frame of JSON, whether it was sent as text or as bytes.
    Frame(bytes::Bytes),
    /// A ping or pong.
    SignOfLife,
    /// The server closed the connection.
    Closed {
        /// The close code: 1000 is a normal closure.
        code: Option<u16>,
        /// The reason that the server gave.
        reason: String,
    },
}

/// Why a connection could not be opened, or was lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The address is not valid.
    #[error("cannot connect to {address}: {reason}")]
    Address {
        /// The address, without secrets.
        address: String,
        /// What is wrong with it.
        reason: String,
    },

    /// The server rejected the connection.
    #[error("{address} rejected the connection with HTTP status {status}: {message}")]
    Refused {
        /// The address, without secrets.
        address: String,
        /// The HTTP status.
        status: u16,
        /// The message of the server.
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
