//! The values that changes were computed from, compared when they are committed.

use sessile_state::{Scope, SharedValue};

/// What happens when a key no longer holds the value that its writer had read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnOverwrite {
    /// The commit goes through, and its event reports what was overwritten, see
    /// [`Event::overwrote`](crate::Event::overwrote).
    #[default]
    Report,
    /// Nothing is stored, and the error carries the current values.
    Refuse,
}

/// Reads the names that files, options and requests use: `report` and `refuse`.
impl std::str::FromStr for OnOverwrite {
    type Err = UnknownOnOverwrite;

    fn from_str(name: &str) -> Result<Self, UnknownOnOverwrite> {
        match name {
            "report" => Ok(Self::Report),
            "refuse" => Ok(Self::Refuse),
            other => Err(UnknownOnOverwrite(other.to_owned())),
        }
    }
}

/// A text that is neither `report` nor `refuse`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is `report` or `refuse`, not {0:?}")]
pub struct UnknownOnOverwrite(String);

/// The value that a change was computed from, compared when it is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// What was read; `None` if the key was absent.
    pub read: Option<SharedValue>,
    /// What happens if the key holds something else.
    pub on_overwrite: OnOverwrite,
}

/// Guards of keys with their prefixes.
///
/// ```
/// use serde_json::json;
/// use sessile_session::{Guards, OnOverwrite};
///
/// let guards = Guards::new(OnOverwrite::Refuse).with_read("user:points", json!(5)).with_absent("user:name");
/// assert_eq!(guards.len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Guards {
    on_overwrite: OnOverwrite,
    /// In the order of their keys. A list, because most commits have none.
    guards: Vec<(String, Guard)>,
}

impl Guards {
    /// No guards yet. Those that are added react in this way when a value differs.
    pub fn new(on_overwrite: OnOverwrite) -> Self {
        Self { on_overwrite, guards: Vec::new() }
    }

    /// Expects a key to hold this value.
    #[must_use]
    pub fn with_read(mut self, key: impl Into<String>, value: impl Into<SharedValue>) -> Self {
        self.insert(key.into(), Some(value.into()));
        self
    }

    /// Expects a key to be absent.
    #[must_use]
    pub fn with_absent(mut self, key: impl Into<String>) -> Self {
        self.insert(key.into(), None);
        self
    }

    /// Expects a key to hold this value, or to be absent.
    pub fn insert(&mut self, key: String, read: Option<SharedValue>) {
        self.insert_guard(key, Guard { read, on_overwrite: self.on_overwrite });
    }

    /// Guards a key as another guard does.
    pub fn insert_guard(&mut self, key: String, guard: Guard) {
        match self.place(&key) {
            Ok(place) => self.guards[place].1 = guard,
            Err(place) => self.guards.insert(place, (key, guard)),
        }
    }

    /// Adds the guards of others, in place of those of the same keys.
    pub fn extend(&mut self, others: Self) {
        if self.guards.is_empty() {
            self.guards = others.guards;
            return;
        }
        others.guards.into_iter().for_each(|(key, guard)| self.insert_guard(key, guard));
    }

    /// Keeps the guards of the keys for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.guards.retain(|(key, _)| keep(key));
    }

    /// The guard of a key.
    pub fn get(&self, key: &str) -> Option<&Guard> {
        self.place(key).ok().map(|place| &self.guards[place].1)
    }

    /// Where the guard of a key is, or would be.
    fn place(&self, key: &str) -> Result<usize, usize> {
        self.guards.binary_search_by(|(held, _)| held.as_str().cmp(key))
    }

    /// How many keys are guarded.
    pub fn len(&self) -> usize {
        self.guards.len()
    }

    /// Whether no key is guarded.
    pub fn is_empty(&self) -> bool {
        self.guards.is_empty()
    }

    /// The keys with their guards, in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Guard)> {
        self.guards.iter().map(|(key, guard)| (key.as_str(), guard))
    }

    /// The guards by scope, prefixes taken off; `temp:` keys are never stored and have none.
    pub fn split(self) -> ScopedGuards {
        let mut scoped = ScopedGuards::default();
        for (key, guard) in self.guards {
            let (scope, name) = Scope::of(&key);
            let guards = match scope {
                Scope::App => &mut scoped.app,
                Scope::User => &mut scoped.user,
                Scope::Session => &mut scoped.session,
                Scope::Temp => continue,
            };
            guards.push((name.to_owned(), guard));
        }
        scoped
    }
}

/// The guards of one scope, in the order of their names, which are without their prefix. A list,
/// because most commits have none.
pub type ScopeGuards = Vec<(String, Guard)>;

/// Guards separated by scope; names are without their prefix.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScopedGuards {
    /// Guards of `app:` keys.
    pub app: ScopeGuards,
    /// Guards of `user:` keys.
    pub user: ScopeGuards,
    /// Guards of all keys without those prefixes.
    pub session: ScopeGuards,
}

impl ScopedGuards {
    /// Whether no key is guarded.
    pub fn is_empty(&self) -> bool {
        self.app.is_empty() && self.user.is_empty() && self.session.is_empty()
    }
}
