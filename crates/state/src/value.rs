use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Number, Value};

use crate::exact::{Exact, exact};
use crate::not_json::NotJson;
use crate::number;
use crate::to_json::to_json;

/// A JSON value with shared ownership: cloning it never copies an object, an array or a string.
///
/// It reads as the [`Value`] it holds (`Deref`), compares with one, and turns into one with
/// [`into_value`](Self::into_value).
///
/// A number that a [`Value`] cannot hold exactly (an integer beyond 64 bits, more digits than an
/// `f64` has) is kept as it was written, if it came through [`from_json`](Self::from_json): it is
/// serialized and read as a `T` from its text. Only as a [`Value`] it is rounded.
///
/// ```
/// use sessile_state::SharedValue;
///
/// let value = SharedValue::from_json("[123456789012345678901234567890, 1.0]").unwrap();
/// assert_eq!(value.to_string(), "[123456789012345678901234567890, 1.0]");
/// assert_eq!(value.read::<(u128, f64)>().unwrap().0, 123456789012345678901234567890);
/// ```
#[derive(Clone)]
pub struct SharedValue(Repr);

#[derive(Clone)]
enum Repr {
    /// Null, booleans and numbers, which are too small to be worth an allocation.
    Inline(Value),
    Shared(Arc<Value>),
    /// What a `Value` cannot hold without rounding.
    Exact(Arc<Exact>),
}

