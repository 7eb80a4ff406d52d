use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::changes::Changes;
use crate::node::Key;
use crate::scope::Scope;
use crate::value::SharedValue;

/// What happens to one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The key gets this value; null is a value.
    Set(SharedValue),
    /// The key is no more.
    Remove,
}

/// Changes that are not committed yet: keys set and keys removed, in key order.
///
/// ```
/// use sessile_state::Delta;
/// use serde_json::json;
///
/// let mut delta = Delta::new();
/// delta.set("user:theme", json!("dark"));
/// delta.set("temp:scratch", json!(1));
/// delta.remove("step");
///
/// let scoped = delta.split();
/// assert_eq!(scoped.user.get("theme"), Some(&sessile_state::Change::Set(json!("dark").into())));
/// assert_eq!(scoped.session.removed().collect::<Vec<_>>(), ["step"]);
/// assert!(scoped.app.is_empty()); // and temp: is in none of them
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delta {
    changes: Arc<Changes>,
}

impl Delta {
    /// A delta that changes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.changes.len() == 0
    }

    /// How many keys change.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// What happens to `key`, if anything does.
    pub fn get(&self, key: &str) -> Option<&Change> {
        self.changes.get(key)
    }

    /// The changes in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Change)> {
        self.changes.iter().map(|(key, change)| (&**key, change))
    }

    /// The keys that get a value, with it, in key order.
    pub fn values(&self) -> impl Iterator<Item = (&str, &SharedValue)> {
        self.iter().filter_map(|(key, change)| match change {
            Change::Set(value) => Some((key, value)),
            Change::Remove => None,
        })
    }

    /// The keys that are removed, in key order.
    pub fn removed(&self) -> impl Iterator<Item = &str> {
        self.iter().filter(|(_, change)| **change == Change::Remove).map(|(key, _)| key)
    }

    /// Sets a key, in place of what the delta said about it.
    pub fn set(&mut self, key: impl AsRef<str>, value: impl Into<SharedValue>) {
        self.insert(key.as_ref().into(), Change::Set(value.into()));
    }

    /// Removes a key, in place of what the delta said about it.
    pub fn remove(&mut self, key: impl AsRef<str>) {
        self.insert(key.as_ref().into(), Change::Remove);
    }

    /// Adds the changes of another delta, in place of what this one said about their keys.
    pub fn merge(&mut self, later: &Self) {
        for (key, change) in later.entries() {
            self.insert(key.clone(), change.clone());
        }
    }

    /// Keeps the changes of the keys that `keep` wants.
    pub fn retain(&mut self, keep: impl FnMut(&str) -> bool) {
        Arc::make_mut(&mut self.changes).retain(keep);
    }

    /// Separates the changes by scope, prefixes taken off, `temp:` keys dropped.
    pub fn split(&self) -> ScopedDelta {
        let mut scoped = ScopedDelta::default();
        for (key, change) in self.iter() {
            let (scope, name) = Scope::of(key);
            let delta = match scope {
                Scope::App => &mut scoped.app,
                Scope::User => &mut scoped.user,
                Scope::Session => &mut scoped.session,
                Scope::Temp => continue, // never stored
            };
            delta.insert(name.into(), change.clone());
        }
        scoped
    }

    pub(crate) fn insert(&mut self, key: Key, change: Change) -> Option<Change> {
        Arc::make_mut(&mut self.changes).insert(key, change)
    }

    pub(crate) fn forget(&mut self, key: &str) -> Option<Change> {
        Arc::make_mut(&mut self.changes).remove(key)
    }

    /// The changes from `start` on, in key order.
    pub(crate) fn starting_at(&self, start: &str) -> impl Iterator<Item = (&Key, &Change)> + use<'_> {
        self.changes.starting_at(start)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Key, &Change)> {
        self.changes.iter()
    }
}

impl<K: AsRef<str>, V: Into<SharedValue>> FromIterator<(K, V)> for Delta {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let changes = entries
            .into_iter()
            .map(|(key, value)| (Key::from(key.as_ref()), Change::Set(value.into())))
            .collect();
        Self { changes: Arc::new(changes) }
    }
}

impl<K: AsRef<str>, V: Into<SharedValue>, const N: usize> From<[(K, V); N]> for Delta {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl From<Map<String, Value>> for Delta {
    fn from(map: Map<String, Value>) -> Self {
        map.into_iter().collect()
    }
}

/// A delta separated by scope; names are without their prefix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScopedDelta {
    /// Changes of `app:` keys.
    pub app: Delta,
    /// Changes of `user:` keys.
    pub user: Delta,
    /// Changes of all keys without those prefixes.
    pub session: Delta,
}

/// Separates a map of prefixed keys into the three stored scopes; `temp:` keys are dropped.
///
/// ```
/// use serde_json::json;
/// use sessile_state::{Delta, extract_state_delta};
///
/// let deltas = extract_state_delta([
///     ("app:version", json!("1.0.0")),
///     ("user:language", json!("en")),
///     ("session_id", json!("session1")),
/// ]);
/// assert_eq!(deltas.app, Delta::from_iter([("version", json!("1.0.0"))]));
/// assert_eq!(deltas.user, Delta::from_iter([("language", json!("en"))]));
/// assert_eq!(deltas.session, Delta::from_iter([("session_id", json!("session1"))]));
/// ```
pub fn extract_state_delta<K: AsRef<str>, V: Into<SharedValue>>(
    state: impl IntoIterator<Item = (K, V)>,
) -> ScopedDelta {
    state.into_iter().collect::<Delta>().split()
}

/// Joins the three stored scopes into the one map that an agent sees, prefixes put back.
///
/// A name that already carries its scope's prefix, as rows written by hand may, is not given
/// it twice; the name without prefix wins when both are there.
///
/// ```
/// use serde_json::json;
/// use sessile_state::merge_scopes;
///
/// let combined = merge_scopes([("version", json!(1))], [("name", json!("Ada"))], [("step", json!("pay"))]);
/// assert_eq!(combined.keys().collect::<Vec<_>>(), ["app:version", "step", "user:name"]);
/// ```
pub fn merge_scopes<K: AsRef<str>, V>(
    app: impl IntoIterator<Item = (K, V)>,
    user: impl IntoIterator<Item = (K, V)>,
    session: impl IntoIterator<Item = (K, V)>,
) -> BTreeMap<String, V> {
    let mut combined: BTreeMap<String, V> =
        session.into_iter().map(|(key, value)| (key.as_ref().to_owned(), value)).collect();
    add_scope(&mut combined, Scope::App, app);
    add_scope(&mut combined, Scope::User, user);
    combined
}

fn add_scope<K: AsRef<str>, V>(
    combined: &mut BTreeMap<String, V>,
    scope: Scope,
    entries: impl IntoIterator<Item = (K, V)>,
) {
    let (prefixed, plain): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|(key, _)| Scope::of(key.as_ref()).0 == scope);
    combined.extend(prefixed.into_iter().map(|(key, value)| (key.as_ref().to_owned(), value)));
    combined.extend(plain.into_iter().map(|(key, value)| (scope.key(key.as_ref()), value)));
}
