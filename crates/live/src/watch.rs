use std::collections::BTreeMap;
use std::future::Future;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use sessile_state::{SharedValue, State};

/// Looks at one key, and acts when it changes in a certain way.
///
/// ```
/// use sessile_live::Watch;
///
/// let watch = Watch::on("failed_attempts").crossed_above(3.0).then(|change| async move {
///     change.state.set("escalate", true);
/// });
/// ```
pub struct Watch {
    key: String,
    test: Test,
    concurrent: bool,
    action: Action,
}

type Test = Box<dyn Fn(Option<&Value>, Option<&Value>) -> bool + Send + Sync>;
type Action = Box<dyn Fn(Change) -> BoxFuture<'static, ()> + Send + Sync>;

/// What became of a watched key since the last look.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Change {
    /// The key.
    pub key: String,
    /// What it held, if anything.
    pub old: Option<SharedValue>,
    /// What it holds, if anything.
    pub new: Option<SharedValue>,
    /// The session's state.
    pub state: State,
}

impl Watch {
    /// Watches this key; every change counts, unless a condition is given.
    pub fn on(key: impl Into<String>) -> WatchOn {
        WatchOn { key: key.into(), test: Box::new(|_, _| true), concurrent: false }
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }
}

/// A watch that does not know yet what to do.
pub struct WatchOn {
    key: String,
    test: Test,
    concurrent: bool,
}

impl WatchOn {
    /// When it becomes this value.
    #[must_use]
    pub fn changed_to(self, value: impl Into<Value>) -> Self {
        let value = value.into();
        self.when(move |_, new| new == Some(&value))
    }

    /// When it was this value and is another.
    #[must_use]
    pub fn changed_from(self, value: impl Into<Value>) -> Self {
        let value = value.into();
        self.when(move |old, _| old == Some(&value))
    }

    /// When a number that was below the threshold no longer is.
    #[must_use]
    pub fn crossed_above(self, threshold: f64) -> Self {
        self.when(move |old, new| {
            number(old).is_some_and(|old| old < threshold) && number(new).is_some_and(|new| new >= threshold)
        })
    }

    /// When a number that was not below the threshold now is.
    #[must_use]
    pub fn crossed_below(self, threshold: f64) -> Self {
        self.when(move |old, new| {
            number(old).is_some_and(|old| old >= threshold) && number(new).is_some_and(|new| new < threshold)
        })
    }

    /// When it is true and was not.
    #[must_use]
    pub fn became_true(self) -> Self {
        self.when(|old, new| old != Some(&Value::Bool(true)) && new == Some(&Value::Bool(true)))
    }

    /// When it was true and is not.
    #[must_use]
    pub fn became_false(self) -> Self {
        self.when(|old, new| old == Some(&Value::Bool(true)) && new != Some(&Value::Bool(true)))
    }

    /// When this holds of the old and the new value; `None` is absence.
    #[must_use]
    pub fn when(
        mut self,
        test: impl Fn(Option<&Value>, Option<&Value>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.test = Box::new(test);
        self
    }

    /// Lets the session go on while the action runs. Otherwise guards of phases see what it did.
    #[must_use]
    pub fn concurrent(mut self) -> Self {
        self.concurrent = true;
        self
    }

    /// What to do.
    pub fn then<Fut: Future<Output = ()> + Send + 'static>(
        self,
        action: impl Fn(Change) -> Fut + Send + Sync + 'static,
    ) -> Watch {
        let action: Action = Box::new(move |change| action(change).boxed());
        Watch { key: self.key, test: self.test, concurrent: self.concurrent, action }
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("key", &self.key).finish_non_exhaustive()
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

/// The watches of a session, and what their keys held at the last look.
pub(crate) struct Watches {
    watches: Vec<Watch>,
    /// The watched keys, each once, in order; so are the differences that are found.
    keys: Vec<String>,
    seen: BTreeMap<String, SharedValue>,
}

/// What a look found, in the order of registration.
#[derive(Default)]
pub(crate) struct Triggered {
    /// To be awaited, one after the other.
    pub(crate) blocking: Vec<BoxFuture<'static, ()>>,
    /// To be started.
    pub(crate) concurrent: Vec<BoxFuture<'static, ()>>,
}

impl Watches {
    /// Watches that know the state as it is now.
    pub(crate) fn new(watches: Vec<Watch>, state: &State) -> Self {
        let mut keys: Vec<_> = watches.iter().map(|watch| watch.key.clone()).collect();
        keys.sort();
        keys.dedup();
        let mut watches = Self { watches, keys, seen: BTreeMap::new() };
        watches.seen = state.snapshot_values(&watches.names());
        watches
    }

    /// Compares the committed state with the last look. The net change counts: a key that is back
    /// at its old value has not changed.
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
                Change { key: key.clone(), old: old.clone(), new: new.clone(), state: state.clone() };
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
