use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::changes::{Changes, Iter};
use crate::error::StateError;
use crate::node::Key;
use crate::operation::{Operation, OperationError, Operations};
use crate::scope::Scope;
use crate::value::SharedValue;
use crate::write::or_panic;

/// What happens to one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The key gets this value; null is a value.
    Set(SharedValue),
    /// The key is removed.
    Remove,
    /// The value is computed from the one that is stored when the change is committed.
    Operate(Operations),
}

impl Change {
    /// The one change that has the effect of this one and then `later`.
    ///
    /// # Errors
    ///
    /// [`OperationError`] if `later` operates on a value that this change sets and that it cannot
    /// be applied to.
    pub fn then(&self, later: &Self) -> Result<Self, OperationError> {
        match (self, later) {
            (_, Self::Set(_) | Self::Remove) => Ok(later.clone()),
            (Self::Set(value), Self::Operate(operations)) => operations.apply(Some(value)).map(Self::Set),
            (Self::Remove, Self::Operate(operations)) => operations.apply(None).map(Self::Set),
            (Self::Operate(earlier), Self::Operate(operations)) => {
                let mut all = earlier.clone();
                all.extend(operations);
                Ok(Self::Operate(all))
            }
        }
    }

    /// What the change makes of a value; `None` is absence.
    ///
    /// # Errors
    ///
    /// [`OperationError`] if it is an operation that cannot be applied to this value.
    pub fn apply(&self, value: Option<&SharedValue>) -> Result<Option<SharedValue>, OperationError> {
        match self {
            Self::Set(value) => Ok(Some(value.clone())),
            Self::Remove => Ok(None),
            Self::Operate(operations) => operations.apply(value).map(Some),
        }
    }
}

/// Changes that are not committed yet: keys set, keys removed and operations on keys, in key order.
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
#[derive(Clone, Default)]
pub struct Delta {
    /// `None` if nothing changes: most deltas of a scope are empty, and cost nothing then.
    changes: Option<Arc<Changes>>,
}

impl Delta {
    /// A delta that changes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys change.
    pub fn len(&self) -> usize {
        self.changes.as_ref().map_or(0, |changes| changes.len())
    }

    /// What happens to `key`, if anything does.
    pub fn get(&self, key: &str) -> Option<&Change> {
        self.changes.as_ref()?.get(key)
    }

