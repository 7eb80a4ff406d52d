//! How long the history of shared state is kept.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::SessionService;
use crate::error::SessionError;
use crate::key::ScopeKey;
use crate::store::TrimmedChanges;

/// How long changes of shared state are kept by default.
pub(super) const KEPT: Duration = Duration::from_secs(90 * 24 * 3600);

/// How many scopes a step visits, and how many changes it removes at most.
const STEP: usize = 500;

/// How many seconds are between two steps, unless there was more to remove than one step may.
const PAUSE: f64 = 60.0;

/// The progress of trimming. Every service trims independently; concurrent steps are harmless.
#[derive(Debug, Default)]
pub(super) struct Trimming {
    place: Mutex<Place>,
}

#[derive(Debug, Default)]
struct Place {
    /// The next step begins after this scope.
    after: Option<ScopeKey>,
    /// When the next step is due, in Unix seconds; `None` before the first change.
    due: Option<f64>,
}

impl SessionService {
    /// Removes all changes of shared state that are older than they are kept, in small steps; the
    /// newest of each scope stays. Returns how many rows of the history were removed. A service
    /// does this automatically, one step at a time, while it changes shared state.
    ///
    /// # Errors
    ///
    /// Those of the store. Changes that were removed before the error stay removed.
    pub async fn trim_history(&self) -> Result<usize, SessionError> {
        let Some(before) = self.kept_since() else { return Ok(0) };
        let (mut removed, mut after) = (0, None);
        loop {
            let step = self.store.trim_changes(before, after.as_ref(), STEP).await?;
            removed += step.removed;
            match step.next {
                Some(next) => after = Some(next),
                None => return Ok(removed),
            }
        }
    }

    /// Makes one step of trimming in the background, if it is due.
    pub(super) fn trim_in_passing(&self) {
        let Some(before) = self.kept_since() else { return };
        let now = self.clock.now();
        let after = {
            let mut place = self.trimming.place();
            match place.due {
                None => {
                    place.due = Some(now + PAUSE);
                    return;
                }
                Some(due) if now < due => return,
                Some(_) => place.due = Some(now + PAUSE),
            }
            place.after.clone()
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let service = self.clone();
        runtime.spawn(async move {
            // A failed step is harmless: it removed only what may be removed, and the next one
            // starts at the same position.
            if let Ok(step) = service.store.trim_changes(before, after.as_ref(), STEP).await {
                service.trimming.went(step, now);
            }
        });
    }

    /// The time before which changes are removed; `None` if they are kept forever.
    fn kept_since(&self) -> Option<f64> {
        self.history_kept.map(|kept| self.clock.now() - kept.as_secs_f64())
    }
}

impl Trimming {
    fn place(&self) -> std::sync::MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn went(&self, step: TrimmedChanges, now: f64) {
        let mut place = self.place();
        if step.removed >= STEP {
            place.due = Some(now); // there is more to remove
        }
        place.after = step.next;
    }
}
