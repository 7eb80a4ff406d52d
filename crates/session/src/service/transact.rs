use std::time::Duration;

use sessile_state::{Delta, Scope, State};

use super::SessionService;
use super::append::Outcome;
use super::check::checked;
use crate::error::{BoxError, SessionError};
use crate::event::Event;
use crate::key::SessionKey;
use crate::store::{EventWindow, Expect, Version};

/// How often a transaction is tried before the conflict is reported.
const ATTEMPTS: u32 = 10_000;

impl SessionService {
    /// Reads the newest state, lets `change` compute on it, and commits what it changed as one
    /// event; if what it read has changed meanwhile, again. Returns what `change` returned, and
    /// the session's version.
    ///
    /// `change` may run many times. It sees the session's own keys, and those of its user and
    /// application; of these three, the ones it read or wrote must be unchanged at the commit. If
    /// it changes nothing, nothing is committed.
    ///
    /// ```
    /// use serde_json::json;
    /// use sessile_session::{CreateSession, MemoryStore, SessionService};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let service = SessionService::new(MemoryStore::new());
    /// let session = service.create(CreateSession::new("shop", "ada")).await?;
    ///
    /// let (visits, _) = service.transact(session.key(), |state| {
    ///     Ok(state.try_modify("user:visits", 0, |n| n + 1)?)
    /// }).await?;
    /// assert_eq!(visits, 1);
    /// # Ok::<(), sessile_session::SessionError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// - [`SessionError::NotFound`] if there is no such session;
    /// - [`SessionError::GivenUp`] if `change` returns an error; nothing is committed then;
    /// - [`SessionError::InvalidState`] if something cannot be stored.
    pub async fn transact<T>(
        &self,
        key: &SessionKey,
        mut change: impl FnMut(&State) -> Result<T, BoxError>,
    ) -> Result<(T, Version), SessionError> {
        let mut attempt = 0;
        loop {
            let Some(session) = self.get(key, EventWindow::NONE).await? else {
                return Err(SessionError::NotFound { key: key.clone() });
            };
            let (state, reads) = session.state().to_state().with_read_tracking();
            let view = state.with_delta_tracking();
            let result =
                change(&view).map_err(|source| SessionError::GivenUp { key: key.clone(), source })?;
            let delta = view.delta();
            let stored = checked(&delta)?;
            let touched = |scope: Scope, delta: &Delta| reads.contains(scope) || !delta.is_empty();
            let versions = session.scope_versions();
            let expect = Expect {
                session: touched(Scope::Session, &stored.session).then_some(session.version()),
                user: touched(Scope::User, &stored.user).then_some(versions.user),
                app: touched(Scope::App, &stored.app).then_some(versions.app),
            };
            if stored.app.is_empty() && stored.user.is_empty() && stored.session.is_empty() {
                return Ok((result, session.version()));
            }
            let mut event = Event::new("user").with_delta(&delta);
            event.invocation_id = format!("p-{}", self.ids.new_id());
            match self.commit(key, event, expect).await {
                Ok(Outcome::Committed { appended, .. }) => return Ok((result, appended.version)),
                Ok(Outcome::Partial(_)) => return Ok((result, session.version())),
                Err(SessionError::Conflict { .. }) if attempt < ATTEMPTS => {
                    attempt += 1;
                    tokio::time::sleep(self.pause(attempt)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A random pause, longer the more often it went wrong, so that rivals do not meet again.
    fn pause(&self, attempt: u32) -> Duration {
        let longest = 200_u64 << attempt.min(7); // microseconds
        let random = uuid::Uuid::new_v4().as_u64_pair().0;
        Duration::from_micros(random % longest)
    }
}
