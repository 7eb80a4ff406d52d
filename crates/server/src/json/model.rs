/// What an object of a request looks like. The same description checks requests and becomes part
/// of the OpenAPI document, so that the two cannot disagree.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [Field],
    /// Whether fields that are not listed are refused; otherwise they are not looked at.
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

/// What a value must be.
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
    /// An object whose other fields are not looked at.
    pub(crate) const fn open(name: &'static str, fields: &'static [Field]) -> Self {
        Self { name, fields, closed: false, some_of: &[] }
    }

    /// An object without other fields.
    pub(crate) const fn closed(name: &'static str, fields: &'static [Field]) -> Self {
        Self { name, fields, closed: true, some_of: &[] }
    }

    /// With at least one of these fields; a body without them is told that the first is missing.
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
    let snake = camel.chars().flat_map(|character| {
        let mark = character.is_ascii_uppercase().then_some('_');
        mark.into_iter().chain([character.to_ascii_lowercase()])
    });
    name == camel || (name.contains('_') && name.chars().eq(snake))
}
