use std::collections::BTreeMap;

use crate::change::Change;
use crate::changes::Changes;
use crate::delta::Delta;
use crate::scope::Scope;
use crate::value::SharedValue;

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

impl ScopedDelta {
    /// What happens to a key, which has its prefix.
    pub fn get(&self, key: &str) -> Option<&Change> {
        let (scope, name) = Scope::of(key);
        match scope {
            Scope::App => self.app.get(name),
            Scope::User => self.user.get(name),
            Scope::Session => self.session.get(name),
            Scope::Temp => None,
        }
    }
}

impl Delta {
    /// Separates the changes by scope, prefixes taken off, `temp:` keys dropped.
    pub fn split(&self) -> ScopedDelta {
        if self.iter().all(|(key, _)| Scope::of(key).0 == Scope::Session) {
            return ScopedDelta { session: self.clone(), ..ScopedDelta::default() }; // their names are the keys
        }
        let (mut app, mut user, mut session) = <(Changes, Changes, Changes)>::default();
        for (key, change) in self.entries() {
            let (scope, name) = Scope::of(key);
            // Keys are in order, and so are the names of those that have the same prefix.
            match scope {
                Scope::App => app.push(name.into(), change.clone()),
                Scope::User => user.push(name.into(), change.clone()),
                Scope::Session => session.push(key.clone(), change.clone()),
                Scope::Temp => {} // never stored
            }
        }
        ScopedDelta { app: app.into(), user: user.into(), session: session.into() }
    }
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
/// A name that already carries its scope's prefix, as in rows that were written by hand, does not
/// get it twice; if both names are there, the one without prefix wins.
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
