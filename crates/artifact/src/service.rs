use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::Serialize;
use sessile_session::{Part, SessionKey};
use sessile_state::SharedValue;

use crate::error::ArtifactError;

/// A service that stores artifacts.
///
/// An implementation passes `tests/contract.rs`; that is the whole contract.
#[async_trait]
pub trait ArtifactService: Send + Sync {
    /// Saves a new version. The first has the number 0, and every later one a higher number than
    /// those before it.
    ///
    /// # Errors
    ///
    /// [`ArtifactError::InvalidName`], [`ArtifactError::InvalidSession`],
    /// [`ArtifactError::InvalidContent`], or [`ArtifactError::Backend`].
    async fn save(&self, key: &ArtifactKey, artifact: NewArtifact) -> Result<ArtifactVersion, ArtifactError>;

    /// The content of a version, or of the newest; `None` if there is none. A reference to another
    /// artifact is followed.
    ///
    /// # Errors
    ///
    /// [`ArtifactError::InvalidName`], [`ArtifactError::InvalidSession`],
    /// [`ArtifactError::InvalidReference`], [`ArtifactError::Corrupt`], or
    /// [`ArtifactError::Backend`].
    async fn load(&self, key: &ArtifactKey, version: Option<u64>) -> Result<Option<Part>, ArtifactError>;

    /// The names that a session sees, sorted: its own, and its user's with their prefix `user:`.
    ///
    /// # Errors
    ///
    /// [`ArtifactError::InvalidSession`], or [`ArtifactError::Backend`].
    async fn names(&self, session: &SessionKey) -> Result<Vec<String>, ArtifactError>;

    /// The metadata of each version, oldest first; empty if there is no such artifact.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    async fn versions(&self, key: &ArtifactKey) -> Result<Vec<ArtifactVersion>, ArtifactError>;

    /// The metadata of a version, or of the newest; `None` if there is none.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    async fn version(
        &self,
        key: &ArtifactKey,
        version: Option<u64>,
    ) -> Result<Option<ArtifactVersion>, ArtifactError> {
        let mut versions = self.versions(key).await?;
        Ok(match version {
            None => versions.pop(),
            Some(number) => versions.into_iter().find(|known| known.version == number),
        })
    }

    /// Removes all versions. Removing an artifact that does not exist is not an error.
    ///
    /// # Errors
    ///
    /// [`ArtifactError::InvalidName`], [`ArtifactError::InvalidSession`], or
    /// [`ArtifactError::Backend`].
    async fn delete(&self, key: &ArtifactKey) -> Result<(), ArtifactError>;
}

/// The address of an artifact: a session and a name. A name with the prefix `user:` is found from
/// every session of the user.
///
/// A name may have folders (`plans/house.txt`; a backslash counts as a slash). It may not be
/// rooted, contain `..` or U+0000, be longer than 1,024 bytes or 255 between two slashes, have a
/// folder called `versions`, or end in `metadata.json`: the last two have a meaning on disk.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArtifactKey {
    /// The session.
    pub session: SessionKey,
    /// The name, prefix included.
    pub name: String,
}

impl ArtifactKey {
    /// The artifact of this name that the session sees.
    pub fn new(session: &SessionKey, name: impl Into<String>) -> Self {
        Self { session: session.clone(), name: name.into() }
    }
}

/// A version to save.
#[derive(Debug, Clone, Default)]
pub struct NewArtifact {
    /// A text, bytes, or a reference to a file.
    pub part: Part,
    /// The application's own metadata.
    pub custom_metadata: BTreeMap<String, SharedValue>,
}

impl NewArtifact {
    /// A version with this content and no metadata.
    pub fn new(part: Part) -> Self {
        Self { part, custom_metadata: BTreeMap::new() }
    }
}

/// The metadata of a version. It serializes as ADK's clients expect it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactVersion {
    /// Its number, from 0.
    pub version: u64,
    /// Where it is stored.
    pub canonical_uri: String,
    /// The application's own metadata.
    pub custom_metadata: BTreeMap<String, SharedValue>,
    /// When it was saved, in Unix seconds.
    pub create_time: f64,
    /// The type of its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}
