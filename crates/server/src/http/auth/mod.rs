//! Authentication: tokens in the `Authorization` header, and the rights that they give.

mod jwt;
mod principal;
mod tokens;

use axum::http::{HeaderMap, header};

pub use jwt::{JwtCheck, JwtKeys};
pub use principal::{Principal, Rights};
pub use tokens::StaticTokens;

use crate::http::error::ApiError;

/// How callers are authenticated. Without JSON Web Tokens and fixed tokens, authentication is off,
/// and every caller may do everything.
#[derive(Debug, Default)]
pub struct Auth {
    jwt: Option<JwtCheck>,
    tokens: Option<StaticTokens>,
}

/// Keys or tokens that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AuthError(String);

impl AuthError {
    pub(crate) fn origin(error: &regex::Error) -> Self {
        Self(format!("the pattern of an allowed origin cannot be read: {error}"))
    }
}

impl Auth {
    /// No authentication: every caller may do everything.
    pub fn off() -> Self {
        Self::default()
    }

    /// Authenticates callers by JSON Web Tokens.
    #[must_use]
    pub fn with_jwt(mut self, check: JwtCheck) -> Self {
        self.jwt = Some(check);
        self
    }

    /// Authenticates callers by fixed tokens.
    #[must_use]
    pub fn with_tokens(mut self, tokens: StaticTokens) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Whether callers need a token.
    pub fn is_on(&self) -> bool {
        self.jwt.is_some() || self.tokens.is_some()
    }

    /// The caller of a request. Why a token is refused is logged, and not sent to the client.
    pub(crate) fn principal(&self, headers: &HeaderMap, now: f64) -> Result<Principal, ApiError> {
        if !self.is_on() {
            return Ok(Principal::anyone());
        }
        let token = bearer(headers)?;
        if let Some(principal) = self.tokens.as_ref().and_then(|tokens| tokens.principal(token)) {
            return Ok(principal);
        }
        let refused = || ApiError::Unauthenticated("The token is not valid".to_owned());
        match &self.jwt {
            Some(jwt) => jwt.principal(token, now).map_err(|reason| {
                tracing::debug!(%reason, "refused a token");
                refused()
            }),
            None => Err(refused()),
        }
    }
}

fn bearer(headers: &HeaderMap) -> Result<&str, ApiError> {
    let missing = || ApiError::Unauthenticated("This needs a token: `Authorization: Bearer …`".to_owned());
    let value = headers.get(header::AUTHORIZATION).ok_or_else(missing)?.to_str().map_err(|_| missing())?;
    let (scheme, token) = value.split_once(' ').ok_or_else(missing)?;
    if scheme.eq_ignore_ascii_case("bearer") { Ok(token.trim()) } else { Err(missing()) }
}
