use std::collections::BTreeMap;

use async_trait::async_trait;
use sessile_session::{Part, SessionKey};
use sessile_state::SharedValue;

use crate::error::ArtifactError;

/// A place where artifacts are kept.
#[async_trait]
pub trait ArtifactService: Send + Sync {
    /// Keeps a new version; the first has the number 0.
    ///
    /// # Errors
    ///
    /// [`ArtifactError::InvalidName`], [`ArtifactError::InvalidContent`], or that the place failed.
    async fn save(&self, key: &ArtifactKey, artifact: NewArtifact) -> Result<ArtifactVersion, ArtifactError>;

    /// The content of a version, or of the newest; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`ArtifactError::InvalidName`], [`ArtifactError::Corrupt`], or that the place failed.
    async fn load(&self, key: &ArtifactKey, version: Option<u64>) -> Result<Option<Part>, ArtifactError>;

    /// The names that a session sees, sorted: its own, and its user's with their prefix `user:`.
    ///
    /// # Errors
    ///
    /// That the place failed.
    async fn names(&self, session: &SessionKey) -> Result<Vec<String>, ArtifactError>;

    /// What is known of each version, oldest first; none if there is no such artifact.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    async fn versions(&self, key: &ArtifactKey) -> Result<Vec<ArtifactVersion>, ArtifactError>;

    /// Removes all versions. Removing what is not there is no error.
    ///
    /// # Errors
    ///
    /// [`ArtifactError::InvalidName`], or that the place failed.
    async fn delete(&self, key: &ArtifactKey) -> Result<(), ArtifactError>;
}

/// The address of an artifact: a session and a name. A name with the prefix `user:` is found from
/// every session of the user.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArtifactKey {
    /// The session.
    pub session: SessionKey,
    /// The name, prefix included.
    pub name: String,
}

/// A version to be.
#[derive(Debug, Clone, Default)]
pub struct NewArtifact {
    /// Text or bytes.
    pub part: Part,
    /// The application's own notes.
    pub custom_metadata: BTreeMap<String, SharedValue>,
}

/// What is known of a version.
#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactVersion {
    /// Its number, from 0.
    pub version: u64,
    /// Where it is kept.
    pub canonical_uri: String,
    /// The application's own notes.
    pub custom_metadata: BTreeMap<String, SharedValue>,
    /// When it was saved, in Unix seconds.
    pub create_time: f64,
    /// The type of its bytes.
    pub mime_type: Option<String>,
}
