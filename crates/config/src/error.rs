use std::fmt;
use std::io;

use sessile_agent::{BuildError, ModelError};

/// Why an application cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The folder's name cannot be an application's.
    #[error("{name:?} cannot be the name of an application: {reason}")]
    Name {
        /// The name.
        name: String,
        /// What names are like.
        reason: &'static str,
    },

    /// There is no application in the folder.
    #[error("{folder} holds no root_agent.yaml")]
    NoAgent {
        /// The folder.
        folder: String,
    },

    /// A file or folder cannot be read.
    #[error("{file} cannot be read: {source}")]
    Read {
        /// The file or folder.
        file: String,
        /// Why.
        source: io::Error,
    },

    /// Something in a file is wrong.
    #[error("{place}: {}{problem}", in_field(field))]
    Invalid {
        /// Where.
        place: Place,
        /// The field, empty if it is about the whole file.
        field: String,
        /// What is wrong, and what to do.
        problem: String,
    },

    /// A model cannot be used.
    #[error("{place}: model: {source}")]
    Model {
        /// Where it is named.
        place: Place,
        /// Why, and what to do.
        source: ModelError,
    },

    /// What the files say does not make an agent.
    #[error("{place}: {source}")]
    Build {
        /// Where the agent begins.
        place: Place,
        /// All that is wrong.
        source: BuildError,
    },
}

fn in_field(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!("{field}: ") }
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, as seen from the folder of applications.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
