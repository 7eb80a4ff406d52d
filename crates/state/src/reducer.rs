//! Keys whose changes are operations, however they are written.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::StateError;
use crate::number;
use crate::operation::Operation;
use crate::same::same_value;
use crate::value::SharedValue;

/// How a key is changed when several writers set it at the same time.
///
/// Through a view of a state with reducers ([`State::with_reducers`](crate::State::with_reducers)),
/// `set` and `modify` of such a key become the operation that leads from the value that the view
/// shows to the new one: with [`Add`](Self::Add), `set("n", 6)` over a 5 adds 1. The operation is
/// applied to what is stored when it is committed, so concurrent writers in other sessions and
/// processes lose no update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reducer {
    /// None: the last writer's value counts, as for keys without a reducer.
    #[default]
    Last,
    /// Lists: the items that were added at the end are appended.
    Append,
    /// Numbers: the difference is added. Of floats it is rounded as every subtraction of floats.
    Add,
    /// Lists: the items that were not there before are added. Objects: the fields that differ are
    /// set.
    Union,
}

/// The keys that have a reducer, prefixes included.
pub type Reducers = BTreeMap<String, Reducer>;

/// Reads the names that files use: `last`, `append`, `add` and `union`.
impl std::str::FromStr for Reducer {
    type Err = UnknownReducer;

    fn from_str(name: &str) -> Result<Self, UnknownReducer> {
        match name {
            "last" => Ok(Self::Last),
            "append" => Ok(Self::Append),
            "add" => Ok(Self::Add),
            "union" => Ok(Self::Union),
            other => Err(UnknownReducer(other.to_owned())),
        }
    }
}

/// A name that no reducer has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no reducer {0:?}; reducers are add, append, union and last")]
pub struct UnknownReducer(String);

impl Reducer {
    /// Its name in messages: `Last`, `Append`, `Add` or `Union`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Last => "Last",
            Self::Append => "Append",
            Self::Add => "Add",
            Self::Union => "Union",
        }
    }

    /// Whether it makes operations: all do but [`Last`](Self::Last).
    pub fn is_operation(self) -> bool {
        self != Self::Last
    }

    /// The operation that leads from a value of a key to another; `None` if they are the same.
    ///
    /// # Errors
    ///
    /// [`StateError::Reducer`] if the reducer has no such operation.
    pub fn difference(
        self,
        key: &str,
        from: Option<&SharedValue>,
        to: &SharedValue,
    ) -> Result<Option<Operation>, StateError> {
        let refuse = |change| Err(StateError::reducer(key, self.name(), change));
        match self {
            Self::Last => refuse("anything; it is the reducer of plain writes"),
            Self::Add => match sum(from, to) {
                Err(change) => refuse(change),
                Ok(operation) => Ok(operation),
            },
            Self::Append => match appended(from, to) {
                Err(change) => refuse(change),
                Ok(operation) => Ok(operation),
            },
            Self::Union => match united(from, to) {
                Err(change) => refuse(change),
                Ok(operation) => Ok(operation),
            },
        }
    }
}

/// An operation, or none if nothing changes; the error says what the change would have been.
type Difference = Result<Option<Operation>, &'static str>;

fn sum(from: Option<&SharedValue>, to: &SharedValue) -> Difference {
    let zero = serde_json::Number::from(0);
    let from = match from.map(|value| &**value) {
        None => &zero,
        Some(Value::Number(from)) => from,
        Some(_) => return Err("a number in the place of another type"),
    };
    let Value::Number(to) = &**to else { return Err("a value that is not a number") };
    let by = number::difference(from, to).ok_or("a difference that is not a 64-bit number")?;
    let is_zero = number::compare(&by, &zero).is_eq();
    Ok((!is_zero).then(|| Operation::add(by)))
}

fn appended(from: Option<&SharedValue>, to: &SharedValue) -> Difference {
    let (from, to) = (list(from)?, list(Some(to))?);
    let is_prefix = from.len() <= to.len() && from.iter().zip(&to).all(|(one, other)| same_value(one, other));
    match is_prefix {
        false => Err("anything but new items at the end of the list"),
        true if from.len() == to.len() => Ok(None),
        true => Ok(Some(Operation::append(to.into_iter().skip(from.len())))),
    }
}

fn united(from: Option<&SharedValue>, to: &SharedValue) -> Difference {
    if let Value::Object(_) = &**to {
        let before = match from.map(|value| (value, &**value)) {
            None => Vec::new(),
            Some((value, Value::Object(_))) => value.to_fields(),
            Some(_) => return Err("an object in the place of another type"),
        };
        let after = to.to_fields();
        let held = |name: &String, fields: &[(String, SharedValue)]| {
            fields.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
        };
        if before.iter().any(|(name, _)| held(name, &after).is_none()) {
            return Err("the removal of a field");
        }
        let is_new = |(name, value): &(String, SharedValue)| {
            held(name, &before).is_none_or(|before| !same_value(&before, value))
        };
        let new: Vec<_> = after.into_iter().filter(is_new).collect();
        // An empty object is not the same as an absent one, so it is made if there was none.
        return Ok((from.is_none() || !new.is_empty()).then(|| Operation::union_fields(new)));
    }
    let (before, after) = (list(from)?, list(Some(to))?);
    let holds = |items: &[SharedValue], item: &SharedValue| items.iter().any(|other| same_value(other, item));
    if before.iter().any(|item| !holds(&after, item)) {
        return Err("the removal of an item");
    }
    let new: Vec<_> = after.into_iter().filter(|item| !holds(&before, item)).collect();
    Ok((from.is_none() || !new.is_empty()).then(|| Operation::union(new)))
}

fn list(value: Option<&SharedValue>) -> Result<Vec<SharedValue>, &'static str> {
    match value.map(|value| (value, &**value)) {
        None => Ok(Vec::new()),
        Some((value, Value::Array(_))) => Ok(value.to_items()),
        Some(_) => Err("a value that is not a list"),
    }
}
