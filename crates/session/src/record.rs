//! JSON objects with known fields in two spellings, and unknown fields that are kept.
//!
//! A record is declared once, with [`record!`]. It reads both spellings of its fields; it writes
//! camelCase through `Serialize`, as clients expect, and snake_case through [`Stored`], as
//! google-adk stores it. Only names of fields are translated, never keys of maps.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::{Deref, DerefMut};

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

/// NaN and infinity are an error: serde_json would write null for them.
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

impl<T: Spell> Spell for Box<T> {
    fn spell<S: Serializer>(&self, spelling: Spelling, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).spell(spelling, serializer)
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

/// Fields that few records have. They are allocated only when one of them is set.
///
/// It reads and writes as the struct it holds (`Deref`).
#[derive(Clone)]
pub struct Rare<T>(Option<Box<T>>);

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// A type that can be [`Rare`]: it has a value for when no field is set.
pub trait Extras: Default + PartialEq + 'static {
    /// The value of all that have nothing set.
    fn empty() -> &'static Self;
}

impl<T: Extras> Rare<T> {
    /// Whether the fields are allocated.
    pub(crate) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// Sets a field that was read; the fields are allocated only if it differs from its default.
    pub(crate) fn set<V: Default + PartialEq>(&mut self, value: V, place: impl FnOnce(&mut T) -> &mut V) {
        if self.0.is_some() || value != V::default() {
            *place(self) = value;
        }
    }
}

impl<T> From<T> for Rare<T> {
    fn from(extras: T) -> Self {
        Self(Some(Box::new(extras)))
    }
}

impl<T: Extras> Deref for Rare<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or_else(|| T::empty())
    }
}

impl<T: Extras> DerefMut for Rare<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T: Extras> PartialEq for Rare<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.0.is_none() && other.0.is_none()) || **self == **other
    }
}

impl<T: Extras + fmt::Debug> fmt::Debug for Rare<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(extras) => extras.fmt(f),
            None => f.write_str("none"),
        }
    }
}

/// What a record does beside writing and reading its fields one by one.
pub(crate) trait Codec: Clone {
    /// The record that is written in place of this one, if it is spelled with more fields than it
    /// has.
    fn written(&self, _spelling: Spelling) -> Option<Self> {
        None
    }