    /// The changes in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Change)> {
        self.entries().map(|(key, change)| (&**key, change))
    }

    /// The keys that get a value, with it, in key order.
    pub fn values(&self) -> impl Iterator<Item = (&str, &SharedValue)> {
        self.iter().filter_map(|(key, change)| match change {
            Change::Set(value) => Some((key, value)),
            Change::Remove | Change::Operate(_) => None,
        })
    }

    /// The keys that are removed, in key order.
    pub fn removed(&self) -> impl Iterator<Item = &str> {
        self.iter().filter(|(_, change)| matches!(change, Change::Remove)).map(|(key, _)| key)
    }

    /// The keys that are operated on, with the operations, in key order.
    pub fn operations(&self) -> impl Iterator<Item = (&str, &Operations)> {
        self.iter().filter_map(|(key, change)| match change {
            Change::Operate(operations) => Some((key, operations)),
            Change::Set(_) | Change::Remove => None,
        })
    }

    /// Whether some of its changes are operations.
    pub fn has_operations(&self) -> bool {
        self.entries().any(|(_, change)| matches!(change, Change::Operate(_)))
    }

    /// Sets a key, in place of what the delta said about it.
    pub fn set(&mut self, key: impl AsRef<str>, value: impl Into<SharedValue>) {
        self.insert(key.as_ref().into(), Change::Set(value.into()));
    }

    /// Removes a key, in place of what the delta said about it.
    pub fn remove(&mut self, key: impl AsRef<str>) {
        self.insert(key.as_ref().into(), Change::Remove);
    }

    /// Adds a number to what is stored under a key, see [`Operation::add`].
    ///
    /// # Panics
    ///
    /// Where [`try_operate`](Self::try_operate) returns an error, with its text; if the number is
    /// NaN or infinite.
    #[track_caller]
    pub fn add(&mut self, key: impl AsRef<str>, by: impl crate::number::Addend) {
        self.operate(key, Operation::add(by));
    }

    /// Adds items to the end of the list under a key, see [`Operation::append`].
    ///
    /// # Panics
    ///
    /// Where [`try_operate`](Self::try_operate) returns an error, with its text.
    #[track_caller]
    pub fn append<V: Into<SharedValue>>(&mut self, key: impl AsRef<str>, items: impl IntoIterator<Item = V>) {
        self.operate(key, Operation::append(items));
    }

    /// Adds items to the list under a key that are not in it yet, see [`Operation::union`].
    ///
    /// # Panics
    ///
    /// Where [`try_operate`](Self::try_operate) returns an error, with its text.
    #[track_caller]
    pub fn union<V: Into<SharedValue>>(&mut self, key: impl AsRef<str>, items: impl IntoIterator<Item = V>) {
        self.operate(key, Operation::union(items));
    }

    /// Operates on a key, after what the delta does to it already.
    ///
    /// # Panics
    ///
    /// Where [`try_operate`](Self::try_operate) returns an error, with its text.
    #[track_caller]
    pub fn operate(&mut self, key: impl AsRef<str>, operations: impl Into<Operations>) {
        or_panic(self.try_operate(key, operations));
    }

    /// Operates on a key, after what the delta does to it already.
    ///
    /// # Errors
    ///
    /// [`StateError::Operation`] if the delta sets the key to a value that the operation cannot be
    /// applied to.
    pub fn try_operate(
        &mut self,
        key: impl AsRef<str>,
        operations: impl Into<Operations>,
    ) -> Result<(), StateError> {
        self.compose(key.as_ref().into(), &Change::Operate(operations.into()))
    }

    /// Adds the changes of another delta, each after what this one does to its key.
    ///
    /// # Errors
    ///
    /// [`StateError::Operation`] if this delta sets a key to a value that an operation of the other
    /// cannot be applied to; this one is as it was then.
    pub fn merge(&mut self, later: &Self) -> Result<(), StateError> {
        let mut merged = self.clone();
        for (key, change) in later.entries() {
            merged.compose(key.clone(), change)?;
        }
        *self = merged;
        Ok(())
    }

    /// The delta with its operations replaced by what they come to: only sets and removals are
    /// left.
    ///
    /// # Errors
    ///
    /// [`StateError::Operation`] names the first key whose operation cannot be applied to its
    /// value.
    pub fn resolved(&self, value_of: impl Fn(&str) -> Option<SharedValue>) -> Result<Self, StateError> {
        let mut resolved = self.clone();
        for (key, operations) in self.operations() {
            let value = operations.apply(value_of(key).as_ref());
            let value = value.map_err(|source| StateError::operation(key, source))?;
            resolved.set(key, value);
        }
        Ok(resolved)
    }

    /// A delta of these changes; of several changes of a key the last one counts.
    pub fn from_changes(changes: impl IntoIterator<Item = (Arc<str>, Change)>) -> Self {
        changes.into_iter().collect::<Changes>().into()
    }

    /// The same keys with other changes, the first error instead.
    ///
    /// # Errors
    ///
    /// That of `change`.
    pub fn try_map<E>(
        &self,
        mut change: impl FnMut(&Arc<str>, &Change) -> Result<Change, E>,
    ) -> Result<Self, E> {
        let mut changes = Changes::default();
        for (key, before) in self.entries() {
            changes.push(key.clone(), change(key, before)?);
        }
        Ok(changes.into())
    }

    /// The operations alone, without the keys that are set or removed.
    #[must_use]
    pub fn only_operations(&self) -> Self {
        let is_operation = |(_, change): &(&Arc<str>, &Change)| matches!(change, Change::Operate(_));
        match self.entries().all(|entry| is_operation(&entry)) {
            true => self.clone(),
            false => {
                let entries = self.entries().filter(is_operation);
                Self::from_changes(entries.map(|(key, change)| (key.clone(), change.clone())))
            }
        }
    }

    /// Keeps the changes of the keys that `keep` wants.
    pub fn retain(&mut self, keep: impl FnMut(&str) -> bool) {
        if let Some(changes) = &mut self.changes {
            Arc::make_mut(changes).retain(keep);
        }
    }

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

    /// Makes a change after what the delta does to the key already.
    pub(crate) fn compose(&mut self, key: Key, change: &Change) -> Result<(), StateError> {
        let both = match self.get(&key) {
            Some(earlier) => earlier.then(change).map_err(|source| StateError::operation(&key, source))?,
            None => change.clone(),
        };
        self.insert(key, both);
        Ok(())
    }

    pub(crate) fn insert(&mut self, key: Key, change: Change) -> Option<Change> {
        Arc::make_mut(self.changes.get_or_insert_default()).insert(key, change)
    }

    pub(crate) fn forget(&mut self, key: &str) -> Option<Change> {
        Arc::make_mut(self.changes.as_mut()?).remove(key)
    }

    /// The changes from `start` on, in key order.
    pub(crate) fn starting_at(&self, start: &str) -> impl Iterator<Item = (&Key, &Change)> + use<'_> {
        self.changes.as_ref().map(|changes| changes.starting_at(start)).into_iter().flatten()
    }

    /// The changes in key order, with the keys as the delta shares them: cloning one copies no
    /// text.
    pub fn entries(&self) -> impl Iterator<Item = (&Arc<str>, &Change)> {
        self.changes.as_deref().map_or_else(Iter::default, Changes::iter)
    }
}

