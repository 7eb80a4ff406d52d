use std::sync::{Mutex, MutexGuard, PoisonError};

use sessile_session::{Session, SessionError};
use sessile_state::{Delta, Scope};

/// Keeps the scopes of a session's state within a size.
pub(crate) struct Sizes {
    /// In bytes of JSON; `None` is any.
    limit: Option<usize>,
    /// At most how large each scope is, once it was looked at: what is replaced is not subtracted until the sum
    /// comes to the limit, so that most commits look at their own changes only.
    known: Mutex<[Option<usize>; SCOPES.len()]>,
}

const SCOPES: [Scope; 3] = [Scope::Session, Scope::User, Scope::App];

impl Sizes {
    pub(crate) fn new(limit: Option<usize>) -> Self {
        Self { limit, known: Mutex::default() }
    }

    /// Refuses a change after which a scope would be too large.
    pub(crate) fn check(&self, session: &Session, delta: &Delta) -> Result<(), SessionError> {
        let Some(limit) = self.limit else { return Ok(()) };
        for (place, scope) in SCOPES.into_iter().enumerate() {
            let sets = || delta.values().filter(|(key, _)| Scope::of(key).0 == scope);
            let added: usize = sets().map(|(key, value)| key.len() + value.json_size()).sum();
            let Some((largest, _)) = sets().max_by_key(|(_, value)| value.json_size()) else { continue };
            let known = self.known()[place];
            let size = match known.map(|known| known + added).filter(|size| *size <= limit) {
                Some(size) => size,
                None => added + kept(session, scope, delta),
            };
            if size > limit {
                let reason = format!(
                    "the {scope} state would be {size} bytes, and at most {limit} are kept; \
                     remove keys, or store large values as artifacts"
                );
                return Err(SessionError::InvalidState { key: largest.to_owned(), reason });
            }
            self.known()[place] = Some(size);
        }
        Ok(())
    }

    /// Forgets what is known, because others changed the state.
    pub(crate) fn forget(&self) {
        *self.known() = Default::default();
    }

    fn known(&self) -> MutexGuard<'_, [Option<usize>; SCOPES.len()]> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How large the keys of a scope are that stay as they are.
fn kept(session: &Session, scope: Scope, delta: &Delta) -> usize {
    let stays =
        session.state().iter().filter(|(key, _)| Scope::of(key).0 == scope && delta.get(key).is_none());
    stays.map(|(key, value)| key.len() + value.json_size()).sum()
}
