//! Parts of a state, and how they changed.

use std::collections::BTreeMap;

use crate::key::{derived_name, joined};
use crate::state::State;
use crate::value::SharedValue;

/// A key whose value is no longer what it was: the key, the old value, the new value. Absence is
/// `None`; a null is a value.
pub type Difference = (String, Option<SharedValue>, Option<SharedValue>);

/// Parts and comparisons.
impl State {
    /// The values of some keys at one moment, for [`diff_values`](Self::diff_values) later.
    /// Absent keys are left out.
    pub fn snapshot_values(&self, keys: &[&str]) -> BTreeMap<String, SharedValue> {
        let now = self.snapshot();
        keys.iter().filter_map(|&key| Some((key.to_owned(), now.get_raw(key)?))).collect()
    }

    /// Which of `keys` changed since a snapshot of their values, in the order of `keys`.
    ///
    /// ```
    /// use serde_json::json;
    /// use sessile_state::State;
    ///
    /// let state = State::new();
    /// state.set("score", 1);
    /// let before = state.snapshot_values(&["score", "mood"]);
    ///
    /// state.set("score", 99);
    /// let changed = state.diff_values(&before, &["score", "mood"]);
    /// assert_eq!(changed, [("score".to_owned(), Some(json!(1).into()), Some(json!(99).into()))]);
    /// ```
    pub fn diff_values(&self, before: &BTreeMap<String, SharedValue>, keys: &[&str]) -> Vec<Difference> {
        let now = self.snapshot();
        keys.iter()
            .map(|&key| (key.to_owned(), before.get(key).cloned(), now.get_raw(key)))
            .filter(|(_, old, new)| old != new)
            .collect()
    }

    /// A new, independent state with some of the keys. Absent keys are left out; a computed
    /// variable that was asked for by its bare name is picked as `derived:`, so that it stays one.
    pub fn pick(&self, keys: &[&str]) -> State {
        let now = self.snapshot();
        keys.iter()
            .filter_map(|&key| match now.find(key) {
                Some(value) => Some((key.to_owned(), value)),
                None => joined(derived_name(key)?, |derived| Some((derived.to_owned(), now.find(derived)?))),
            })
            .collect()
    }
}
