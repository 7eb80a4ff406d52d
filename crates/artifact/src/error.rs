use sessile_session::BoxError;

/// Why an artifact could not be kept or read. Nothing is half written then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// The name cannot be used.
    #[error("the artifact name {name:?} cannot be used: {reason}")]
    InvalidName {
        /// The name.
        name: String,
        /// Why, and what to do.
        reason: String,
    },

    /// The content cannot be kept.
    #[error("the artifact {name:?} cannot be kept: {reason}")]
    InvalidContent {
        /// The name.
        name: String,
        /// Why, and what to do.
        reason: String,
    },

    /// What is kept cannot be understood.
    #[error("the artifact {name:?} is corrupt at {place}: {source}")]
    Corrupt {
        /// The name.
        name: String,
        /// Where.
        place: String,
        /// What is wrong with it.
        source: BoxError,
    },

    /// The place where artifacts are kept failed.
    #[error("cannot {action}: {source}")]
    Backend {
        /// What was being done.
        action: &'static str,
        /// What it says.
        source: BoxError,
    },
}