impl SharedValue {
    /// Any value as JSON.
    ///
    /// # Errors
    ///
    /// [`NotJson`] says what has no JSON form, and where: a map whose keys are not strings, NaN,
    /// infinity.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, NotJson> {
        to_json(value).map(Self::from)
    }

    /// Parses a JSON text, keeping every digit of its numbers.
    ///
    /// # Errors
    ///
    /// serde_json's error if it is not JSON, is nested deeper than 200 levels, or holds a number
    /// that is beyond an `f64`.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        exact(text).map(|parsed| match parsed {
            (value, None) => value.into(),
            (value, Some(text)) => Self(Repr::Exact(Arc::new(Exact { text, value }))),
        })
    }

    /// The value as a `T`, from its exact text where it has one.
    ///
    /// # Errors
    ///
    /// The error of `T`'s deserializer.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        match &self.0 {
            Repr::Inline(value) => T::deserialize(value),
            Repr::Shared(value) => T::deserialize(&**value),
            Repr::Exact(exact) => serde_json::from_str(exact.text.get()),
        }
    }

    /// How many bytes its JSON has.
    pub fn json_size(&self) -> usize {
        let mut counter = Counter(0);
        match serde_json::to_writer(&mut counter, self) {
            Ok(()) => counter.0,
            Err(error) => {
                unreachable!("a JSON value is written as JSON, and counting does not fail: {error}")
            }
        }
    }

    /// The items of a list, each with all its digits; empty if it is not a list.
    pub fn to_items(&self) -> Vec<Self> {
        match &self.0 {
            Repr::Exact(exact) => parts::<Vec<Self>>(exact),
            _ => self.as_array().map_or_else(Vec::new, |list| list.iter().cloned().map(Self::from).collect()),
        }
    }

    /// The fields of an object in their order, each with all its digits; empty if it is not an
    /// object.
    pub fn to_fields(&self) -> Vec<(String, Self)> {
        match &self.0 {
            Repr::Exact(exact) => parts::<FieldList>(exact).0,
            _ => {
                let fields = self.as_object().into_iter().flatten();
                fields.map(|(name, value)| (name.clone(), Self::from(value.clone()))).collect()
            }
        }
    }

    /// The list `before` with more items at its end; `before` itself if there are none.
    pub(crate) fn joined<'a>(
        before: Option<&Self>,
        items: impl ExactSizeIterator<Item = &'a Self> + Clone,
    ) -> Self {
        if let Some(before) = before.filter(|_| items.len() == 0) {
            return before.clone();
        }
        let is_exact = before.is_some_and(|before| before.exact_text().is_some())
            || items.clone().any(|item| item.exact_text().is_some());
        if is_exact {
            let mut all = before.map_or_else(Vec::new, Self::to_items);
            all.extend(items.cloned());
            return written(&all);
        }
        let held = before.and_then(|before| before.as_array()).map_or(&[][..], Vec::as_slice);
        let mut all = Vec::with_capacity(held.len() + items.len());
        all.extend_from_slice(held);
        all.extend(items.map(|item| Value::clone(item)));
        Value::Array(all).into()
    }

    /// An object of these fields, in this order.
    pub(crate) fn from_fields(fields: Vec<(String, Self)>) -> Self {
        if fields.iter().any(|(_, value)| value.exact_text().is_some()) {
            return written(&FieldList(fields));
        }
        Value::Object(fields.into_iter().map(|(name, value)| (name, value.into_value())).collect()).into()
    }

    /// Whether it is an integer beyond the range of `i64` and `u64`.
    pub(crate) fn is_large_integer(&self) -> bool {
        let Value::Number(number) = &**self else { return false };
        let is_whole = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        number::integer(number).is_none()
            && match self.exact_text() {
                Some(text) => is_whole(text.get()),
                None => is_whole(&number.to_string()),
            }
    }

    /// Whether it is the integer -0, which a `Value` holds as a float.
    pub(crate) fn is_negative_zero(&self) -> bool {
        self.exact_text().is_some_and(|text| text.get() == "-0")
    }

    /// The text of a value that a `Value` cannot hold without rounding.
    pub(crate) fn exact_text(&self) -> Option<&RawValue> {
        match &self.0 {
            Repr::Exact(exact) => Some(&exact.text),
            _ => None,
        }
    }

    /// The value itself: moved out if this is the only reference, copied otherwise.
    pub fn into_value(self) -> Value {
        match self.0 {
            Repr::Inline(value) => value,
            Repr::Shared(value) => Arc::unwrap_or_clone(value),
            Repr::Exact(exact) => exact.value.clone(),
        }
    }

    /// Whether both are the same value in memory, which is cheaper to check than equality.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Repr::Shared(a), Repr::Shared(b)) => Arc::ptr_eq(a, b),
            (Repr::Exact(a), Repr::Exact(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// A value as a table holds it: half the size of a [`SharedValue`], and every variant's content in
/// the same eight bytes, so that it is copied with two moves.
#[derive(Clone)]
pub(crate) enum Slot {
    Null,
    False,
    True,
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    /// Everything else, and numbers that do not come back exactly from the above.
    Shared(Arc<Value>),
    Exact(Arc<Exact>),
}

impl Slot {
    #[inline]
    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Exact(exact) => exact.value.clone(),
            Self::Null => Value::Null,
            Self::False => Value::Bool(false),
            Self::True => Value::Bool(true),
            Self::Unsigned(value) => Value::Number(value.into()),
            Self::Signed(value) => Value::Number(value.into()),
            Self::Float(value) => Number::from_f64(value).map_or(Value::Null, Value::Number),
            Self::Shared(value) => Arc::unwrap_or_clone(value),
        }
    }
}

impl From<Value> for Slot {
    #[inline]
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(false) => Self::False,
            Value::Bool(true) => Self::True,
            Value::Number(number) => match compact(&number) {
                Some(slot) => slot,
                None => Self::Shared(Arc::new(Value::Number(number))),
            },
            Value::String(_) | Value::Array(_) | Value::Object(_) => Self::Shared(Arc::new(value)),
        }
    }
}

impl From<SharedValue> for Slot {
    #[inline]
    fn from(value: SharedValue) -> Self {
        match value.0 {
            Repr::Inline(value) => value.into(),
            Repr::Shared(value) => Self::Shared(value),
            Repr::Exact(exact) => Self::Exact(exact),
        }
    }
}

