use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, Value};

use crate::message::type_of;
use crate::not_json::NotJson;
use crate::number::{self, Addend, OutOfRange};
use crate::same::same_value;
use crate::value::{SharedValue, once_each};

/// A change that is computed from the value that is stored when it is committed, not from the one
/// that the caller read before. Operations of concurrent writers are all applied; none of them
/// overwrites another.
///
/// ```
/// use serde_json::json;
/// use sessile_state::Operation;
///
/// let take_two = Operation::add(-2).at_least(0);
/// assert_eq!(take_two.apply(Some(&json!(5).into())).unwrap(), json!(3));
/// assert!(take_two.apply(Some(&json!(1).into())).is_err());
/// assert_eq!(serde_json::to_value(&take_two).unwrap(), json!({"add": -2, "min": 0}));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Add { by: Number, min: Option<Number>, max: Option<Number> },
    Append(Items),
    Union(Items),
    Merge(Fields),
}

/// The items of a list, shared by all copies of the operation.
type Items = Arc<[SharedValue]>;

/// The fields of an object, in the order in which they were given; each name is there once.
type Fields = Arc<[(String, SharedValue)]>;

/// Why an operation cannot be applied to what is stored. The stored value stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// The value is not of the kind that the operation changes.
    #[error(
        "it holds {found}, and `{operation}` needs {needed}; set it to {needed} first, or replace the whole value"
    )]
    WrongType {
        /// The name of the operation.
        operation: &'static str,
        /// The JSON type that the operation changes, with its article.
        needed: &'static str,
        /// The JSON type that is stored, with its article.
        found: &'static str,
    },

    /// The sum is not a number that every store and client can hold.
    #[error("the sum is beyond what {range} can hold; replace the whole value")]
    OutOfRange {
        /// The kind of numbers whose range is exceeded.
        range: &'static str,
    },

    /// The sum is outside the bounds that the caller gave.
    #[error("the sum would be {sum}, which is {} {bound}", if *below { "below the minimum" } else { "above the maximum" })]
    Bound {
        /// What the value would become.
        sum: Number,
        /// The bound that it would cross.
        bound: Number,
        /// Whether the bound is the minimum.
        below: bool,
    },
}

impl From<OutOfRange> for OperationError {
    fn from(OutOfRange(range): OutOfRange) -> Self {
        Self::OutOfRange { range }
    }
}

impl Operation {
    /// Adds a number; an absent value counts as 0.
    ///
    /// Integers are exact over the range of `i64` and `u64`. With a fraction on either side it is
    /// the addition of 64-bit floats, as Python and JavaScript compute it.
    ///
    /// # Panics
    ///
    /// If the number is NaN or infinite, which JSON cannot hold.
    #[track_caller]
    pub fn add(by: impl Addend) -> Self {
        Self::try_add(by).unwrap_or_else(|error| panic!("cannot add: {error}"))
    }

    /// Adds a number; an absent value counts as 0.
    ///
    /// # Errors
    ///
    /// [`NotJson`] if the number is NaN or infinite.
    pub fn try_add(by: impl Addend) -> Result<Self, NotJson> {
        Ok(Self(Kind::Add { by: by.to_number()?, min: None, max: None }))
    }

    /// Refuses an addition after which the value would be less than `min`. Other operations have no
    /// bounds and stay as they are.
    ///
    /// # Panics
    ///
    /// If the bound is NaN or infinite.
    #[must_use]
    #[track_caller]
    pub fn at_least(mut self, bound: impl Addend) -> Self {
        if let Kind::Add { min, .. } = &mut self.0 {
            *min = Some(bound.to_number().unwrap_or_else(|error| panic!("cannot bound: {error}")));
        }
        self
    }

    /// Refuses an addition after which the value would be more than `max`. Other operations have no
    /// bounds and stay as they are.
    ///
    /// # Panics
    ///
    /// If the bound is NaN or infinite.
    #[must_use]
    #[track_caller]
    pub fn at_most(mut self, bound: impl Addend) -> Self {
        if let Kind::Add { max, .. } = &mut self.0 {
            *max = Some(bound.to_number().unwrap_or_else(|error| panic!("cannot bound: {error}")));
        }
        self
    }

