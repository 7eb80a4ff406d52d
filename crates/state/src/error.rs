use crate::operation::OperationError;
use crate::reducer::Reducer;
use crate::schema::SchemaError;

/// Why a read or a write of [`State`](crate::State) was refused.
///
/// Whatever the variant, the state is as it was before the call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The value has no JSON form, so nothing could keep it.
    #[error("cannot store state key `{key}`: {source}")]
    NotJson {
        /// The key that was to be written.
        key: String,
        /// Which part of the value it was, and why.
        source: NotJson,
    },

    /// The key holds a value that is not of the type that was asked for.
    #[error("state key `{key}` holds {found}, which does not read as `{expected}`: {reason}")]
    WrongType {
        /// The key that was read.
        key: String,
        /// The Rust type that was asked for.
        expected: String,
        /// The JSON type that is stored.
        found: &'static str,
        /// What the type itself says about the value, without the value: it may be secret.
        reason: String,
    },

    /// The key is being modified further up this very call stack: waiting for it could never end.
    #[error(
        "state key `{key}` is being modified by the closure that makes this call; \
         return the new value from the closure instead of writing the key inside it"
    )]
    Reentrant {
        /// The key whose `modify` closure made the call.
        key: String,
    },

    /// Another thread's `modify` closure holds the key and cannot finish, or does not.
    #[error(
        "state key `{key}` stays held by a `modify` closure on another thread ({reason}); \
         keep those closures short and let none wait for another"
    )]
    Busy {
        /// The key that could not be written.
        key: String,
        /// Whether the two threads wait for each other, or the wait took too long.
        reason: &'static str,
    },

    /// An operation cannot be applied to what the key holds.
    #[error("cannot change state key `{key}`: {source}")]
    Operation {
        /// The key that was to be changed.
        key: String,
        /// Why, and what to do.
        source: OperationError,
    },

    /// The reducer that is declared for the key cannot express this change as an operation.
    #[error(
        "state key `{key}` has the reducer `{reducer}`, which cannot express {change}; \
         call `replace` to set the key whatever other writers do"
    )]
    Reducer {
        /// The key that was to be changed.
        key: String,
        /// The reducer that is declared for it.
        reducer: &'static str,
        /// What the change would have been.
        change: &'static str,
    },

    /// The state's schema does not allow this write.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

impl StateError {
    pub(crate) fn operation(key: &str, source: OperationError) -> Self {
        Self::Operation { key: key.to_owned(), source }
    }

    pub(crate) fn reducer(key: &str, reducer: Reducer, change: &'static str) -> Self {
        Self::Reducer { key: key.to_owned(), reducer: reducer.name(), change }
    }
}

/// The part of a value that has no JSON form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}{}", self.place())]
pub struct NotJson {
    /// Where in the value, as `.field[0]`; empty for the value itself.
    path: String,
    /// What is wrong there and what to do.
    reason: String,
}

impl NotJson {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { path: String::new(), reason: reason.into() }
    }

    /// Prepends the place in the enclosing value, on the way out of it.
    pub(crate) fn inside(mut self, place: &str) -> Self {
        self.path.insert_str(0, place);
        self
    }

    /// Where in the value the trouble is, as `.field[0]`; empty for the value itself.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// At most 100 characters of the path.
    fn place(&self) -> String {
        match self.path.char_indices().nth(100) {
            _ if self.path.is_empty() => String::new(),
            Some((end, _)) => format!(" (at {}…)", &self.path[..end]),
            None => format!(" (at {})", self.path),
        }
    }
}

impl serde::ser::Error for NotJson {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}

/// What a type says about a value, without texts that come from the value.
pub(crate) fn reason(error: &serde_json::Error) -> String {
    without_texts(&error.to_string())
}

/// A message without texts that come from a value: what stands between quotes may be secret.
pub(crate) fn without_texts(text: &str) -> String {
    let text = match (text.find('"'), text.rfind('"')) {
        (Some(start), Some(end)) if start < end => format!("{}…{}", &text[..=start], &text[end..]),
        _ => text.to_owned(),
    };
    if text.chars().count() > 200 { text.chars().take(200).chain(['…']).collect() } else { text }
}

/// A type's name without module paths: `Option<String>` for `core::option::Option<…>`.
pub(crate) fn short_name(full: &str) -> String {
    let mut short = String::new();
    for character in full.chars() {
        short.push(character);
        if short.ends_with("::") {
            let start = short[..short.len() - 2]
                .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
                .map_or(0, |before| before + 1);
            short.truncate(start);
        }
    }
    short
}
