//! Turns any `Serialize` into a JSON value, or says which part of it has no JSON form.
//!
//! `serde_json::to_value` is not used because it turns NaN and infinity into null, and numeric keys
//! into strings, so that a value would be read back differently.

use serde::ser::{self, Serialize};
use serde_json::map::Entry;
use serde_json::value::Serializer as Plain;
use serde_json::{Map, Value};

use crate::exact::{MAX_DEPTH, exact};
use crate::not_json::NotJson;

/// The JSON form of `value`.
///
/// # Errors
///
/// [`NotJson`] names the place and the reason.
pub(crate) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<Value, NotJson> {
    value.serialize(ToJson { depth: 0 })
}

#[derive(Clone, Copy)]
struct ToJson {
    depth: usize,
}

impl ToJson {
    fn deeper(self) -> Result<Self, NotJson> {
        if self.depth == MAX_DEPTH {
            return Err(NotJson::new(format!("it is nested deeper than {MAX_DEPTH} levels")));
        }
        Ok(Self { depth: self.depth + 1 })
    }

    fn list(self, wrapper: Option<&'static str>) -> Result<ListToJson, NotJson> {
        Ok(ListToJson { items: Vec::new(), inner: self.inside(wrapper)?, wrapper })
    }

    fn object(self, wrapper: Option<&'static str>) -> Result<MapToJson, NotJson> {
        Ok(MapToJson { entries: Map::new(), key: None, inner: self.inside(wrapper)?, wrapper })
    }

    /// Inside a list or object, which is itself inside an enum's variant if there is one.
    fn inside(self, wrapper: Option<&'static str>) -> Result<Self, NotJson> {
        match wrapper {
            Some(_) => self.deeper()?.deeper(),
            None => self.deeper(),
        }
    }
}

/// Hands scalars that always have a JSON form to serde_json's own serializer.
macro_rules! plain {
    ($($method:ident($type:ty)),* $(,)?) => {
        $(fn $method(self, value: $type) -> Result<Value, NotJson> {
            Plain.$method(value).map_err(from_plain)
        })*
    };
}

fn from_plain(error: serde_json::Error) -> NotJson {
    NotJson::new(error.to_string())
}

fn not_finite(value: f64) -> NotJson {
    NotJson::new(format!("{value} has no JSON form; store null or a string instead"))
}

impl ser::Serializer for ToJson {
    type Ok = Value;
    type Error = NotJson;
    type SerializeSeq = ListToJson;
    type SerializeTuple = ListToJson;
    type SerializeTupleStruct = ListToJson;
    type SerializeTupleVariant = ListToJson;
    type SerializeMap = MapToJson;
    type SerializeStruct = StructToJson;
    type SerializeStructVariant = MapToJson;

    plain! {
        serialize_bool(bool), serialize_char(char), serialize_str(&str), serialize_bytes(&[u8]),
        serialize_i8(i8), serialize_i16(i16), serialize_i32(i32), serialize_i64(i64), serialize_i128(i128),
        serialize_u8(u8), serialize_u16(u16), serialize_u32(u32), serialize_u64(u64), serialize_u128(u128),
    }

    fn serialize_f32(self, value: f32) -> Result<Value, NotJson> {
        if !value.is_finite() {
            return Err(not_finite(value.into()));
        }
        Plain.serialize_f32(value).map_err(from_plain)
    }

    fn serialize_f64(self, value: f64) -> Result<Value, NotJson> {
        if !value.is_finite() {
            return Err(not_finite(value));
        }
        Plain.serialize_f64(value).map_err(from_plain)
    }

