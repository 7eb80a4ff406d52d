use std::time::Duration;

use sessile_state::{Reads, State};

use super::SessionService;
use super::append::Append;
use super::check::checked;
use crate::commit::{Answer, Expect, Guards, OnOverwrite};
use crate::error::{BoxError, SessionError};
use crate::event::{Event, EventActions};
use crate::key::SessionKey;
use crate::session::Session;
use crate::store::{EventWindow, Version};

/// How often a transaction is tried before the conflict is reported.
const ATTEMPTS: u32 = 10_000;

impl SessionService {
    /// Reads the newest state, lets `change` compute on it, and commits what it changed as one
    /// event; if what it read has changed meanwhile, again. Returns what `change` returned, and
    /// the session's version.
    ///
    /// `change` may run many times. It sees the session's own keys, and those of its user and
    /// application; the keys that it read must be unchanged at the commit, and other keys do not matter. If
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
    /// - [`SessionError::Operation`] if an operation cannot be applied to what is stored;
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
            if stored.app.is_empty() && stored.user.is_empty() && stored.session.is_empty() {
                return Ok((result, session.version()));
            }
            let event = Event::new("user")
                .with_actions(EventActions::from_delta(delta))
                .with_invocation(format!("p-{}", self.ids.new_id()));
            let append =
                Append { event, expect: expected(&session, &reads), guards: guards(&session, &reads) };
            match self.commit(key, append, Answer::default()).await {
                Ok(appended) => return Ok((result, appended.version)),
                Err(
                    SessionError::Conflict { .. }
                    | SessionError::Overwritten { .. }
                    | SessionError::Replaced { .. },
                ) if attempt < ATTEMPTS => {
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

/// What must be stored: the session that was read; and if all keys were listed, the versions of all scopes, because a
/// key that was added would have been listed too.
fn expected(session: &Session, reads: &Reads) -> Expect {
    match reads.is_everything() {
        true => session.versions(),
        false => Expect { incarnation: Some(session.incarnation()), ..Expect::default() },
    }
}

/// The values that were read, by key. Writers of other keys are not in the way.
fn guards(session: &Session, reads: &Reads) -> Guards {
    let mut guards = Guards::new(OnOverwrite::Refuse);
    for key in reads.keys() {
        let read = session.state().get_raw(&key).cloned();
        guards.insert(key, read);
    }
    guards
}