/// A number without its text, if it survives the round trip unchanged. With exact numbers
/// (serde_json's `arbitrary_precision`) `1e2`, `-0` and long numbers are not.
#[inline]
fn compact(number: &Number) -> Option<Slot> {
    if let Some(value) = number.as_u64() {
        return (Number::from(value) == *number).then_some(Slot::Unsigned(value));
    }
    if let Some(value) = number.as_i64() {
        return (Number::from(value) == *number).then_some(Slot::Signed(value));
    }
    let value = number.as_f64()?;
    (Number::from_f64(value).as_ref() == Some(number)).then_some(Slot::Float(value))
}

impl From<Slot> for SharedValue {
    #[inline]
    fn from(slot: Slot) -> Self {
        match slot {
            Slot::Shared(value) => Self(Repr::Shared(value)),
            Slot::Exact(exact) => Self(Repr::Exact(exact)),
            scalar => Self(Repr::Inline(scalar.into_value())),
        }
    }
}

impl From<Value> for SharedValue {
    #[inline]
    fn from(value: Value) -> Self {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Self(Repr::Inline(value)),
            Value::String(_) | Value::Array(_) | Value::Object(_) => Self(Repr::Shared(Arc::new(value))),
        }
    }
}

impl From<SharedValue> for Value {
    fn from(value: SharedValue) -> Self {
        value.into_value()
    }
}

impl Deref for SharedValue {
    type Target = Value;

    #[inline]
    fn deref(&self) -> &Value {
        match &self.0 {
            Repr::Inline(value) => value,
            Repr::Shared(value) => value,
            Repr::Exact(exact) => &exact.value,
        }
    }
}

impl PartialEq for SharedValue {
    fn eq(&self, other: &Self) -> bool {
        match (self.exact_text(), other.exact_text()) {
            (None, None) => self.is_same(other) || **self == **other,
            (Some(a), Some(b)) => a.get() == b.get(),
            _ => false,
        }
    }
}

impl Eq for SharedValue {}

impl PartialEq<Value> for SharedValue {
    fn eq(&self, other: &Value) -> bool {
        **self == *other
    }
}

impl PartialEq<SharedValue> for Value {
    fn eq(&self, other: &SharedValue) -> bool {
        *self == **other
    }
}

impl fmt::Debug for SharedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// As JSON.
impl fmt::Display for SharedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.exact_text() {
            Some(text) => f.write_str(text.get()),
            None => fmt::Display::fmt(&**self, f),
        }
    }
}

impl Serialize for SharedValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.exact_text() {
            Some(text) => text.serialize(serializer),
            None => (**self).serialize(serializer),
        }
    }
}

/// With serde_json only, which hands out the text, so that every digit is kept.
impl<'de> Deserialize<'de> for SharedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Self::from_json(text.get()).map_err(serde::de::Error::custom)
    }
}

/// The parts of a value that has a text.
fn parts<T: DeserializeOwned>(exact: &Exact) -> T {
    match serde_json::from_str(exact.text.get()) {
        Ok(parts) => parts,
        Err(error) => unreachable!("the text was parsed before: {error}"),
    }
}

/// A value from parts of which some have a text.
fn written<T: Serialize>(parts: &T) -> SharedValue {
    let text = serde_json::to_string(parts);
    match text.and_then(|text| SharedValue::from_json(&text)) {
        Ok(value) => value,
        Err(error) => unreachable!("parts of JSON are JSON together: {error}"),
    }
}

/// Fields in their order; of those with the same name the last value counts, as in most parsers.
pub(crate) fn once_each(
    fields: impl IntoIterator<Item = (String, SharedValue)>,
) -> Vec<(String, SharedValue)> {
    let (mut once, mut places) = (Vec::new(), BTreeMap::new());
    for (name, value) in fields {
        match places.get(&name) {
            Some(place) => {
                let (_, known): &mut (String, SharedValue) = &mut once[*place];
                *known = value;
            }
            None => {
                places.insert(name.clone(), once.len());
                once.push((name, value));
            }
        }
    }
    once
}

/// The fields of an object in their order.
struct FieldList(Vec<(String, SharedValue)>);

impl Serialize for FieldList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for FieldList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> serde::de::Visitor<'de> for Fields {
            type Value = FieldList;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<FieldList, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(FieldList(once_each(fields)))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

/// Counts what is written.
struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
