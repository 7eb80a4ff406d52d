use sessile_session::{BoxError, SessionKey};

/// Why an artifact could not be saved or read. A version is saved completely or not at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// The name cannot be used.
    #[error("the artifact name {name:?} cannot be used: {reason}")]
    InvalidName {
        /// The name; a long one is cut.
        name: String,
        /// Why, and what to do.
        reason: String,
    },

    /// This session cannot have artifacts.
    #[error("the session {session} cannot have artifacts: {reason}")]
    InvalidSession {
        /// The session.
        session: SessionKey,
        /// Why, and what to do.
        reason: String,
    },

    /// The content cannot be saved.
    #[error("the artifact {name:?} cannot be kept: {reason}")]
    InvalidContent {
        /// The name.
        name: String,
        /// Why, and what to do.
        reason: String,
    },

    /// A reference to another artifact cannot be followed.
    #[error("the artifact {name:?} refers to {uri:?}, which cannot be followed: {reason}")]
    InvalidReference {
        /// The name of the requested artifact.
        name: String,
        /// What it refers to.
        uri: String,
        /// Why, and what to do.
        reason: String,
    },

    /// Stored data is invalid.
    #[error("the artifact {name:?} is corrupt at {place}: {source}")]
    Corrupt {
        /// The name.
        name: String,
        /// Where.
        place: String,
        /// What is wrong with it.
        source: BoxError,
    },

    /// The storage failed.
    #[error("cannot {action}: {source}")]
    Backend {
        /// What was being done.
        action: &'static str,
        /// Its error.
        source: BoxError,
    },
}

/// Converts an error of the storage, with the action that failed.
pub(crate) fn doing<E: Into<BoxError>>(action: &'static str) -> impl FnOnce(E) -> ArtifactError {
    move |source| ArtifactError::Backend { action, source: source.into() }
}