    fn serialize_none(self) -> Result<Value, NotJson> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, NotJson> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, NotJson> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<Value, NotJson> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, NotJson> {
        Ok(Value::String(variant.to_owned()))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<Value, NotJson> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, NotJson> {
        let value = value.serialize(self.deeper()?).map_err(|error| error.inside(&field(variant)))?;
        Ok(wrap(Some(variant), value))
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<ListToJson, NotJson> {
        self.list(None)
    }

    fn serialize_tuple(self, _len: usize) -> Result<ListToJson, NotJson> {
        self.list(None)
    }

    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<ListToJson, NotJson> {
        self.list(None)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<ListToJson, NotJson> {
        self.list(Some(variant))
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<MapToJson, NotJson> {
        self.object(None)
    }

    fn serialize_struct(self, name: &'static str, len: usize) -> Result<StructToJson, NotJson> {
        // serde_json passes its own numbers and raw values through structs of these names.
        match name {
            "$serde_json::private::Number" => {
                Plain.serialize_struct(name, len).map(StructToJson::Number).map_err(from_plain)
            }
            "$serde_json::private::RawValue" => Ok(StructToJson::Raw(Value::Null)),
            _ => self.object(None).map(StructToJson::Ordinary),
        }
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<MapToJson, NotJson> {
        self.object(Some(variant))
    }
}

fn field(name: &str) -> String {
    format!(".{name}")
}

/// An enum's variant around its contents.
fn wrap(variant: Option<&'static str>, value: Value) -> Value {
    match variant {
        Some(name) => Value::Object(Map::from_iter([(name.to_owned(), value)])),
        None => value,
    }
}

struct ListToJson {
    items: Vec<Value>,
    inner: ToJson,
    wrapper: Option<&'static str>,
}

impl ListToJson {
    fn push<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), NotJson> {
        let place = self.items.len();
        let item = item.serialize(self.inner).map_err(|error| error.inside(&format!("[{place}]")))?;
        self.items.push(item);
        Ok(())
    }

    fn finish(self) -> Value {
        wrap(self.wrapper, Value::Array(self.items))
    }
}

macro_rules! list {
    ($($trait:ident::$method:ident),*) => {
        $(impl ser::$trait for ListToJson {
            type Ok = Value;
            type Error = NotJson;

            fn $method<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), NotJson> {
                self.push(item)
            }

            fn end(self) -> Result<Value, NotJson> {
                Ok(self.finish())
            }
        })*
    };
}

list!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);

struct MapToJson {
    entries: Map<String, Value>,
    /// The key whose value comes next.
    key: Option<String>,
    inner: ToJson,
    wrapper: Option<&'static str>,
}

impl MapToJson {
    fn insert<T: Serialize + ?Sized>(&mut self, key: String, value: &T) -> Result<(), NotJson> {
        let value = value.serialize(self.inner).map_err(|error| error.inside(&field(&key)))?;
        match self.entries.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(value);
                Ok(())
            }
            Entry::Occupied(entry) => Err(NotJson::new(format!("it has two fields named {:?}", entry.key()))),
        }
    }

    fn finish(self) -> Value {
        wrap(self.wrapper, Value::Object(self.entries))
    }
}

impl ser::SerializeMap for MapToJson {
    type Ok = Value;
    type Error = NotJson;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), NotJson> {
        match key.serialize(self.inner)? {
            Value::String(key) => {
                self.key = Some(key);
                Ok(())
            }
            other => Err(NotJson::new(format!(
                "it is a map with the key {other}, and keys of JSON objects are strings; convert its keys to strings"
            ))),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotJson> {
        match self.key.take() {
            Some(key) => self.insert(key, value),
            None => Err(NotJson::new("a map gave a value before its key")),
        }
    }

    fn end(self) -> Result<Value, NotJson> {
        Ok(self.finish())
    }
}

impl ser::SerializeStructVariant for MapToJson {
    type Ok = Value;
    type Error = NotJson;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), NotJson> {
        self.insert(key.to_owned(), value)
    }

    fn end(self) -> Result<Value, NotJson> {
        Ok(self.finish())
    }
}

enum StructToJson {
    Ordinary(MapToJson),
    Number(<Plain as ser::Serializer>::SerializeStruct),
    Raw(Value),
}

impl ser::SerializeStruct for StructToJson {
    type Ok = Value;
    type Error = NotJson;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), NotJson> {
        match self {
            Self::Ordinary(map) => map.insert(key.to_owned(), value),
            Self::Number(inner) => {
                ser::SerializeStruct::serialize_field(inner, key, value).map_err(from_plain)
            }
            Self::Raw(raw) => {
                *raw = from_raw(&to_json(value)?)?;
                Ok(())
            }
        }
    }

    fn end(self) -> Result<Value, NotJson> {
        match self {
            Self::Ordinary(map) => Ok(map.finish()),
            Self::Number(inner) => ser::SerializeStruct::end(inner).map_err(from_plain),
            Self::Raw(raw) => Ok(raw),
        }
    }
}

/// The value of a raw JSON text, if it is the whole value.
fn from_raw(text: &Value) -> Result<Value, NotJson> {
    match exact(text.as_str().unwrap_or("")).map_err(from_plain)? {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(NotJson::new(
            "a number in it would be rounded; keep it with `set_raw` and `SharedValue::from_json`",
        )),
    }
}
