//! What an agent asks, and who answers.

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
    /// What it is called, such as `gemini-2.5-flash`.
    fn name(&self) -> &str;

    /// Asks. The stream holds exactly one whole response, or an error, as its last item; with
    /// [`Streaming::Pieces`] the pieces come before it, each with `partial` set and only what is
    /// new, and the last response holds all of them joined.
    ///
    /// # Errors
    ///
    /// [`ModelError`] says what the caller can do.
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

/// Whether an answer is wanted in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Streaming {
    /// One whole response.
    #[default]
    Whole,
    /// Pieces as they are made, then the whole.
    Pieces,
}