impl From<Changes> for Delta {
    fn from(changes: Changes) -> Self {
        Self { changes: (changes.len() > 0).then(|| Arc::new(changes)) }
    }
}

/// By what changes: a delta that was emptied equals one that was never filled.
impl PartialEq for Delta {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.entries().eq(other.entries())
    }
}

impl Eq for Delta {}

impl fmt::Debug for Delta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.entries()).finish()
    }
}

impl<K: AsRef<str>, V: Into<SharedValue>> FromIterator<(K, V)> for Delta {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let changes: Changes = entries
            .into_iter()
            .map(|(key, value)| (Key::from(key.as_ref()), Change::Set(value.into())))
            .collect();
        changes.into()
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

/// An object as `json!` makes it: each field is a key that is set.
///
/// # Panics
///
/// If the value is not an object.
impl From<Value> for Delta {
    #[track_caller]
    fn from(value: Value) -> Self {
        match value {
            Value::Object(fields) => fields.into(),
            other => panic!("changes of state are an object, not {}", crate::value::type_of(&other)),
        }
    }
}

impl From<&Self> for Delta {
    fn from(delta: &Self) -> Self {
        delta.clone()
    }
}

impl From<BTreeMap<String, SharedValue>> for Delta {
    fn from(map: BTreeMap<String, SharedValue>) -> Self {
        map.into_iter().collect()
    }
}

/// `{"set": {key: value}, "remove": [keys], "ops": {key: operations}}`; parts that are empty are
/// left out.
impl Serialize for Delta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if self.values().next().is_some() {
            map.serialize_entry("set", &SetPart(self))?;
        }
        if self.removed().next().is_some() {
            map.serialize_entry("remove", &RemovePart(self))?;
        }
        if self.has_operations() {
            map.serialize_entry("ops", &OperationPart(self))?;
        }
        map.end()
    }
}

struct SetPart<'a>(&'a Delta);

impl Serialize for SetPart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.values())
    }
}

struct RemovePart<'a>(&'a Delta);

impl Serialize for RemovePart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.removed())
    }
}

struct OperationPart<'a>(&'a Delta);

impl Serialize for OperationPart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.operations())
    }
}

/// Reads what [`Serialize`] writes. A key in two of the parts is an error.
impl<'de> Deserialize<'de> for Delta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Parts {
            #[serde(default)]
            set: BTreeMap<String, SharedValue>,
            #[serde(default)]
            remove: Vec<String>,
            #[serde(default)]
            ops: BTreeMap<String, Operations>,
        }
        let Parts { set, remove, ops } = Parts::deserialize(deserializer)?;
        let mut delta = Self::from(set);
        let changes = remove.into_iter().map(|key| (key, Change::Remove));
        for (key, change) in changes.chain(ops.into_iter().map(|(key, ops)| (key, Change::Operate(ops)))) {
            if delta.insert(key.as_str().into(), change).is_some() {
                return Err(serde::de::Error::custom(format!("the key {key:?} is changed twice")));
            }
        }
        Ok(delta)
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
