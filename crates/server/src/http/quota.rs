use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::ApiError;

/// Limits how many runs or watches there are at once, for all users together and for each user.
pub(crate) struct Quota {
    /// What is counted, as in "8 runs".
    what: &'static str,
    limit: usize,
    user_limit: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    /// Only users who have taken at least one.
    by_user: HashMap<String, usize>,
}

/// One of the quota, which is given back when the permit is dropped.
pub(crate) struct Permit {
    quota: Arc<Quota>,
    user: String,
}

impl Quota {
    pub(crate) fn new(what: &'static str, limit: usize, user_limit: usize) -> Arc<Self> {
        Arc::new(Self { what, limit, user_limit, taken: Mutex::default() })
    }

    /// Takes one more for a user, unless the quota is exhausted.
    pub(crate) fn take(self: &Arc<Self>, user: &str) -> Result<Permit, ApiError> {
        let mut taken = self.taken();
        let what = self.what;
        if taken.all >= self.limit {
            return Err(ApiError::TooMany(format!(
                "{} {what} are already in progress; retry when one has finished",
                self.limit
            )));
        }
        let own = taken.by_user.get(user).copied().unwrap_or(0);
        if own >= self.user_limit {
            return Err(ApiError::TooMany(format!(
                "{} {what} of this user are already in progress, the most that one user may have; retry when one has finished",
                self.user_limit
            )));
        }
        taken.by_user.insert(user.to_owned(), own + 1);
        taken.all += 1;
        drop(taken);
        Ok(Permit { quota: self.clone(), user: user.to_owned() })
    }

    /// How many are taken.
    pub(crate) fn count(&self) -> usize {
        self.taken().all
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = self.quota.taken();
        taken.all -= 1;
        if let Some(own) = taken.by_user.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                taken.by_user.remove(&self.user);
            }
        }
    }
}
