use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use sessile_agent::ModelError;
use sessile_session::BoxError;

use super::secret::Secret;

/// The credentials of a client: a key, tokens, or none.
#[derive(Clone)]
pub struct Credentials(Kind);

#[derive(Clone)]
enum Kind {
    Nobody,
    /// A key in Google's own header.
    GoogleKey(Secret),
    Bearer(Secret),
    Tokens(Arc<dyn TokenProvider>),
}

impl Credentials {
    /// No credentials, for servers that need none.
    pub fn none() -> Self {
        Self(Kind::Nobody)
    }

    /// A key of Google's AI Studio.
    pub fn google_key(key: impl Into<String>) -> Self {
        Self(Kind::GoogleKey(Secret::from(key.into())))
    }

    /// A key that is sent as a bearer token, as OpenAI requires.
    pub fn bearer(key: impl Into<String>) -> Self {
        Self(Kind::Bearer(Secret::from(key.into())))
    }

    /// Tokens that expire; the provider is asked before each request.
    pub fn tokens(provider: Arc<dyn TokenProvider>) -> Self {
        Self(Kind::Tokens(provider))
    }

    /// The text without the key.
    pub(super) fn hide_in(&self, text: String) -> String {
        match &self.0 {
            Kind::GoogleKey(key) | Kind::Bearer(key) => key.hide_in(&text),
            Kind::Nobody | Kind::Tokens(_) => text,
        }
    }

    /// Checks that they can be used; the error says why not.
    pub(super) fn check(&self) -> Result<(), String> {
        match &self.0 {
            Kind::GoogleKey(key) | Kind::Bearer(key) if key.is_blank() => Err("the key is empty".to_owned()),
            Kind::GoogleKey(key) | Kind::Bearer(key) if key.header("").is_none() => {
                Err("the key contains characters that are not allowed in a header".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// The header with the credentials.
    pub(super) async fn authorization(
        &self,
        model: &str,
    ) -> Result<Option<(HeaderName, HeaderValue)>, ModelError> {
        let no_token = |reason| ModelError::Configuration { model: model.to_owned(), reason };
        let header = match &self.0 {
            Kind::Nobody => return Ok(None),
            Kind::GoogleKey(key) => key.header("").map(|value| (GOOGLE_KEY, value)),
            Kind::Bearer(key) => key.header("Bearer ").map(bearer),
            Kind::Tokens(provider) => {
                let token = provider.token().await.map_err(|source| ModelError::Unavailable {
                    model: model.to_owned(),
                    message: "no access token is available".to_owned(),
                    source: Some(source),
                })?;
                Secret::from(token).header("Bearer ").map(bearer)
            }
        };
        header.map(Some).ok_or_else(|| {
            no_token("the key or token contains characters that are not allowed in a header".to_owned())
        })
    }
}

/// Provides access tokens, such as those of Google Cloud. An implementation caches a token while it
/// is valid.
#[async_trait]
pub trait TokenProvider: Send + Sync {
    /// A token that is valid now.
    ///
    /// # Errors
    ///
    /// Why no token is available.
    async fn token(&self) -> Result<String, BoxError>;
}

const GOOGLE_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");

fn bearer(value: HeaderValue) -> (HeaderName, HeaderValue) {
    (AUTHORIZATION, value)
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Nobody => "none",
            Kind::GoogleKey(_) | Kind::Bearer(_) => "[secret key]",
            Kind::Tokens(_) => "[secret tokens]",
        })
    }
}
