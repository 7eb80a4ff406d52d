//! Artifacts in a folder, in the layout of google-adk's `FileArtifactService`:
//!
//! ```text
//! apps/{app}/users/{user}/[sessions/{session}/]artifacts/{name}/versions/{n}/{last part of name}
//!                                                                           /metadata.json
//! ```
//!
//! A version is written in a folder of its own under `.sessile`, which no name leads to, and
//! becomes visible by one rename. `versions/.{n}.pending` reserves its number among all processes,
//! google-adk's too. What a crash leaves behind is never read.

mod folder;
mod metadata;
mod read;
mod save;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use sessile_session::{Clock, Part, SessionKey, SystemClock};

use crate::error::{ArtifactError, doing};
use crate::path::{ArtifactPath, Owner};
use crate::reference;
use crate::service::{ArtifactKey, ArtifactService, ArtifactVersion, NewArtifact};
use folder::Root;

/// Artifacts in a folder that google-adk's `FileArtifactService` can use at the same time.
///
/// A saved version is on the disk when `save` returns; a crash leaves a version complete or not at
/// all. Nothing outside of the folder is read or written: names that lead out of it are refused,
/// and so are symbolic links below it.
pub struct FileArtifacts {
    root: Root,
    clock: Arc<dyn Clock>,
}

impl FileArtifacts {
    /// Opens a folder, and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// [`ArtifactError::Backend`] if it cannot be created or is not a folder.
    pub async fn open(root: impl Into<PathBuf>) -> Result<Self, ArtifactError> {
        let root = root.into();
        let root = blocking("open the folder of artifacts", move || Root::open(&root)).await?;
        Ok(Self { root, clock: Arc::new(SystemClock) })
    }

    /// With this clock for the time of new versions.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }
}

/// Runs file operations on a thread that may block.
async fn blocking<T: Send + 'static>(
    action: &'static str,
    work: impl FnOnce() -> Result<T, ArtifactError> + Send + 'static,
) -> Result<T, ArtifactError> {
    tokio::task::spawn_blocking(work).await.map_err(doing(action))?
}

#[async_trait]
impl ArtifactService for FileArtifacts {
    async fn save(&self, key: &ArtifactKey, artifact: NewArtifact) -> Result<ArtifactVersion, ArtifactError> {
        let path = ArtifactPath::of(key)?;
        reference::target(&key.session, &key.name, &artifact.part)?;
        let (root, name, now) = (self.root.clone(), key.name.clone(), self.clock.now());
        blocking("save an artifact", move || save::save(&root, &path, &name, &artifact, now)).await
    }

    async fn load(&self, key: &ArtifactKey, version: Option<u64>) -> Result<Option<Part>, ArtifactError> {
        let (root, key) = (self.root.clone(), key.clone());
        blocking("load an artifact", move || {
            reference::follow(&key, version, |key, version| {
                read::load(&root, &ArtifactPath::of(key)?, version)
            })
        })
        .await
    }

    async fn names(&self, session: &SessionKey) -> Result<Vec<String>, ArtifactError> {
        let own = Owner::session(session)?;
        let (root, session) = (self.root.clone(), session.clone());
        blocking("list artifacts", move || {
            let mut names = read::names(&root, &own, &session)?;
            names.extend(read::names(&root, &own.user(), &session)?);
            names.sort();
            Ok(names)
        })
        .await
    }

    async fn versions(&self, key: &ArtifactKey) -> Result<Vec<ArtifactVersion>, ArtifactError> {
        let (root, path) = (self.root.clone(), ArtifactPath::of(key)?);
        blocking("list the versions of an artifact", move || read::versions(&root, &path)).await
    }

    async fn delete(&self, key: &ArtifactKey) -> Result<(), ArtifactError> {
        let (root, path) = (self.root.clone(), ArtifactPath::of(key)?);
        blocking("delete an artifact", move || save::delete(&root, &path)).await
    }
}

impl fmt::Debug for FileArtifacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileArtifacts").field("root", &self.root).finish_non_exhaustive()
    }
}