    /// Adds items to the end of a list; an absent value counts as an empty list.
    pub fn append<V: Into<SharedValue>>(items: impl IntoIterator<Item = V>) -> Self {
        Self(Kind::Append(items.into_iter().map(Into::into).collect()))
    }

    /// Adds those items to the end of a list that are not in it yet; an absent value counts as an
    /// empty list. Numbers are compared by value: 1 is 1.0.
    pub fn union<V: Into<SharedValue>>(items: impl IntoIterator<Item = V>) -> Self {
        Self(Kind::Union(items.into_iter().map(Into::into).collect()))
    }

    /// Sets fields of an object and leaves its others; an absent value counts as an empty object.
    pub fn union_fields<K: Into<String>, V: Into<SharedValue>>(
        fields: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let fields = fields.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self(Kind::Merge(once_each(fields).into()))
    }

    /// The name of the operation: `add`, `append` or `union`.
    pub fn name(&self) -> &'static str {
        match &self.0 {
            Kind::Add { .. } => "add",
            Kind::Append(_) => "append",
            Kind::Union(_) | Kind::Merge(_) => "union",
        }
    }

    /// The number that the operation adds, if it is an addition.
    pub fn addend(&self) -> Option<&Number> {
        match &self.0 {
            Kind::Add { by, .. } => Some(by),
            Kind::Append(_) | Kind::Union(_) | Kind::Merge(_) => None,
        }
    }

    /// The items that the operation may add to a list; empty for other operations.
    pub fn items(&self) -> &[SharedValue] {
        match &self.0 {
            Kind::Append(items) | Kind::Union(items) => items,
            Kind::Add { .. } | Kind::Merge(_) => &[],
        }
    }

    /// The fields that the operation sets in an object, if it is a union of fields.
    pub fn fields(&self) -> Option<&[(String, SharedValue)]> {
        match &self.0 {
            Kind::Merge(fields) => Some(fields),
            _ => None,
        }
    }

    /// How many levels of lists and objects its deepest item or field has.
    pub fn depth(&self) -> usize {
        match &self.0 {
            Kind::Add { .. } => 0,
            Kind::Append(items) | Kind::Union(items) => {
                items.iter().map(|item| depth(item)).max().unwrap_or(0)
            }
            Kind::Merge(fields) => fields.iter().map(|(_, value)| depth(value)).max().unwrap_or(0),
        }
    }

    /// What the operation makes of a value, or of an absent one.
    ///
    /// # Errors
    ///
    /// [`OperationError`] says why it cannot be applied to this value.
    pub fn apply(&self, value: Option<&SharedValue>) -> Result<SharedValue, OperationError> {
        match &self.0 {
            Kind::Add { by, min, max } => self.sum(value, by, min.as_ref(), max.as_ref()),
            Kind::Append(items) => {
                self.check_list(value)?;
                Ok(SharedValue::joined(value, items.iter()))
            }
            Kind::Union(items) => {
                self.check_list(value)?;
                let held = value.map_or_else(Vec::new, SharedValue::to_items);
                let mut new: Vec<&SharedValue> = Vec::new();
                for item in items.iter() {
                    if !held.iter().chain(new.iter().copied()).any(|other| same_value(other, item)) {
                        new.push(item);
                    }
                }
                Ok(SharedValue::joined(value, new.into_iter()))
            }
            Kind::Merge(new) => {
                let mut fields = match value.map(|value| (value, &**value)) {
                    None => Vec::new(),
                    Some((value, Value::Object(_))) => value.to_fields(),
                    Some((_, other)) => return Err(self.wrong_type("an object", other)),
                };
                let mut absent: BTreeMap<&str, &SharedValue> =
                    new.iter().map(|(name, value)| (name.as_str(), value)).collect();
                for (name, held) in &mut fields {
                    if let Some(value) = absent.remove(name.as_str()) {
                        *held = value.clone();
                    }
                }
                fields.extend(new.iter().filter(|(name, _)| absent.contains_key(name.as_str())).cloned());
                Ok(SharedValue::from_fields(fields))
            }
        }
    }

    fn sum(
        &self,
        value: Option<&SharedValue>,
        by: &Number,
        min: Option<&Number>,
        max: Option<&Number>,
    ) -> Result<SharedValue, OperationError> {
        let zero = Number::from(0);
        let held = match value.map(|value| (value, &**value)) {
            None => &zero,
            Some((value, Value::Number(_))) if value.is_negative_zero() => &zero,
            Some((value, Value::Number(_))) if value.is_large_integer() => {
                return Err(OperationError::OutOfRange { range: "64-bit integers" });
            }
            Some((_, Value::Number(held))) => held,
            Some((_, other)) => return Err(self.wrong_type("a number", other)),
        };
        let sum = number::add(held, by)?;
        let crossed = |bound: &Number, below: bool| {
            Err(OperationError::Bound { sum: sum.clone(), bound: bound.clone(), below })
        };
        match (min, max) {
            (Some(min), _) if number::compare(&sum, min).is_lt() => crossed(min, true),
            (_, Some(max)) if number::compare(&sum, max).is_gt() => crossed(max, false),
            _ => Ok(Value::Number(sum).into()),
        }
    }

    fn check_list(&self, value: Option<&SharedValue>) -> Result<(), OperationError> {
        match value.map(|value| &**value) {
            None | Some(Value::Array(_)) => Ok(()),
            Some(other) => Err(self.wrong_type("a list", other)),
        }
    }

    fn wrong_type(&self, needed: &'static str, found: &Value) -> OperationError {
        OperationError::WrongType { operation: self.name(), needed, found: type_of(found) }
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// `{"add": 1, "min": 0}`, `{"append": […]}`, `{"union": […]}` or `{"union": {…}}`.
impl Serialize for Operation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.0 {
            Kind::Add { by, min, max } => {
                map.serialize_entry("add", by)?;
                for (name, bound) in [("min", min), ("max", max)] {
                    if let Some(bound) = bound {
                        map.serialize_entry(name, bound)?;
                    }
                }
            }
            Kind::Append(items) | Kind::Union(items) => map.serialize_entry(self.name(), &**items)?,
            Kind::Merge(fields) => map.serialize_entry(self.name(), &InOrder(fields))?,
        }
        map.end()
    }
}

