//! Path parameters: application, user and session, checked against what the caller may use.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use sessile_session::{SessionError, SessionKey};

use super::auth::Principal;
use super::error::ApiError;

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

impl<S: Send + Sync> FromRequestParts<S> for OfSession {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let OfUser { app, user, params } = OfUser::from_request_parts(parts, state).await?;
        let id = named(&params, "session_id")?;
        Ok(Self(SessionKey::new(app, user, id).map_err(SessionError::from)?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for OfUser {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let params = params(parts, state).await?;
        let user = named(&params, "user_id")?.to_owned();
        Principal::of(parts)?.acts_for(&user)?;
        Ok(Self { app: named(&params, "app_name")?.to_owned(), user, params })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for InApp {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        param(parts, state, "app_name").await.map(Self)
    }
}

/// A part of the path by its name.
pub(crate) async fn param<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    name: &str,
) -> Result<String, ApiError> {
    let params = params(parts, state).await?;
    named(&params, name).map(str::to_owned)
}

async fn params<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<RawPathParams, ApiError> {
    let params = RawPathParams::from_request_parts(parts, state).await;
    params.map_err(|_| ApiError::BadRequest("The path is not UTF-8".to_owned()))
}

fn named<'a>(params: &'a RawPathParams, name: &str) -> Result<&'a str, ApiError> {
    let found = params.iter().find(|(key, _)| *key == name).map(|(_, value)| value);
    found.ok_or_else(|| ApiError::not_found("Not Found"))
}
