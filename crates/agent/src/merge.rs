//! Changes that were made side by side become one, in a fixed order.

use std::collections::BTreeMap;

use serde_json::{Number, Value};
use sessile_state::{Change, Delta, SharedValue, Snapshot};

/// How writes of several tools or branches to one key in one step become one value.
///
/// Each writer sees the value from before the step, and sets its own. The writers' order is that of
/// the calls or branches, not that in which they finished. Operations such as `add` need no reducer: those of all
/// writers are kept, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reducer {
    /// The last writer's value. Keys without a reducer do this too, and log a warning if the values differ.
    #[default]
    Last,
    /// Lists: the items that each writer added, after each other.
    Append,
    /// Numbers: what each writer added, summed up.
    Add,
    /// Lists: every item once. Objects: every field, the last writer's value for those that several have.
    Union,
}

/// The keys that have a reducer.
pub(crate) type Reducers = BTreeMap<String, Reducer>;

/// What one writer changed.
pub(crate) struct Written<'a> {
    /// The tool or agent, for warnings about conflicts.
    pub(crate) writer: &'a str,
    pub(crate) delta: Delta,
}

/// Joins what writers changed side by side on the same state, in their order. Operations of several writers are all
/// kept, one after the other; a value that is set replaces the operations before it.
pub(crate) fn merge(before: &Snapshot, writers: &[Written<'_>], reducers: &Reducers) -> Delta {
    let mut merged = Delta::new();
    let mut last_writer: BTreeMap<&str, &str> = BTreeMap::new();
    for Written { writer, delta } in writers {
        for (key, change) in delta.iter() {
            let next = match (merged.get(key), reducers.get(key)) {
                (None, _) => change.clone(),
                // Operations line up after each other, whatever the key's reducer.
                (Some(earlier), _) if matches!(change, Change::Operate(_)) => {
                    earlier.then(change).unwrap_or_else(|error| {
                        conflict(key, last_writer[key], writer, &format!("the later cannot follow: {error}"));
                        change.clone()
                    })
                }
                (Some(earlier), Some(reducer)) => {
                    reducer.join(before.get_raw(key).as_ref(), earlier, change).unwrap_or_else(|| {
                        conflict(key, last_writer[key], writer, "its values do not fit its reducer");
                        change.clone()
                    })
                }
                (Some(earlier), None) => {
                    if earlier != change {
                        conflict(key, last_writer[key], writer, "it has no reducer");
                    }
                    change.clone()
                }
            };
            replace(&mut merged, key, next);
            last_writer.insert(key, writer);
        }
    }
    merged
}

/// Makes a change in the place of what the delta does to the key.
fn replace(delta: &mut Delta, key: &str, change: Change) {
    match change {
        Change::Set(value) => delta.set(key, value),
        Change::Remove => delta.remove(key),
        Change::Operate(operations) => {
            delta.retain(|other| other != key);
            delta.operate(key, operations);
        }
    }
}

fn conflict(key: &str, earlier: &str, later: &str, why: &str) {
    tracing::warn!(
        key,
        earlier,
        later,
        "`{earlier}` and `{later}` wrote different values to the key `{key}` in one step, and {why}; \
         that of `{later}` counts"
    );
}

impl Reducer {
    /// The two changes as one, or `None` if they are not of the reducer's kind.
    fn join(self, before: Option<&SharedValue>, earlier: &Change, later: &Change) -> Option<Change> {
        if self == Self::Last {
            return Some(later.clone());
        }
        let (Change::Set(earlier), Change::Set(later)) = (earlier, later) else { return None };
        let joined = match self {
            Self::Last => later.clone().into_value(),
            Self::Append => {
                let mut items = earlier.as_array()?.clone();
                items.extend(added(before, later.as_array()?).iter().cloned());
                Value::Array(items)
            }
            Self::Add => add(before.map(|value| &**value), earlier, later)?,
            Self::Union => union(earlier, later)?,
        };
        Some(Change::Set(joined.into()))
    }
}

/// The items that a writer added to the list that was there; all of them, if it made a new list.
fn added<'a>(before: Option<&SharedValue>, items: &'a [Value]) -> &'a [Value] {
    let before = before.and_then(|before| before.as_array()).map_or(&[][..], Vec::as_slice);
    items.strip_prefix(before).unwrap_or(items)
}

fn add(before: Option<&Value>, earlier: &Value, later: &Value) -> Option<Value> {
    let before = before.cloned().unwrap_or_else(|| Value::from(0));
    let whole = |value: &Value| value.as_i64();
    if let (Some(before), Some(earlier), Some(later)) = (whole(&before), whole(earlier), whole(later)) {
        return earlier.checked_add(later.checked_sub(before)?).map(Value::from);
    }
    let sum = earlier.as_f64()? + (later.as_f64()? - before.as_f64()?);
    Number::from_f64(sum).map(Value::Number)
}

fn union(earlier: &Value, later: &Value) -> Option<Value> {
    match (earlier, later) {
        (Value::Array(earlier), Value::Array(later)) => {
            let mut items: Vec<Value> = Vec::with_capacity(earlier.len() + later.len());
            for item in earlier.iter().chain(later) {
                if !items.contains(item) {
                    items.push(item.clone());
                }
            }
            Some(Value::Array(items))
        }
        (Value::Object(earlier), Value::Object(later)) => {
            let mut fields = earlier.clone();
            fields.extend(later.iter().map(|(name, value)| (name.clone(), value.clone())));
            Some(Value::Object(fields))
        }
        _ => None,
    }
}
