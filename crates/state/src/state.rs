use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::base::Base;
use crate::convert::read;
use crate::error::StateError;
use crate::key::{derived_name, joined};
use crate::node::Node;
use crate::reducer::Reducers;
use crate::schema::StateSchema;
use crate::snapshot::{Index, Snapshot};
use crate::value::{SharedValue, Slot};

/// What an agent knows: JSON values under text keys.
///
/// A `State` is a handle: clones of it are the same state, and any number of tasks and threads may
/// use them at once. A key's prefix says how long it lives and which sessions share it, see
/// [`Scope`](crate::Scope).
///
/// - Reads: [`get`](Self::get), [`try_get`](Self::try_get), [`get_raw`](Self::get_raw),
///   [`with`](Self::with), [`contains`](Self::contains), [`keys`](Self::keys),
///   [`to_map`](Self::to_map), [`snapshot`](Self::snapshot)
/// - Writes: [`set`](Self::set), [`set_default`](Self::set_default), [`update`](Self::update),
///   [`modify`](Self::modify), [`remove`](Self::remove), [`rename`](Self::rename),
///   [`merge`](Self::merge), [`clear_prefix`](Self::clear_prefix), [`apply`](Self::apply)
/// - Scopes: [`app`](Self::app), [`user`](Self::user), [`temp`](Self::temp), …
/// - Typed keys: [`get_key`](Self::get_key), [`set_key`](Self::set_key), …
/// - Delta views: [`with_delta_tracking`](Self::with_delta_tracking),
///   [`delta`](Self::delta), [`commit`](Self::commit), [`rollback`](Self::rollback)
///
/// Reads of a key without a colon fall back to the computed variable of that name: `risk` to
/// `derived:risk`. Writes never do.
///
/// Writes come in two forms. `set`, `modify` and so on panic on a programming error (a value
/// without JSON form, a write that would deadlock); `try_set`, `try_modify` and so on return it as
/// a [`StateError`]. In both forms a refused write changes nothing.
///
/// ```
/// use sessile_state::State;
///
/// let state = State::new();
/// state.set("customer_name", "Alice");
/// state.user().set("language", "en");
/// let visits = state.modify("visits", 0u32, |n| n + 1);
///
/// assert_eq!(state.get::<String>("customer_name").as_deref(), Some("Alice"));
/// assert_eq!(state.keys(), ["customer_name", "user:language", "visits"]);
/// assert_eq!(visits, 1);
/// ```
#[derive(Clone)]
pub struct State {
    pub(crate) node: Arc<Node>,
    /// What this handle, and the views made from it, may write.
    pub(crate) schema: Option<Arc<StateSchema>>,
    /// The keys that this handle, and the views made from it, change by operations when they are
    /// set.
    pub(crate) reducers: Option<Arc<Reducers>>,
    /// Whether reads through this handle are not tracked.
    pub(crate) is_quiet: bool,
}

impl State {
    /// The prefix of keys that all users and sessions of an application share.
    pub const APP_PREFIX: &str = crate::Scope::App.prefix();
    /// The prefix of keys that all sessions of a user share.
    pub const USER_PREFIX: &str = crate::Scope::User.prefix();
    /// The prefix of keys that last for one invocation and are never stored.
    pub const TEMP_PREFIX: &str = crate::Scope::Temp.prefix();

    /// An empty state.
    pub fn new() -> Self {
        Self { node: Arc::new(Node::Base(Base::new())), schema: None, reducers: None, is_quiet: false }
    }

    /// This state, with every write through the returned handle checked against `schema`.
    ///
    /// What is stored already is not checked; [`StateSchema::check_all`] does that.
    pub fn with_schema(&self, schema: impl Into<Arc<StateSchema>>) -> Self {
        Self { schema: Some(schema.into()), ..self.clone() }
    }

    /// The value of a key, if there is one and it reads as a `T`.
    ///
    /// To distinguish an absent key from a value of another type, use [`try_get`](Self::try_get).
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        SharedValue::from(self.slot(key)?).read().ok()
    }

    /// The value of a key as a `T`, or `None` if the key is absent.
    ///
    /// # Errors
    ///
    /// [`StateError::WrongType`] if there is a value and it does not read as a `T`.
    pub fn try_get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, StateError> {
        self.slot(key).map(|slot| read(key, slot)).transpose()
    }

    /// The value of a key as it is stored. Nothing is copied, however large it is.
    pub fn get_raw(&self, key: &str) -> Option<SharedValue> {
        self.slot(key).map(SharedValue::from)
    }

    /// Reads a value in place. No lock is held meanwhile, so `read` may use the state freely.
    ///
    /// ```
    /// let state = sessile_state::State::new();
    /// state.set("customer_name", "Alice");
    ///
    /// let len = state.with("customer_name", |v| v.as_str().unwrap().len());
    /// assert_eq!(len, Some(5));
    /// ```
    pub fn with<R>(&self, key: &str, read: impl FnOnce(&Value) -> R) -> Option<R> {
        self.slot(key).map(|slot| read(&SharedValue::from(slot)))
    }

    /// Whether [`get_raw`](Self::get_raw) finds something; a null is something.
    pub fn contains(&self, key: &str) -> bool {
        self.slot(key).is_some()
    }

    /// All keys, in key order.
    pub fn keys(&self) -> Vec<String> {
        self.index().keys("").into_iter().map(|key| (**key).to_owned()).collect()
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.index().len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys and values at one moment, copied into a JSON object in key order.
    pub fn to_map(&self) -> Map<String, Value> {
        self.snapshot().to_map()
    }

    /// The whole state at one moment, without copying it.
    pub fn snapshot(&self) -> Snapshot {
        self.node.note_listing();
        self.node.snapshot()
    }

    /// The keys at one moment, in order.
    pub(crate) fn index(&self) -> Index {
        self.node.note_listing();
        self.node.index()
    }

    /// The value of a key, or of the computed variable that it falls back to.
    fn slot(&self, key: &str) -> Option<Slot> {
        if self.is_quiet {
            let derived = || joined(derived_name(key)?, |derived| self.node.peek(derived));
            return self.node.peek(key).or_else(derived);
        }
        match self.node.get(key) {
            Some(slot) => Some(slot),
            None => joined(derived_name(key)?, |derived| self.node.get_either(key, derived)),
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

/// Shows how many keys and pending changes there are, without values, which may be secret.
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("keys", &self.len()).field("pending", &self.delta().len()).finish()
    }
}

impl From<Map<String, Value>> for State {
    fn from(map: Map<String, Value>) -> Self {
        map.into_iter().collect()
    }
}

/// Collects keys and JSON values; of equal keys the last one counts.
impl<K: AsRef<str>, V: Into<SharedValue>> FromIterator<(K, V)> for State {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let state = Self::new();
        state.apply(&entries.into_iter().collect());
        state
    }
}

impl Serialize for State {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.snapshot().iter())
    }
}

impl From<&State> for Snapshot {
    fn from(state: &State) -> Self {
        state.snapshot()
    }
}

impl From<&Snapshot> for Snapshot {
    fn from(snapshot: &Snapshot) -> Self {
        snapshot.clone()
    }
}

impl From<&Map<String, Value>> for Snapshot {
    fn from(map: &Map<String, Value>) -> Self {
        State::from(map.clone()).snapshot()
    }
}
