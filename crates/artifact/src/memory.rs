use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use sessile_session::{Clock, Part, SessionKey, SystemClock};

use crate::content::{Kind, is_tombstone, type_of};
use crate::error::ArtifactError;
use crate::path::{ArtifactPath, Owner};
use crate::reference;
use crate::service::{ArtifactKey, ArtifactService, ArtifactVersion, NewArtifact};

/// Artifacts in memory, which live as long as this value.
pub struct MemoryArtifacts {
    clock: Arc<dyn Clock>,
    /// A std mutex: it is never held across an `.await`.
    kept: Mutex<BTreeMap<ArtifactPath, Artifact>>,
}

struct Artifact {
    /// The name under which it was saved last; other names may have the same path.
    name: String,
    versions: Vec<(ArtifactVersion, Part)>,
}

impl MemoryArtifacts {
    /// A service without artifacts.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock))
    }

    /// A service that takes the time of its versions from this clock.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self { clock, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<ArtifactPath, Artifact>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, key: &ArtifactKey, version: Option<u64>) -> Result<Option<Part>, ArtifactError> {
        let path = ArtifactPath::of(key)?;
        let kept = self.kept();
        let versions = kept.get(&path).map_or(&[][..], |artifact| &artifact.versions);
        let found = match version {
            None => versions.last(),
            Some(number) => versions.iter().find(|(known, _)| known.version == number),
        };
        Ok(found.map(|(_, part)| part.clone()).filter(|part| !is_tombstone(part)))
    }
}

impl Default for MemoryArtifacts {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl ArtifactService for MemoryArtifacts {
    async fn save(
        &self,
        key: &ArtifactKey,
        mut artifact: NewArtifact,
    ) -> Result<ArtifactVersion, ArtifactError> {
        let path = ArtifactPath::of(key)?;
        let kind = Kind::of(&key.name, &artifact.part)?;
        reference::target(&key.session, &key.name, &artifact.part)?;
        let is_text = matches!(kind, Kind::Text(_));
        let mime_type = match (&mut artifact.part.inline_data, &artifact.part.file_data) {
            (Some(blob), _) => blob.mime_type.insert(type_of(blob).to_owned()).clone().into(),
            (None, Some(file)) => file.mime_type.clone(),
            (None, None) => is_text.then(|| "text/plain".to_owned()),
        };
        let mut kept = self.kept();
        let kept = kept
            .entry(path.clone())
            .or_insert_with(|| Artifact { name: String::new(), versions: Vec::new() });
        let version = kept.versions.len() as u64;
        let saved = ArtifactVersion {
            version,
            canonical_uri: format!("memory://{}/{}/versions/{version}", path.owner.path(), key.name),
            custom_metadata: artifact.custom_metadata,
            create_time: self.clock.now(),
            mime_type,
        };
        kept.name.clone_from(&key.name);
        kept.versions.push((saved.clone(), artifact.part));
        Ok(saved)
    }

    async fn load(&self, key: &ArtifactKey, version: Option<u64>) -> Result<Option<Part>, ArtifactError> {
        reference::follow(key, version, |key, version| self.look(key, version))
    }

    async fn names(&self, session: &SessionKey) -> Result<Vec<String>, ArtifactError> {
        let own = Owner::session(session)?;
        let user = own.clone().user();
        let kept = self.kept();
        let mut names = Vec::new();
        for owner in [own, user] {
            let first = ArtifactPath { owner: owner.clone(), segments: Vec::new() };
            let of_owner = kept.range(first..).take_while(|(path, _)| path.owner == owner);
            names.extend(of_owner.map(|(_, artifact)| artifact.name.clone()));
        }
        names.sort();
        Ok(names)
    }

    async fn versions(&self, key: &ArtifactKey) -> Result<Vec<ArtifactVersion>, ArtifactError> {
        let path = ArtifactPath::of(key)?;
        let kept = self.kept();
        let versions = kept.get(&path).map_or(&[][..], |artifact| &artifact.versions);
        Ok(versions.iter().map(|(version, _)| version.clone()).collect())
    }

    async fn delete(&self, key: &ArtifactKey) -> Result<(), ArtifactError> {
        let path = ArtifactPath::of(key)?;
        self.kept().remove(&path);
        Ok(())
    }
}

impl fmt::Debug for MemoryArtifacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryArtifacts").finish_non_exhaustive()
    }
}
