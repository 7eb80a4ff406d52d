use std::collections::BTreeMap;
use std::ops::Bound::{Included, Unbounded};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::change::Change;
use crate::delta::Delta;
use crate::message::type_of;
use crate::nearest::nearest;
use crate::operation::{Operation, Operations};
use crate::reducer::{Reducer, Reducers};
use crate::schema_error::{SchemaError, out_of_bounds};
use crate::snapshot::Snapshot;
use crate::state_key::StateKey;
use crate::value_type::{Misfit, ValueType};

/// Which keys a state may hold, and the types of their values.
///
/// A `SessionService` with a schema checks every commit with it; every write through
/// [`State::with_schema`](crate::State::with_schema) is checked at once. A key that is not
/// declared, a value that is not of the declared type and a number outside the declared bounds are
/// refused. Keys with a prefix are free as long as no key with that prefix is declared; the first
/// declaration closes the prefix too. A key may always be removed.
///
/// ```
/// use sessile_state::{State, StateSchema};
///
/// let schema = StateSchema::new().key::<u32>("count").key::<Option<String>>("user:name");
/// let state = State::new().with_schema(schema);
///
/// state.set("count", 1);
/// state.set("temp:anything", "goes");
/// assert_eq!(
///     state.try_set("count", "one").unwrap_err().to_string(),
///     "state key `count` is declared as `u32` and cannot hold a string: \
///      invalid type: string \"…\", expected u32",
/// );
/// assert_eq!(
///     state.try_set("user:nmae", "Ada").unwrap_err().to_string(),
///     "state key `user:nmae` (a string) is not declared in the schema; did you mean `user:name`?",
/// );
/// ```
#[derive(Debug, Clone, Default)]
pub struct StateSchema {
    keys: BTreeMap<String, Declared>,
    reducers: Reducers,
}

/// What is declared of one key.
#[derive(Debug, Clone)]
struct Declared {
    value_type: ValueType,
}

impl StateSchema {
    /// A schema that declares no key.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a key, prefix included, with the Rust type of its value. `Option<T>` also takes
    /// null.
    #[must_use]
    pub fn key<T: DeserializeOwned>(self, key: impl Into<String>) -> Self {
        self.declare(key, ValueType::of::<T>())
    }

    /// Declares a typed key.
    #[must_use]
    pub fn typed_key<T: DeserializeOwned>(self, key: &StateKey<T>) -> Self {
        self.key::<T>(key.key())
    }

    /// Declares a key, prefix included, with any type and its bounds.
    ///
    /// ```
    /// use serde_json::json;
    /// use sessile_state::{StateSchema, ValueType};
    ///
    /// let schema = StateSchema::new().declare("user:points", ValueType::integer().at_least(0));
    /// assert_eq!(
    ///     schema.check("user:points", &json!(-1)).unwrap_err().to_string(),
    ///     "state key `user:points` is declared as `integer` and cannot hold -1, which is below the minimum 0",
    /// );
    /// ```
    #[must_use]
    pub fn declare(mut self, key: impl Into<String>, value_type: ValueType) -> Self {
        self.keys.insert(key.into(), Declared { value_type });
        self
    }

    /// Declares how a key changes when several writers set it at the same time; the key need not
    /// have a type.
    ///
    /// Callbacks and tools that set it make an operation, see [`Reducer`]. So does a write with a
    /// guard, which carries the value that it was computed from; a write without one replaces the
    /// value.
    #[must_use]
    pub fn reducer(mut self, key: impl Into<String>, reducer: Reducer) -> Self {
        self.reducers.insert(key.into(), reducer);
        self
    }

    /// The keys that have a reducer.
    pub fn reducers(&self) -> &Reducers {
        &self.reducers
    }

    /// Whether `key` may hold `value`.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] says why not.
    pub fn check(&self, key: &str, value: &Value) -> Result<(), SchemaError> {
        match self.keys.get(key) {
            Some(declared) => declared.value_type.check(value).map_err(|misfit| {
                let (key, declared) = (key.to_owned(), declared.value_type.to_string());
                match misfit {
                    Misfit::Type(reason) => {
                        SchemaError::WrongType { key, declared, given: type_of(value), reason }
                    }
                    Misfit::Bound { given, bound, below } => {
                        SchemaError::OutOfBounds { key, declared, given, bound, below }
                    }
                }
            }),
            None => self.check_free(key, || type_of(value)),
        }
    }

    /// The changes of a delta, keys with their prefixes, if the schema allows them: every value
    /// that is set, and every operand of an operation. Additions carry the declared bounds from
    /// here on, so that the store refuses a sum outside of them; where they have bounds of their
    /// own, the tighter ones hold.
    ///
    /// What an operation makes of the value that is stored is not known here: see `docs/state.md`
    /// for what is left unchecked.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] for the first change that it does not allow.
    pub fn admit(&self, delta: &Delta) -> Result<Delta, SchemaError> {
        let mut admitted = delta.clone();
        for (key, change) in delta.entries() {
            match change {
                Change::Set(value) => self.check(key, value)?,
                Change::Remove => {}
                Change::Operate(operations) => {
                    if let Some(bounded) = self.bounded(key, operations)? {
                        admitted.insert(key.clone(), Change::Operate(bounded));
                    }
                }
            }
        }
        Ok(admitted)
    }

    /// Everything in a state that the schema does not allow, in key order.
    pub fn check_all(&self, state: impl Into<Snapshot>) -> Vec<SchemaError> {
        let state = state.into();
        state.iter().filter_map(|(key, value)| self.check(key, &value).err()).collect()
    }

    /// The operations on a key with the bounds that are declared for it, if there are any.
    fn bounded(&self, key: &str, operations: &Operations) -> Result<Option<Operations>, SchemaError> {
        let Some(Declared { value_type }) = self.keys.get(key) else {
            let name = || operations.iter().next().map_or("nothing", operation_name);
            return self.check_free(key, name).map(|()| None);
        };
        for operation in operations.iter() {
            value_type.check_operation(operation).map_err(|misfit| {
                let (key, declared) = (key.to_owned(), value_type.to_string());
                let reason = match misfit {
                    Misfit::Type(reason) => reason,
                    Misfit::Bound { given, bound, below } => out_of_bounds(&given, &bound, below),
                };
                SchemaError::WrongOperand { key, declared, operation: operation.name(), reason }
            })?;
        }
        Ok(match value_type.bounds() {
            (None, None) => None,
            (min, max) => Some(operations.bounded(min, max)),
        })
    }

    /// Refuses a key that is not declared, unless its prefix has no declared keys.
    fn check_free(&self, key: &str, given: impl FnOnce() -> &'static str) -> Result<(), SchemaError> {
        let is_free = key.find(':').is_some_and(|colon| {
            let prefix = &key[..=colon];
            let mut declared = self.keys.range::<str, _>((Included(prefix), Unbounded));
            declared.next().is_none_or(|(first, _)| !first.starts_with(prefix))
        });
        if is_free {
            return Ok(());
        }
        let nearest = nearest(key, self.keys.keys().map(String::as_str)).map(str::to_owned);
        Err(SchemaError::Undeclared { key: key.to_owned(), given: given(), nearest })
    }
}

/// An operation with its article, for messages that otherwise name the type of a value.
fn operation_name(operation: &Operation) -> &'static str {
    match operation.name() {
        "add" => "an addition",
        "append" => "items to append",
        _ => "a union",
    }
}
