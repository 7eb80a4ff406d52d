use std::sync::Arc;
use std::time::Duration;

use axum::http::request::Parts;

use crate::http::error::ApiError;

/// The caller, and what it may do.
#[derive(Debug, Clone)]
pub struct Principal {
    /// The user of the token; `None` without authentication.
    name: Option<Arc<str>>,
    /// Whether it acts for every user, and not only for itself.
    any_user: bool,
    rights: Rights,
    /// When its token stops being valid, in seconds since 1970; `None` is never.
    expires: Option<f64>,
}

/// What a principal may do beyond its own user's sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rights {
    /// Acts for every user, lists all users' sessions, reads metrics.
    pub admin: bool,
    /// Writes `app:` keys.
    pub write_app: bool,
}

impl Principal {
    /// An unknown caller, when authentication is off. It may do everything.
    pub fn anyone() -> Self {
        Self { name: None, any_user: true, rights: Rights { admin: true, write_app: true }, expires: None }
    }

    /// A user with these rights. An admin acts for every user, and writes `app:` keys.
    pub fn new(user: impl Into<Arc<str>>, rights: Rights) -> Self {
        let name = Some(user.into());
        match rights.admin {
            true => Self { name, ..Self::anyone() },
            false => Self { name, any_user: false, rights, expires: None },
        }
    }

    /// Until this time, in seconds since 1970.
    #[must_use]
    pub fn until(mut self, expires: f64) -> Self {
        self.expires = Some(expires);
        self
    }

    /// The caller of a request. The middleware always sets one; if it is missing, the request
    /// counts as unauthenticated.
    pub(crate) fn of(parts: &Parts) -> Result<Self, ApiError> {
        let found = parts.extensions.get::<Self>().cloned();
        found.ok_or_else(|| ApiError::Unauthenticated("This needs a token".to_owned()))
    }

    /// Resolves when the token expires; never, if it does not.
    pub(crate) fn expired(&self, now: f64) -> impl Future<Output = ()> + Send + 'static + use<> {
        // Timers have a maximum; a token that is valid for longer counts as one that never expires.
        const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);
        let left = self.expires.map(|expires| Duration::try_from_secs_f64((expires - now).max(0.0)));
        async move {
            match left {
                Some(Ok(left)) if left < LONGEST => tokio::time::sleep(left).await,
                _ => std::future::pending().await,
            }
        }
    }

    /// The user of the token, for the history of changes; `None` without authentication.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The only user that it acts for; `None` if it acts for every user.
    pub(crate) fn user(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| !self.any_user)
    }

    /// Refuses to act for another user, with the same message whether or not that user exists.
    pub(crate) fn acts_for(&self, user: &str) -> Result<(), ApiError> {
        match self.user() {
            Some(own) if own != user => {
                Err(ApiError::Forbidden("This token does not act for that user".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Refuses to write `app:` keys without the right to.
    pub(crate) fn writes<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> Result<(), ApiError> {
        let is_app = |key: &&str| sessile_state::Scope::of(key).0 == sessile_state::Scope::App;
        match keys.into_iter().find(is_app) {
            Some(key) if !self.rights.write_app => Err(ApiError::Forbidden(format!(
                "This token may not write the key {key:?}: application state needs the right write_app"
            ))),
            _ => Ok(()),
        }
    }

    /// Whether it may write `app:` keys, and see which users did.
    pub(crate) fn may_write_app(&self) -> bool {
        self.rights.write_app
    }

    /// Refuses what only admins may do.
    pub(crate) fn is_admin(&self) -> Result<(), ApiError> {
        if self.rights.admin {
            return Ok(());
        }
        Err(ApiError::Forbidden("This needs the right admin".to_owned()))
    }
}
