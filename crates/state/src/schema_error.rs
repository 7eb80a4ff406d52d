use std::fmt;

use serde_json::Number;

/// Why a schema refuses a change.
#[derive(Debug)]
#[non_exhaustive]
pub enum SchemaError {
    /// The schema does not declare the key.
    Undeclared {
        /// The key that was to be written.
        key: String,
        /// The JSON type of the value it was to hold, or the operation, with its article.
        given: &'static str,
        /// The declared key that looks most like it.
        nearest: Option<String>,
    },

    /// The value is not of the declared type.
    WrongType {
        /// The key that was to be written.
        key: String,
        /// The type in the schema.
        declared: String,
        /// The JSON type of the value.
        given: &'static str,
        /// The deserializer's reason, without the value; empty if the types explain it.
        reason: String,
    },

    /// The number is outside the declared bounds.
    OutOfBounds {
        /// The key that was to be written.
        key: String,
        /// The type in the schema.
        declared: String,
        /// The number.
        given: Number,
        /// The bound that it crosses.
        bound: Number,
        /// Whether the bound is the minimum.
        below: bool,
    },

    /// No value of the declared type can come from this operation.
    WrongOperand {
        /// The key that was to be changed.
        key: String,
        /// The type in the schema.
        declared: String,
        /// The name of the operation.
        operation: &'static str,
        /// What is wrong with its operand.
        reason: String,
    },
}

impl SchemaError {
    /// The key that was to be written, prefix included.
    pub fn key(&self) -> &str {
        match self {
            Self::Undeclared { key, .. }
            | Self::WrongType { key, .. }
            | Self::OutOfBounds { key, .. }
            | Self::WrongOperand { key, .. } => key,
        }
    }

    /// What is wrong, for a sentence that names the key already: "it …".
    pub fn reason(&self) -> String {
        match self {
            Self::Undeclared { given, nearest, .. } => {
                format!("is not declared in the schema, and {given} was given{}", hint(nearest))
            }
            other => other.text(),
        }
    }

    /// The message without the key at its beginning.
    fn text(&self) -> String {
        match self {
            Self::Undeclared { given, nearest, .. } => {
                format!("({given}) is not declared in the schema{}", hint(nearest))
            }
            Self::WrongType { declared, given, reason, .. } => {
                let reason = if reason.is_empty() { reason.clone() } else { format!(": {reason}") };
                format!("is declared as `{declared}` and cannot hold {given}{reason}")
            }
            Self::OutOfBounds { declared, given, bound, below, .. } => {
                format!("is declared as `{declared}` and cannot hold {}", out_of_bounds(given, bound, *below))
            }
            Self::WrongOperand { declared, operation, reason, .. } => {
                format!("is declared as `{declared}` and cannot take this `{operation}`: {reason}")
            }
        }
    }
}

/// A number and the bound that it crosses, for messages.
pub(crate) fn out_of_bounds(given: &Number, bound: &Number, below: bool) -> String {
    format!("{given}, which is {} {bound}", if below { "below the minimum" } else { "above the maximum" })
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state key `{}` {}", self.key(), self.text())
    }
}

impl std::error::Error for SchemaError {}

fn hint(nearest: &Option<String>) -> String {
    match nearest {
        Some(key) => format!("; did you mean `{key}`?"),
        None => "; declare it, or check its spelling".to_owned(),
    }
}
