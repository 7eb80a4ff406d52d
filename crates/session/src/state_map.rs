//! The state of one scope.

use std::collections::BTreeMap;

use sessile_state::{Change, Delta, SharedValue};

/// Keys without prefix, and their values.
pub type StateMap = BTreeMap<String, SharedValue>;

/// Applies the results of a commit to a scope's state: keys that are set, and keys that are
/// removed.
///
/// # Panics
///
/// If the delta holds an operation, which committed events never do.
pub fn apply(state: &mut StateMap, results: &Delta) {
    for (key, change) in results.iter() {
        match (change, state.get_mut(key)) {
            (Change::Set(value), Some(held)) => *held = value.clone(),
            (Change::Set(value), None) => drop(state.insert(key.to_owned(), value.clone())),
            (Change::Remove, _) => drop(state.remove(key)),
            (Change::Operate(_), _) => {
                panic!("the operation on {key:?} was not computed before it was applied")
            }
        }
    }
}
