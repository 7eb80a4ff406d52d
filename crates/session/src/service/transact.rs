use std::time::Duration;

use sessile_state::{Reads, State};

use super::SessionService;
use super::append::Append;
use super::check::checked;
use crate::commit::{Answer, Expect};
use crate::error::{BoxError, SessionError};
use crate::event::Event;
use crate::guard::{Guards, OnOverwrite};
use crate::key::SessionKey;
use crate::session::Session;
use crate::version::Version;
use crate::window::EventWindow;

/// How many attempts a transaction has before the conflict is reported.
const ATTEMPTS: u32 = 10_000;

impl SessionService {
    /// Runs an optimistic transaction: reads the newest state, lets `change` compute on it, and
    /// commits the changes as one event. If a value that it read has changed meanwhile, it retries.
    /// Returns what `change` returned, and the session's version.
    ///
    /// `change` may run several times. It sees the session's own keys, and those of its user and
    /// application; the keys that it read must be unchanged at the commit, and other keys do not
    /// matter. If it changes nothing, nothing is committed.
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
        let mut backoff = Backoff::default();
        loop {
            let attempt = self.attempt(key).await?;
            let given_up = |source| SessionError::GivenUp { key: key.clone(), source };
            let result = change(attempt.state()).map_err(given_up)?;
            let event = Event::new("user").with_invocation(format!("p-{}", self.ids.new_id()));
            let Some(append) = attempt.append(event)? else { return Ok((result, attempt.session.version())) };
            match self.commit(key, append, Answer::default()).await {
                Ok(appended) => return Ok((result, appended.version)),
                Err(error) if error.is_outdated() && backoff.pause().await => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads a session for one attempt of a transaction. Most callers should use
    /// [`transact`](Self::transact).
    ///
    /// # Errors
    ///
    /// [`SessionError::NotFound`] if there is no such session.
    pub async fn attempt(&self, key: &SessionKey) -> Result<Attempt, SessionError> {
        let Some(session) = self.get(key, EventWindow::NONE).await? else {
            return Err(SessionError::NotFound { key: key.clone() });
        };
        Ok(Attempt { view: session.state().to_state().with_read_tracking(), session })
    }
}

/// One attempt of a transaction: a state as it is stored, and the changes computed from it.
#[derive(Debug)]
pub struct Attempt {
    session: Session,
    view: State,
}

impl Attempt {
    /// The state to read and change. It tracks what is read.
    pub fn state(&self) -> &State {
        &self.view
    }

    /// The session as it was read.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The event with the changes that were made, on the condition that what was read has not
    /// changed since; `None` if nothing changed that is stored.
    ///
    /// # Errors
    ///
    /// [`SessionError::InvalidState`] if a change cannot be stored.
    pub fn append(&self, mut event: Event) -> Result<Option<Append>, SessionError> {
        let delta = self.view.delta();
        let stored = checked(&delta, None)?; // the commit checks the schema
        if stored.app.is_empty() && stored.user.is_empty() && stored.session.is_empty() {
            return Ok(None);
        }
        event.actions.state_delta = delta;
        let reads = self.view.reads();
        Ok(Some(Append::new(event).expecting(expected(&self.session, &reads)).guarded(guards(&reads))))
    }
}

/// Exponential backoff with jitter between retries after a conflict, so that competing writers do
/// not collide again.
#[derive(Debug, Default)]
pub struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// Waits before the next attempt; `false` if there were too many, and the caller should report
    /// the conflict.
    pub async fn pause(&mut self) -> bool {
        if self.attempts >= ATTEMPTS {
            return false;
        }
        self.attempts += 1;
        let longest = 200_u64 << self.attempts.min(7); // microseconds
        let random = uuid::Uuid::new_v4().as_u64_pair().0;
        tokio::time::sleep(Duration::from_micros(random % longest)).await;
        true
    }
}

/// What must be stored: the session that was read; and if all keys were listed, the versions of all
/// scopes, because a key that was added since would have been listed too.
fn expected(session: &Session, reads: &Reads) -> Expect {
    match reads.is_everything() {
        true => session.versions(),
        false => Expect { incarnation: Some(session.incarnation()), ..Expect::default() },
    }
}

/// Guards for the values that were read. Writers of other keys do not conflict.
fn guards(reads: &Reads) -> Guards {
    let mut guards = Guards::new(OnOverwrite::Refuse);
    for (key, read) in reads.iter() {
        guards.insert(key.to_owned(), read.cloned());
    }
    guards
}
