use std::any::type_name;
use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::{Number, Value};

use crate::message::{short_name, type_of, without_texts};
use crate::number::{self, Addend, compare};
use crate::operation::Operation;
use crate::partial::check_fields;
use crate::value::SharedValue;

/// The type that a schema declares for a key: a Rust type, or one that is known only when the
/// program runs.
///
/// ```
/// use sessile_state::{StateSchema, ValueType};
///
/// let schema = StateSchema::new()
///     .declare("user:points", ValueType::of::<i64>().at_least(0))
///     .declare("tags", ValueType::list(ValueType::string()))
///     .declare("user:email", ValueType::string().or_null());
/// assert_eq!(ValueType::list(ValueType::string().or_null()).to_string(), "list of (string or null)");
/// ```
#[derive(Debug, Clone)]
pub struct ValueType {
    kind: Kind,
    nullable: bool,
    min: Option<Number>,
    max: Option<Number>,
}

#[derive(Debug, Clone)]
enum Kind {
    Any,
    Text,
    Boolean,
    Integer,
    Number,
    List(Box<ValueType>),
    Object,
    Rust(RustType),
}

/// A Rust type: a value is of this type if it can be read as one.
#[derive(Debug, Clone)]
struct RustType {
    /// Without its paths.
    name: String,
    check: fn(&Value) -> Result<(), serde_json::Error>,
    /// Whether some fields of an object could be those of such a value.
    check_fields: CheckFields,
}

type CheckFields = fn(&[(String, SharedValue)]) -> Result<(), String>;

/// Why a value or an operand is not of a type.
#[derive(Debug)]
pub(crate) enum Misfit {
    /// The deserializer's reason, without the value; empty if the types explain it.
    Type(String),
    Bound {
        given: Number,
        bound: Number,
        below: bool,
    },
}

impl ValueType {
    /// Everything that reads as a `T`. The range of an integer type is its bounds: `u8` is from 0
    /// to 255.
    pub fn of<T: DeserializeOwned>() -> Self {
        let rust = RustType {
            name: short_name(type_name::<T>()),
            check: |value| T::deserialize(value).map(drop),
            check_fields: check_fields::<T>,
        };
        let (min, max) = rust.range();
        Self { min, max, ..Self::plain(Kind::Rust(rust)) }
    }

    /// Every value, null included.
    pub fn any() -> Self {
        Self::plain(Kind::Any)
    }

    /// Texts.
    pub fn string() -> Self {
        Self::plain(Kind::Text)
    }

    /// `true` and `false`.
    pub fn boolean() -> Self {
        Self::plain(Kind::Boolean)
    }

    /// Numbers without a fraction, as JSON writes them: `1` is one and `1.0` is not.
    pub fn integer() -> Self {
        Self::plain(Kind::Integer)
    }

    /// Numbers.
    pub fn number() -> Self {
        Self::plain(Kind::Number)
    }

    /// Lists whose items are all of one type.
    pub fn list(items: Self) -> Self {
        Self::plain(Kind::List(Box::new(items)))
    }

    /// Objects with any fields.
    pub fn object() -> Self {
        Self::plain(Kind::Object)
    }