    /// Decodes fields that belong together, after all were read.
    ///
    /// # Errors
    ///
    /// A message that says what cannot be decoded.
    fn understood(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// Declares a struct whose fields have two spellings: `field_name: Type = "fieldName"`; a field
/// with one spelling has no `=`, and one that is read as another type names it with `as`. Fields
/// after `rare` are in a struct of their own, which the record holds only if one of them is set;
/// they are used as if they were the record's. Fields after `unspelled` have no name in JSON; the
/// record's [`Codec`] says how they are written and read. A record that implements [`Codec`] itself
/// begins with `codec by hand;`.
macro_rules! record {
    (codec by hand; $($record:tt)*) => {
        $crate::record::record_struct! { $($record)* }
    };
    ($(#[$meta:meta])* pub struct $name:ident $($record:tt)*) => {
        $crate::record::record_struct! { $(#[$meta])* pub struct $name $($record)* }
        impl $crate::record::Codec for $name {}
    };
}

/// The struct, or the two structs, that [`record!`] declares.
macro_rules! record_struct {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$field_meta:meta])* pub $field:ident: $type:ty $(= $camel:literal)? $(as $read:ty)?,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
            /// Fields that this version does not know, unchanged.
            pub unknown: std::collections::BTreeMap<String, sessile_state::SharedValue>,
        }

        impl $name {
            /// Where the fields are that few have: none of them is elsewhere.
            fn rest(&self) -> &Self {
                self
            }
        }

        $crate::record::record_codec! { $name { $($field: $type $(= $camel)? $(as $read)?,)* } {} }
    };

    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$field_meta:meta])* pub $field:ident: $type:ty $(= $camel:literal)? $(as $read:ty)?,)*
    }
    $(unspelled {
        $($(#[$unspelled_meta:meta])* pub $unspelled:ident: $unspelled_type:ty,)*
    })?
    $(#[$extras_meta:meta])* rare $extras:ident {
        $($(#[$rare_meta:meta])* pub $rare:ident: $rare_type:ty $(= $rare_camel:literal)?,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
            $($($(#[$unspelled_meta])* pub $unspelled: $unspelled_type,)*)?
            /// The fields that few have; they are read and written as if they were here.
            pub extras: $crate::record::Rare<$extras>,
        }

        $(#[$extras_meta])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $extras {
            $($(#[$rare_meta])* pub $rare: $rare_type,)*
            /// Fields that this version does not know, unchanged.
            pub unknown: std::collections::BTreeMap<String, sessile_state::SharedValue>,
        }

        impl $crate::record::Extras for $extras {
            fn empty() -> &'static Self {
                static EMPTY: std::sync::LazyLock<$extras> = std::sync::LazyLock::new($extras::default);
                &EMPTY
            }
        }

        impl $name {
            /// Where the fields are that few have.
            fn rest(&self) -> &$extras {
                &self.extras
            }
        }

        impl std::ops::Deref for $name {
            type Target = $extras;

            fn deref(&self) -> &$extras {
                &self.extras
            }
        }

        impl std::ops::DerefMut for $name {
            fn deref_mut(&mut self) -> &mut $extras {
                &mut self.extras
            }
        }

        $crate::record::record_codec! {
            $name { $($field: $type $(= $camel)? $(as $read)?,)* }
            { $($rare: $rare_type $(= $rare_camel)?,)* }
        }
    };
}

/// Writes and reads what [`record!`] declares.
macro_rules! record_codec {
    ($name:ident
        { $($field:ident: $type:ty $(= $camel:literal)? $(as $read:ty)?,)* }
        { $($rare:ident: $rare_type:ty $(= $rare_camel:literal)?,)* }
    ) => {
        impl $crate::record::Spell for $name {
            fn spell<S: serde::Serializer>(
                &self,
                spelling: $crate::record::Spelling,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;
                use $crate::record::{Codec, Spelled, Spelling};
                if let Some(written) = Codec::written(self, spelling) {
                    return written.spell(spelling, serializer);
                }
                let mut map = serializer.serialize_map(None)?;
                macro_rules! write {
                    ($value:expr, $names:expr) => {
                        if !$value.is_absent() {
                            let names = $names;
                            let name = match spelling {
                                Spelling::Camel => names[names.len() - 1],
                                Spelling::Snake => names[0],
                            };
                            map.serialize_entry(name, &Spelled(&$value, spelling))?;
                        }
                    };
                }
                $(write!(self.$field, [stringify!($field) $(, $camel)?]);)*
                let rest = self.rest(); // once, and not for each of its fields
                $(write!(rest.$rare, [stringify!($rare) $(, $rare_camel)?]);)*
                for (name, value) in &rest.unknown {
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
                                $(stringify!($field) $(| $camel)? => {
                                    record.$field = $crate::record::next_value!(map, $type $(as $read)?);
                                })*
                                $(stringify!($rare) $(| $rare_camel)? => {
                                    let value: $rare_type = map.next_value()?;
                                    record.extras.set(value, |extras| &mut extras.$rare);
                                })*
                                _ => {
                                    let value = map.next_value()?;
                                    record.unknown.insert(name.into_owned(), value);
                                }
                            }
                        }
                        $crate::record::Codec::understood(&mut record).map_err(serde::de::Error::custom)?;
                        Ok(record)
                    }
                }

                deserializer.deserialize_map(RecordVisitor)
            }
        }
    };
}

/// Reads the value of a field, as its own type or as the one that stands for it.
macro_rules! next_value {
    ($map:ident, $type:ty) => {
        $map.next_value()?
    };
    ($map:ident, $type:ty as $read:ty) => {
        <$type>::from($map.next_value::<$read>()?)
    };
}

pub(crate) use {next_value, record, record_codec, record_struct};
