//! The interface of language models: requests, responses and errors.

mod error;
mod request;
mod response;

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

pub use error::ModelError;
pub use request::{FunctionDeclaration, GenerationConfig, ModelRequest};
pub use response::ModelResponse;

/// A language model.
///
/// To add one, turn a [`ModelRequest`] into the call of an interface and what comes back into
/// [`ModelResponse`]s. Dropping the stream ends the call: whatever the implementation holds open
/// is closed with it.
#[async_trait]
pub trait Model: Send + Sync {
    /// Its name, such as `gemini-2.5-flash`.
    fn name(&self) -> &str;

    /// Sends a request. The stream holds exactly one whole response, or an error, as its last item;
    /// with [`Streaming::Pieces`] the pieces come before it, each with `partial` set and only what
    /// is new, and the last response holds all of them joined.
    ///
    /// # Errors
    ///
    /// [`ModelError`]; its variants are what a caller can do about it.
    async fn generate(&self, request: ModelRequest, streaming: Streaming) -> Result<ModelStream, ModelError>;
}

/// A shared model is a model.
#[async_trait]
impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    async fn generate(&self, request: ModelRequest, streaming: Streaming) -> Result<ModelStream, ModelError> {
        (**self).generate(request, streaming).await
    }
}

/// The answers of a model.
pub type ModelStream = BoxStream<'static, Result<ModelResponse, ModelError>>;

/// Whether a response is streamed in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Streaming {
    /// One whole response.
    #[default]
    Whole,
    /// Partial responses as they arrive, then the whole one.
    Pieces,
}
