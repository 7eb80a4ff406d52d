//! Where a request points: application, user and session from the path, checked against who asks.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use sessile_session::{SessionError, SessionKey};

use crate::auth::Principal;
use crate::error::ApiError;
use crate::server::Shared;

/// A session that the caller may use.
pub(crate) struct OfSession(pub(crate) SessionKey);

/// A user that the caller acts for.
pub(crate) struct OfUser {
    pub(crate) app: String,
    pub(crate) user: String,
    /// All parts of the path.
    params: RawPathParams,
}

/// An application.
pub(crate) struct InApp(pub(crate) String);

impl FromRequestParts<Shared> for OfSession {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, ApiError> {
        let OfUser { app, user, params } = OfUser::from_request_parts(parts, shared).await?;
        let id = named(&params, "session_id")?;
        Ok(Self(SessionKey::new(app, user, id).map_err(SessionError::from)?))
    }
}

impl FromRequestParts<Shared> for OfUser {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, ApiError> {
        let params = params(parts, shared).await?;
        let user = named(&params, "user_id")?.to_owned();
        principal(parts)?.acts_for(&user)?;
        Ok(Self { app: named(&params, "app_name")?.to_owned(), user, params })
    }
}

impl FromRequestParts<Shared> for InApp {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, ApiError> {
        param(parts, shared, "app_name").await.map(Self)
    }
}

impl FromRequestParts<Shared> for Principal {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, ApiError> {
        principal(parts)
    }
}

/// A part of the path by its name.
pub(crate) async fn param(parts: &mut Parts, shared: &Shared, name: &str) -> Result<String, ApiError> {
    let params = params(parts, shared).await?;
    named(&params, name).map(str::to_owned)
}

async fn params(parts: &mut Parts, shared: &Shared) -> Result<RawPathParams, ApiError> {
    let params = RawPathParams::from_request_parts(parts, shared).await;
    params.map_err(|_| ApiError::BadRequest("The path is not UTF-8".to_owned()))
}

fn named<'a>(params: &'a RawPathParams, name: &str) -> Result<&'a str, ApiError> {
    let found = params.iter().find(|(key, _)| *key == name).map(|(_, value)| value);
    found.ok_or_else(|| ApiError::not_found("Not Found"))
}

/// The caller. The middleware always sets one; if it is missing, the request counts as
/// unauthenticated.
fn principal(parts: &Parts) -> Result<Principal, ApiError> {
    let found = parts.extensions.get::<Principal>().cloned();
    found.ok_or_else(|| ApiError::Unauthenticated("This needs a token".to_owned()))
}