    /// Null too.
    #[must_use]
    pub fn or_null(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// No number below this one. Bounds do not apply to values that are not numbers.
    ///
    /// # Panics
    ///
    /// If the bound is NaN or infinite.
    #[must_use]
    #[track_caller]
    pub fn at_least(mut self, bound: impl Addend) -> Self {
        let bound = bound.to_number().unwrap_or_else(|error| panic!("cannot bound: {error}"));
        self.min = number::larger(self.min, Some(bound));
        self
    }

    /// No number above this one. Bounds do not apply to values that are not numbers.
    ///
    /// # Panics
    ///
    /// If the bound is NaN or infinite.
    #[must_use]
    #[track_caller]
    pub fn at_most(mut self, bound: impl Addend) -> Self {
        let bound = bound.to_number().unwrap_or_else(|error| panic!("cannot bound: {error}"));
        self.max = number::smaller(self.max, Some(bound));
        self
    }

    /// Whether it has numbers, for which bounds mean something.
    pub fn has_numbers(&self) -> bool {
        match &self.kind {
            Kind::Any | Kind::Integer | Kind::Number => true,
            Kind::Rust(rust) => rust.takes_addend(&Number::from(1)),
            Kind::Text | Kind::Boolean | Kind::List(_) | Kind::Object => false,
        }
    }

    /// The smallest and the largest number, if there are such.
    pub(crate) fn bounds(&self) -> (Option<&Number>, Option<&Number>) {
        (self.min.as_ref(), self.max.as_ref())
    }

    fn plain(kind: Kind) -> Self {
        Self { kind, nullable: false, min: None, max: None }
    }

    pub(crate) fn check(&self, value: &Value) -> Result<(), Misfit> {
        if self.nullable && value.is_null() {
            return Ok(());
        }
        let fits = match (&self.kind, value) {
            (Kind::Any, _)
            | (Kind::Text, Value::String(_))
            | (Kind::Boolean, Value::Bool(_))
            | (Kind::Number, Value::Number(_))
            | (Kind::Object, Value::Object(_)) => true,
            (Kind::Integer, Value::Number(number)) if number::integer(number).is_some() => true,
            (Kind::Integer, Value::Number(_)) => {
                return Err(Misfit::Type("it has a fraction, or is beyond 64 bits".to_owned()));
            }
            (Kind::List(items), Value::Array(held)) => return items.check_items(held.iter()),
            (Kind::Rust(rust), _) => {
                (rust.check)(value).map_err(|error| Misfit::Type(without_texts(&error.to_string())))?;
                true
            }
            _ => false,
        };
        if !fits {
            return Err(Misfit::Type(String::new()));
        }
        match value {
            Value::Number(number) => self.check_bounds(number),
            _ => Ok(()),
        }
    }

    /// Whether an operation can make a value of this type out of another. The result depends on the
    /// value that is stored at the commit, which only the store knows.
    pub(crate) fn check_operation(&self, operation: &Operation) -> Result<(), Misfit> {
        if let Some(by) = operation.addend() {
            return self.check_addend(by);
        }
        if let Some(fields) = operation.fields() {
            return match &self.kind {
                Kind::Any | Kind::Object => Ok(()),
                Kind::Rust(rust) => (rust.check_fields)(fields).map_err(Misfit::Type),
                _ => Err(Misfit::Type("it sets fields, and only objects have them".to_owned())),
            };
        }
        let items = operation.items();
        match &self.kind {
            Kind::Any => Ok(()),
            Kind::List(declared) => declared.check_items(items.iter().map(|item| &**item)),
            Kind::Rust(_) => self.check(&items.iter().map(|item| (**item).clone()).collect()),
            _ => Err(Misfit::Type("it adds items, and only lists have them".to_owned())),
        }
    }

    fn check_addend(&self, by: &Number) -> Result<(), Misfit> {
        let is_integer = number::integer(by).is_some();
        match &self.kind {
            Kind::Any | Kind::Number => Ok(()),
            Kind::Integer if is_integer => Ok(()),
            Kind::Rust(rust) if rust.takes_addend(by) => Ok(()),
            Kind::Rust(rust) if !is_integer && rust.takes_addend(&Number::from(1)) => Err(fraction(by)),
            Kind::Integer => Err(fraction(by)),
            _ => Err(Misfit::Type(format!("{by} is a number, and this type does not accept numbers"))),
        }
    }

    fn check_items<'a>(&self, items: impl Iterator<Item = &'a Value>) -> Result<(), Misfit> {
        for (place, item) in items.enumerate() {
            self.check(item).map_err(|misfit| match misfit {
                Misfit::Type(reason) => {
                    let reason = if reason.is_empty() { reason } else { format!(" ({reason})") };
                    Misfit::Type(format!("item {place} is {}{reason}", type_of(item)))
                }
                bound @ Misfit::Bound { .. } => bound,
            })?;
        }
        Ok(())
    }

    fn check_bounds(&self, given: &Number) -> Result<(), Misfit> {
        let crossed =
            |bound: &Number, below| Err(Misfit::Bound { given: given.clone(), bound: bound.clone(), below });
        match self.bounds() {
            (Some(min), _) if compare(given, min).is_lt() => crossed(min, true),
            (_, Some(max)) if compare(given, max).is_gt() => crossed(max, false),
            _ => Ok(()),
        }
    }
}

fn fraction(by: &Number) -> Misfit {
    Misfit::Type(format!("{by} has a fraction, and the sum would have one too"))
}

impl RustType {
    fn accepts(&self, number: impl Into<Number>) -> bool {
        (self.check)(&Value::Number(number.into())).is_ok()
    }

    /// Whether a number may be added to a value: it, its opposite or a small number is a value
    /// itself. `-1` is no `u32`, and may be added to one.
    fn takes_addend(&self, by: &Number) -> bool {
        if number::integer(by).is_some() {
            return self.accepts(0) || self.accepts(1) || self.accepts(by.clone());
        }
        let opposite = by.as_f64().and_then(|by| Number::from_f64(-by));
        self.accepts(by.clone()) || opposite.is_some_and(|opposite| self.accepts(opposite))
    }

    /// The range of a type that wraps an integer of Rust, found by trying its ends.
    fn range(&self) -> (Option<Number>, Option<Number>) {
        let lowest = [0, 1, i8::MIN.into(), i16::MIN.into(), i32::MIN.into()];
        let min = lowest.into_iter().find(|end: &i64| self.accepts(*end) && !self.accepts(end - 1));
        let highest = [
            i8::MAX as u64,
            u8::MAX.into(),
            i16::MAX as u64,
            u16::MAX.into(),
            i32::MAX as u64,
            u32::MAX.into(),
            i64::MAX as u64,
        ];
        let max = highest.into_iter().find(|end| self.accepts(*end) && !self.accepts(end + 1));
        (min.map(Number::from), max.map(Number::from))
    }
}

/// As errors and documents name it: `u32`, `list of string`, `integer or null`.
impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Any => f.write_str("any")?,
            Kind::Text => f.write_str("string")?,
            Kind::Boolean => f.write_str("boolean")?,
            Kind::Integer => f.write_str("integer")?,
            Kind::Number => f.write_str("number")?,
            Kind::List(items) if items.nullable => write!(f, "list of ({items})")?,
            Kind::List(items) => write!(f, "list of {items}")?,
            Kind::Object => f.write_str("object")?,
            Kind::Rust(rust) => f.write_str(&rust.name)?,
        }
        if self.nullable { f.write_str(" or null") } else { Ok(()) }
    }
}