struct InOrder<'a>(&'a [(String, SharedValue)]);

impl Serialize for InOrder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Reads what [`Serialize`] writes; the error says what an operation looks like.
impl<'de> Deserialize<'de> for Operation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = SharedValue::deserialize(deserializer)?;
        Self::from_json(&given).map_err(D::Error::custom)
    }
}

/// The end of every message about an operation that cannot be parsed.
const SHAPES: &str = "an operation is {\"add\": number, \"min\"?: number, \"max\"?: number}, {\"append\": [items]}, \
                      {\"union\": [items]} or {\"union\": {fields}}";

impl Operation {
    /// Reads the JSON form of an operation.
    ///
    /// # Errors
    ///
    /// A message that says what is wrong with it.
    pub fn from_json(given: &SharedValue) -> Result<Self, String> {
        let fields = match &**given {
            Value::Object(_) => given.to_fields(),
            other => return Err(format!("{} is not an operation; {SHAPES}", type_of(other))),
        };
        let name = |(name, _): &(String, SharedValue)| name.clone();
        let Some((main, value)) =
            fields.iter().find(|field| ["add", "append", "union"].contains(&field.0.as_str()))
        else {
            let names: Vec<_> = fields.iter().map(name).collect();
            return Err(format!("unknown operation {names:?}; {SHAPES}"));
        };
        let number = |name: &str, value: &SharedValue| match &**value {
            Value::Number(_) if value.is_large_integer() => {
                Err(format!("`{name}` is beyond 64-bit integers"))
            }
            Value::Number(number) => Ok(number.clone()),
            other => Err(format!("`{name}` must be a number, not {}", type_of(other))),
        };
        let (mut min, mut max) = (None, None);
        for (name, value) in fields.iter().filter(|(name, _)| name != main) {
            match name.as_str() {
                "min" if main == "add" => min = Some(number("min", value)?),
                "max" if main == "add" => max = Some(number("max", value)?),
                other => return Err(format!("`{main}` has no field {other:?}; {SHAPES}")),
            }
        }
        let kind = match (main.as_str(), &**value) {
            ("add", _) => Kind::Add { by: number("add", value)?, min, max },
            ("append", Value::Array(_)) => Kind::Append(value.to_items().into()),
            ("union", Value::Array(_)) => Kind::Union(value.to_items().into()),
            ("union", Value::Object(_)) => Kind::Merge(value.to_fields().into()),
            ("append", other) => return Err(format!("`append` takes a list, not {}", type_of(other))),
            (_, other) => return Err(format!("`union` takes a list or an object, not {}", type_of(other))),
        };
        Ok(Self(kind))
    }
}

