//! Artifacts and memories, from the contexts that may use them.

use std::sync::Arc;

use sessile_artifact::{ArtifactKey, ArtifactService, NewArtifact};
use sessile_memory::{MemoryEntry, MemoryService};
use sessile_session::Part;

use super::callback::CallbackContext;
use super::readonly::ReadonlyContext;
use crate::error::AgentError;

impl ReadonlyContext {
    /// The content of an artifact's version, or of its newest; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`AgentError::Missing`] without a service for artifacts; [`AgentError::Artifact`].
    pub async fn load_artifact(&self, name: &str, version: Option<u64>) -> Result<Option<Part>, AgentError> {
        Ok(self.artifacts()?.load(&self.artifact(name), version).await?)
    }

    /// The names of the artifacts that the session sees, sorted.
    ///
    /// # Errors
    ///
    /// [`AgentError::Missing`] without a service for artifacts; [`AgentError::Artifact`].
    pub async fn list_artifacts(&self) -> Result<Vec<String>, AgentError> {
        Ok(self.artifacts()?.names(self.session_key()).await?)
    }

    /// Searches the memories of the user; the best match is first.
    ///
    /// # Errors
    ///
    /// [`AgentError::Missing`] without a service for memories; [`AgentError::Memory`].
    pub async fn search_memory(&self, query: &str) -> Result<Vec<MemoryEntry>, AgentError> {
        Ok(self.memory()?.search(self.app(), self.user(), query).await?)
    }

    /// Adds the events of the session so far to the memory.
    ///
    /// # Errors
    ///
    /// [`AgentError::Missing`] without a service for memories; [`AgentError::Memory`].
    pub async fn add_session_to_memory(&self) -> Result<(), AgentError> {
        self.invocation.load_all().await?;
        Ok(self.memory()?.add_session(&self.session().await).await?)
    }

    pub(crate) fn artifacts(&self) -> Result<&Arc<dyn ArtifactService>, AgentError> {
        self.invocation.services.artifacts.as_ref().ok_or(AgentError::Missing {
            what: "service for artifacts",
            how: "Runner::builder(…).artifacts(…)",
        })
    }

    pub(crate) fn artifact(&self, name: &str) -> ArtifactKey {
        ArtifactKey { session: self.session_key().clone(), name: name.to_owned() }
    }

    fn memory(&self) -> Result<&Arc<dyn MemoryService>, AgentError> {
        self.invocation
            .services
            .memory
            .as_ref()
            .ok_or(AgentError::Missing {
                what: "service for memories", how: "Runner::builder(…).memory(…)"
            })
    }
}

impl CallbackContext {
    /// Saves an artifact, and records the new version in the event. Returns the version.
    ///
    /// # Errors
    ///
    /// [`AgentError::Missing`] without a service for artifacts; [`AgentError::Artifact`].
    pub async fn save_artifact(&self, name: &str, part: Part) -> Result<u64, AgentError> {
        self.save_artifact_with(name, NewArtifact { part, ..NewArtifact::default() }).await
    }

    /// [`save_artifact`](Self::save_artifact), with the application's own metadata.
    ///
    /// # Errors
    ///
    /// As [`save_artifact`](Self::save_artifact).
    pub async fn save_artifact_with(&self, name: &str, artifact: NewArtifact) -> Result<u64, AgentError> {
        let saved = self.artifacts()?.save(&self.artifact(name), artifact).await?;
        let version = i64::try_from(saved.version).map_err(AgentError::other)?;
        self.with_actions(|actions| actions.artifact_delta.insert(name.to_owned(), version));
        Ok(saved.version)
    }
}
