//! Models: the shapes of the objects that requests carry. The same description checks a request and
//! becomes part of the OpenAPI document, so that the two cannot disagree.

mod events;
mod state;

use std::cmp::Ordering;

pub(crate) use events::{CONTENT, EVENT, PART};
pub(crate) use state::{ON_OVERWRITE, STATE_ABSENT, STATE_OPS, STATE_READ, STATE_REMOVE};

/// The fields of an object.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [Field],
    /// Whether fields that are not listed are refused; otherwise they are ignored.
    pub(crate) closed: bool,
    /// Fields of which at least one must be given; none if this is empty.
    pub(crate) some_of: &'static [&'static str],
}

/// A field, in camelCase; its snake_case spelling is read too.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) presence: Presence,
    pub(crate) about: &'static str,
}

/// Whether a field may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Required,
    /// It may be left out, or null.
    Optional,
    /// It may be left out, but is not null.
    Defaulted,
}

/// The type of a value.
#[derive(Debug)]
pub(crate) enum Kind {
    Text,
    /// One of these texts.
    Word(&'static [&'static str]),
    Flag,
    Integer,
    Number,
    /// Base64, in either alphabet.
    Bytes,
    /// An object with any keys.
    Map,
    /// An object with any keys and values of one kind.
    MapOf(&'static Kind),
    /// The notes of an application: an object with any keys but those that Sessile itself writes.
    Notes,
    /// Operations on a state key: one, or a list of them.
    Operations,
    /// Any value.
    Any,
    List(&'static Kind),
    Object(&'static Model),
}

impl Model {
    /// An object whose other fields are ignored.
    pub(crate) const fn open(name: &'static str, fields: &'static [Field]) -> Self {
        Self { name, fields, closed: false, some_of: &[] }
    }

    /// An object whose other fields are refused.
    pub(crate) const fn closed(name: &'static str, fields: &'static [Field]) -> Self {
        Self { name, fields, closed: true, some_of: &[] }
    }

    /// With at least one of these fields; for a body without any, the first is reported as missing.
    pub(crate) const fn with_some_of(mut self, names: &'static [&'static str]) -> Self {
        self.some_of = names;
        self
    }
}

impl Field {
    pub(crate) const fn required(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self { name, kind, presence: Presence::Required, about }
    }

    pub(crate) const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self { name, kind, presence: Presence::Optional, about }
    }

    pub(crate) const fn defaulted(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self { name, kind, presence: Presence::Defaulted, about }
    }

    /// Whether this is the field's name in one of its spellings.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        is_called(self.name, name)
    }
}

/// Whether a name is this one in one of its spellings: `stateDelta` or `state_delta`.
pub(crate) fn is_called(camel: &str, name: &str) -> bool {
    // Every field of a model is compared with every field of a request, so the lengths are compared
    // first: the snake_case spelling is longer, by an underscore for each capital.
    match name.len().cmp(&camel.len()) {
        Ordering::Less => false,
        Ordering::Equal => name == camel,
        Ordering::Greater => is_snake_of(camel, name),
    }
}

fn is_snake_of(camel: &str, name: &str) -> bool {
    let mut rest = name.bytes();
    let has_mark_and_letter = |letter: u8| match letter.is_ascii_uppercase() {
        true => rest.next() == Some(b'_') && rest.next() == Some(letter.to_ascii_lowercase()),
        false => rest.next() == Some(letter),
    };
    camel.bytes().all(has_mark_and_letter) && rest.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::is_called;

    #[test]
    fn a_name_has_two_spellings_and_no_third() {
        for (camel, name) in [
            ("stateDelta", "stateDelta"),
            ("stateDelta", "state_delta"),
            ("rewindBeforeInvocationId", "rewind_before_invocation_id"),
            ("id", "id"),
            ("dark_mode", "dark_mode"),
        ] {
            assert!(is_called(camel, name), "{camel} {name}");
        }
        for (camel, name) in [
            ("stateDelta", "statedelta"),
            ("stateDelta", "stateDelt"),
            ("stateDelta", "state_delt"),
            ("stateDelta", "state_deltas"),
            ("stateDelta", "state_Delta"),
            ("stateDelta", "State_delta"),
            ("stateDelta", "state__delta"),
            ("stateDelta", "state_d\u{e9}lta"),
            ("id", "_id"),
            ("id", ""),
            ("dark_mode", "darkMode"),
        ] {
            assert!(!is_called(camel, name), "{camel} {name}");
        }
    }
}