/// Operations on one key, applied one after the other; there is at least one. Behind a pointer,
/// because most changes are not operations and must stay small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operations(Arc<Vec<Operation>>);

impl Operations {
    /// The operations in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Operation> {
        self.0.iter()
    }

    /// What all of them make of a value, or of an absent one.
    ///
    /// # Errors
    ///
    /// That of the first operation that cannot be applied.
    pub fn apply(&self, value: Option<&SharedValue>) -> Result<SharedValue, OperationError> {
        let Some((first, rest)) = self.0.split_first() else {
            unreachable!("there is at least one operation")
        };
        rest.iter().try_fold(first.apply(value)?, |value, operation| operation.apply(Some(&value)))
    }

    /// Reads the JSON form: one operation, or a list of them.
    ///
    /// # Errors
    ///
    /// A message that says what is wrong with it.
    pub fn from_json(given: &SharedValue) -> Result<Self, String> {
        let Value::Array(_) = &**given else { return Operation::from_json(given).map(Self::from) };
        let operations = given.to_items().into_iter().map(|item| Operation::from_json(&item));
        let operations: Vec<_> = operations.collect::<Result<_, _>>()?;
        if operations.is_empty() {
            return Err(format!("the list is empty; {SHAPES}"));
        }
        Ok(Self(Arc::new(operations)))
    }

    /// The operations with bounds for their result. If the last one has bounds of its own, the
    /// tighter ones hold.
    pub(crate) fn bounded(&self, least: Option<&Number>, most: Option<&Number>) -> Self {
        let mut bounded = self.clone();
        if let Some(Operation(Kind::Add { min, max, .. })) = Arc::make_mut(&mut bounded.0).last_mut() {
            *min = number::larger(min.take(), least.cloned());
            *max = number::smaller(max.take(), most.cloned());
        }
        bounded
    }

    /// Adds operations at the end, and joins neighbouring additions of integers without bounds, so
    /// that a counter that is changed often stays one operation.
    pub(crate) fn extend_joining(&mut self, later: &Self) {
        let all = Arc::make_mut(&mut self.0);
        for operation in later.iter() {
            let joined = match (all.last().map(|last| &last.0), &operation.0) {
                (
                    Some(Kind::Add { by: one, min: None, max: None }),
                    Kind::Add { by: other, min: None, max: None },
                ) => number::add_integers(one, other),
                _ => None,
            };
            match (joined, all.last_mut()) {
                (Some(by), Some(last)) => last.0 = Kind::Add { by, min: None, max: None },
                _ => all.push(operation.clone()),
            }
        }
    }

    /// Adds operations at the end.
    pub(crate) fn extend(&mut self, later: &Self) {
        Arc::make_mut(&mut self.0).extend(later.iter().cloned());
    }
}

impl From<Operation> for Operations {
    fn from(operation: Operation) -> Self {
        Self(Arc::new(vec![operation]))
    }
}

/// One operation as itself, several as a list.
impl Serialize for Operations {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &**self.0 {
            [only] => only.serialize(serializer),
            all => serializer.collect_seq(all),
        }
    }
}

impl<'de> Deserialize<'de> for Operations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = SharedValue::deserialize(deserializer)?;
        Self::from_json(&given).map_err(D::Error::custom)
    }
}
