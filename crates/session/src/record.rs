//! JSON objects with known fields in two spellings, and unknown fields that are kept.
//!
//! A record is declared once, with [`record!`]. It reads both spellings of its fields; it writes
//! camelCase through `Serialize`, as clients expect, and snake_case through [`Stored`], as
//! google-adk stores it. Only names of fields are translated, never keys of maps.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use sessile_state::SharedValue;

/// How the names of fields are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// `invocationId`, on the wire.
    Camel,
    /// `invocation_id`, in storage.
    Snake,
}

/// A value serialized in the spelling of storage.
#[derive(Debug, Clone, Copy)]
pub struct Stored<'a, T>(pub &'a T);

impl<T: Spell> Serialize for Stored<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.spell(Spelling::Snake, serializer)
    }
}

/// What can be written in both spellings.
pub trait Spell {
    /// Serializes it with its fields in this spelling.
    ///
    /// # Errors
    ///
    /// The serializer's.
    fn spell<S: Serializer>(&self, spelling: Spelling, serializer: S) -> Result<S::Ok, S::Error>;

    /// Whether the field that holds it is left out.
    fn is_absent(&self) -> bool {
        false
    }
}

/// Serializes a part in the spelling of the whole.
pub(crate) struct Spelled<'a, T: ?Sized>(pub(crate) &'a T, pub(crate) Spelling);

impl<T: Spell + ?Sized> Serialize for Spelled<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.spell(self.1, serializer)
    }
}

macro_rules! plain {
    ($($type:ty),*) => {
        $(impl Spell for $type {
            fn spell<S: Serializer>(&self, _: Spelling, serializer: S) -> Result<S::Ok, S::Error> {
                self.serialize(serializer)
            }
        })*
    };
}

plain!(String, bool, i64, SharedValue, BTreeSet<String>);

/// serde_json would write null for what is no JSON number.
impl Spell for f64 {
    fn spell<S: Serializer>(&self, _: Spelling, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.is_finite() {
            return Err(serde::ser::Error::custom(format!("{self} has no JSON form")));
        }
        serializer.serialize_f64(*self)
    }
}

impl<T: Spell> Spell for Option<T> {
    fn spell<S: Serializer>(&self, spelling: Spelling, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Some(value) => value.spell(spelling, serializer),
            None => serializer.serialize_none(),
        }
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: Spell> Spell for Vec<T> {
    fn spell<S: Serializer>(&self, spelling: Spelling, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.len()))?;
        for item in self {
            list.serialize_element(&Spelled(item, spelling))?;
        }
        list.end()
    }
}

/// Keys of maps are the user's, and stay as they are.
impl<T: Spell> Spell for BTreeMap<String, T> {
    fn spell<S: Serializer>(&self, spelling: Spelling, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (key, value) in self {
            map.serialize_entry(key, &Spelled(value, spelling))?;
        }
        map.end()
    }
}

/// The name of a field, borrowed from the text where it can be.
pub(crate) struct FieldName<'de>(pub(crate) Cow<'de, str>);

impl<'de> Deserialize<'de> for FieldName<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl<'de> Visitor<'de> for NameVisitor {
            type Value = FieldName<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a field")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<FieldName<'de>, E> {
                Ok(FieldName(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<FieldName<'de>, E> {
                Ok(FieldName(Cow::Owned(name.to_owned())))
            }
        }

        deserializer.deserialize_str(NameVisitor)
    }
}

/// Declares a struct whose fields have two spellings: `field_name: Type = "fieldName"`; a field with
/// one spelling has no `=`.
macro_rules! record {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$field_meta:meta])* pub $field:ident: $type:ty $(= $camel:literal)?,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
            /// Fields that this version does not know, as they were.
            pub unknown: std::collections::BTreeMap<String, sessile_state::SharedValue>,
        }

        impl $crate::record::Spell for $name {
            fn spell<S: serde::Serializer>(
                &self,
                spelling: $crate::record::Spelling,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;
                use $crate::record::{Spelled, Spelling};
                let mut map = serializer.serialize_map(None)?;
                $(if !self.$field.is_absent() {
                    let names = [stringify!($field) $(, $camel)?];
                    let name = match spelling {
                        Spelling::Camel => names[names.len() - 1],
                        Spelling::Snake => names[0],
                    };
                    map.serialize_entry(name, &Spelled(&self.$field, spelling))?;
                })*
                for (name, value) in &self.unknown {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::record::Spell::spell(self, $crate::record::Spelling::Camel, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct RecordVisitor;

                impl<'de> serde::de::Visitor<'de> for RecordVisitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("an object with the fields of ", stringify!($name)))
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        let mut record = $name::default();
                        while let Some($crate::record::FieldName(name)) = map.next_key()? {
                            match &*name {
                                $(stringify!($field) $(| $camel)? => record.$field = map.next_value()?,)*
                                _ => {
                                    let value = map.next_value()?;
                                    record.unknown.insert(name.into_owned(), value);
                                }
                            }
                        }
                        Ok(record)
                    }
                }

                deserializer.deserialize_map(RecordVisitor)
            }
        }
    };
}

pub(crate) use record;
