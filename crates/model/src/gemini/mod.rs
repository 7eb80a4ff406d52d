mod request;
mod response;

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use sessile_agent::{Model, ModelError, ModelRequest, ModelStream, Streaming};

use crate::http::{Endpoint, Http};

/// Google's Gemini, through AI Studio or Google Cloud.
///
/// ```no_run
/// use sessile_model::{Endpoint, Gemini};
///
/// let model = Gemini::new("gemini-2.5-flash", Endpoint::gemini("my key"))?;
/// # Ok::<(), sessile_agent::ModelError>(())
/// ```
pub struct Gemini {
    name: String,
    http: Http,
}

impl Gemini {
    /// A model at an endpoint that speaks Gemini's interface.
    ///
    /// # Errors
    ///
    /// [`ModelError::Configuration`] if the name, the base URL or the key cannot be right.
    pub fn new(name: impl Into<String>, endpoint: Endpoint) -> Result<Self, ModelError> {
        let name = name.into();
        check_name(&name)?;
        Ok(Self { http: Http::new(&name, endpoint)?, name })
    }
}

#[async_trait]
impl Model for Gemini {
    fn name(&self) -> &str {
        &self.name
    }

    async fn generate(&self, request: ModelRequest, streaming: Streaming) -> Result<ModelStream, ModelError> {
        let model = request.model.clone().unwrap_or_else(|| self.name.clone());
        check_name(&model)?;
        let body = request::body(&model, request)?;
        let model_path = model.strip_prefix("models/").unwrap_or(&model);
        match streaming {
            Streaming::Whole => {
                let path = format!("/models/{model_path}:generateContent");
                let answer: Bytes = self.http.whole(&path, body).await?;
                let response = response::whole(&model, &answer);
                Ok(stream::iter([response]).boxed())
            }
            Streaming::Pieces => {
                let path = format!("/models/{model_path}:streamGenerateContent?alt=sse");
                let events = self.http.events(&path, body).await?;
                Ok(response::pieces(model, events))
            }
        }
    }
}

impl fmt::Debug for Gemini {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gemini").field("name", &self.name).field("endpoint", self.http.endpoint()).finish()
    }
}

/// A name becomes part of a URL.
fn check_name(name: &str) -> Result<(), ModelError> {
    let short = name.strip_prefix("models/").unwrap_or(name);
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_.@".contains(character);
    if short.is_empty() || !short.chars().all(plain) || short.starts_with('.') {
        let reason = "a model's name has letters, digits, \"-\", \"_\", \".\" and \"@\" only".to_owned();
        return Err(ModelError::Configuration { model: name.to_owned(), reason });
    }
    Ok(())
}
