mod request;
mod response;
mod stream;

use std::fmt;

use async_trait::async_trait;
use futures_util::stream::{StreamExt, iter};
use sessile_agent::{Model, ModelError, ModelRequest, ModelStream, Streaming};

use crate::http::{Endpoint, Http};

/// A model behind `/chat/completions`: OpenAI's, or that of a compatible server.
///
/// ```no_run
/// use sessile_model::{Credentials, Endpoint, OpenAi};
///
/// let model = OpenAi::new("gpt-4o", Endpoint::openai("my key"))?;
/// let local = OpenAi::new("llama3", Endpoint::new("http://localhost:11434/v1", Credentials::none()))?;
/// # Ok::<(), sessile_agent::ModelError>(())
/// ```
pub struct OpenAi {
    name: String,
    http: Http,
}

impl OpenAi {
    /// A model at an endpoint; its base URL ends before `/chat/completions`.
    ///
    /// # Errors
    ///
    /// [`ModelError::Configuration`] if the name, the base URL or the key cannot be right.
    pub fn new(name: impl Into<String>, endpoint: Endpoint) -> Result<Self, ModelError> {
        let name = name.into();
        if name.trim().is_empty() {
            return Err(ModelError::Configuration {
                model: name,
                reason: "the model has no name".to_owned(),
            });
        }
        Ok(Self { http: Http::new(&name, endpoint)?, name })
    }

    /// The name of the limit of tokens: OpenAI has renamed it, compatible servers have not.
    fn length_field(&self) -> &'static str {
        if self.http.endpoint().base_url().starts_with("https://api.openai.com/") {
            "max_completion_tokens"
        } else {
            "max_tokens"
        }
    }
}

#[async_trait]
impl Model for OpenAi {
    fn name(&self) -> &str {
        &self.name
    }

    async fn generate(&self, request: ModelRequest, streaming: Streaming) -> Result<ModelStream, ModelError> {
        let model = request.model.clone().unwrap_or_else(|| self.name.clone());
        let body = request::body(&model, request, streaming, self.length_field())?;
        let path = "/chat/completions";
        match streaming {
            Streaming::Whole => {
                let answer = self.http.whole(path, body).await?;
                Ok(iter([response::whole(&model, &answer)]).boxed())
            }
            Streaming::Pieces => Ok(stream::pieces(model, self.http.events(path, body).await?)),
        }
    }
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAi").field("name", &self.name).field("endpoint", self.http.endpoint()).finish()
    }
}
