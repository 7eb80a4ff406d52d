use std::fmt;
use std::io;

use sessile_agent::{BuildError, ModelError};

/// Why an application cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The name of the folder is not a valid name of an application.
    #[error("{name:?} cannot be the name of an application: {reason}")]
    Name {
        /// The name.
        name: String,
        /// What valid names are like.
        reason: &'static str,
    },

    /// There is no application in the folder.
    #[error("{folder} contains no root_agent.yaml")]
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
    #[error("{location}: {}{problem}", in_field(field))]
    Invalid {
        /// The position of the problem.
        location: SourceLocation,
        /// The field, empty if it is about the whole file.
        field: String,
        /// What is wrong, and what to do.
        problem: String,
    },

    /// A model cannot be used.
    #[error("{location}: model: {source}")]
    Model {
        /// Where the file names it.
        location: SourceLocation,
        /// Why, and what to do.
        source: ModelError,
    },

    /// The agent that a file describes cannot be built.
    #[error("{location}: {source}")]
    Build {
        /// Where the agent begins.
        location: SourceLocation,
        /// All problems.
        source: BuildError,
    },
}

fn in_field(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!("{field}: ") }
}

/// A position in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file, relative to the folder of applications.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
