use std::collections::BTreeMap;
use std::future::Future;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use sessile_state::{SharedValue, State};

/// Watches one key, and runs an action when it changes in a certain way.
///
/// ```
/// use sessile_live::KeyWatch;
///
/// let watch = KeyWatch::on("failed_attempts").crossed_above(3.0).then(|change| async move {
///     change.state.set("escalate", true);
/// });
/// ```
pub struct KeyWatch {
    key: String,
    test: Test,
    concurrent: bool,
    action: Action,
}

type Test = Box<dyn Fn(Option<&Value>, Option<&Value>) -> bool + Send + Sync>;
type Action = Box<dyn Fn(WatchedChange) -> BoxFuture<'static, ()> + Send + Sync>;

/// The change of a watched key since the last check.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WatchedChange {
    /// The key.
    pub key: String,
    /// The value before; `None` if it was absent.
    pub old: Option<SharedValue>,
    /// The value now; `None` if it is absent.
    pub new: Option<SharedValue>,
    /// The session's state.
    pub state: State,
}

impl KeyWatch {
    /// Watches this key: every change, unless a condition is added.
    pub fn on(key: impl Into<String>) -> WatchOn {
        WatchOn { key: key.into(), test: Box::new(|_, _| true), concurrent: false }
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }
}

/// A watch without an action; [`then`](Self::then) adds it.
pub struct WatchOn {
    key: String,
    test: Test,
    concurrent: bool,
}

impl WatchOn {
    /// Only when the value becomes this one.
    #[must_use]
    pub fn changed_to(self, value: impl Into<Value>) -> Self {
        let value = value.into();
        self.when(move |_, new| new == Some(&value))
    }

    /// Only when the value was this one before.
    #[must_use]
    pub fn changed_from(self, value: impl Into<Value>) -> Self {
        let value = value.into();
        self.when(move |old, _| old == Some(&value))
    }

    /// Only when a number rises from below the threshold to it or above.
    #[must_use]
    pub fn crossed_above(self, threshold: f64) -> Self {
        self.when(move |old, new| {
            number(old).is_some_and(|old| old < threshold) && number(new).is_some_and(|new| new >= threshold)
        })
    }

    /// Only when a number falls below the threshold.
    #[must_use]
    pub fn crossed_below(self, threshold: f64) -> Self {
        self.when(move |old, new| {
            number(old).is_some_and(|old| old >= threshold) && number(new).is_some_and(|new| new < threshold)
        })
    }

    /// Only when the value becomes `true`.
    #[must_use]
    pub fn became_true(self) -> Self {
        self.when(|old, new| old != Some(&Value::Bool(true)) && new == Some(&Value::Bool(true)))
    }

    /// Only when the value was `true` before.
    #[must_use]
    pub fn became_false(self) -> Self {
        self.when(|old, new| old == Some(&Value::Bool(true)) && new != Some(&Value::Bool(true)))
    }

    /// Only when this returns `true` for the old and the new value; `None` is an absent key.
    #[must_use]
    pub fn when(
        mut self,
        test: impl Fn(Option<&Value>, Option<&Value>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.test = Box::new(test);
        self
    }

    /// Does not wait for the action. By default the session waits, so that the guards of phases see
    /// its changes.
    #[must_use]
    pub fn concurrent(mut self) -> Self {
        self.concurrent = true;
        self
    }

    /// The action to run.
    pub fn then<Fut: Future<Output = ()> + Send + 'static>(
        self,
        action: impl Fn(WatchedChange) -> Fut + Send + Sync + 'static,
    ) -> KeyWatch {
        let action: Action = Box::new(move |change| action(change).boxed());
        KeyWatch { key: self.key, test: self.test, concurrent: self.concurrent, action }
    }
}

impl std::fmt::Debug for KeyWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyWatch").field("key", &self.key).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for WatchOn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchOn").field("key", &self.key).finish_non_exhaustive()
    }
}

fn number(value: Option<&Value>) -> Option<f64> {
    value.and_then(Value::as_f64)
}

/// The watches of a session, and the values of their keys at the last check.
pub(crate) struct Watches {
    watches: Vec<KeyWatch>,
    /// The watched keys, sorted and unique: differences come in the same order.
    keys: Vec<String>,
    seen: BTreeMap<String, SharedValue>,
}

/// The actions to run, in the order of registration.
#[derive(Default)]
pub(crate) struct Triggered {
    /// Actions that the session waits for, one after the other.
    pub(crate) blocking: Vec<BoxFuture<'static, ()>>,
    /// Actions to spawn.
    pub(crate) concurrent: Vec<BoxFuture<'static, ()>>,
}

impl Watches {
    /// Watches that compare with the state as it is now.
    pub(crate) fn new(watches: Vec<KeyWatch>, state: &State) -> Self {
        let mut keys: Vec<_> = watches.iter().map(|watch| watch.key.clone()).collect();
        keys.sort();
        keys.dedup();
        let mut watches = Self { watches, keys, seen: BTreeMap::new() };
        watches.seen = state.snapshot_values(&watches.names());
        watches
    }

    /// Compares the committed state with the last check. Only the net change counts: a key that is
    /// back at its old value has not changed.
    pub(crate) fn look(&mut self, state: &State) -> Triggered {
        let mut triggered = Triggered::default();
        if self.watches.is_empty() {
            return triggered;
        }
        let changes = state.diff_values(&self.seen, &self.names());
        if changes.is_empty() {
            return triggered;
        }
        for watch in &self.watches {
            let Ok(at) = changes.binary_search_by(|(key, ..)| key.as_str().cmp(&watch.key)) else { continue };
            let (key, old, new) = &changes[at];
            if !(watch.test)(old.as_deref(), new.as_deref()) {
                continue;
            }
            let change =
                WatchedChange { key: key.clone(), old: old.clone(), new: new.clone(), state: state.clone() };
            let action = (watch.action)(change);
            if watch.concurrent {
                triggered.concurrent.push(action);
            } else {
                triggered.blocking.push(action);
            }
        }
        for (key, _, new) in changes {
            match new {
                Some(value) => drop(self.seen.insert(key, value)),
                None => drop(self.seen.remove(&key)),
            }
        }
        triggered
    }

    fn names(&self) -> Vec<&str> {
        self.keys.iter().map(String::as_str).collect()
    }
}
