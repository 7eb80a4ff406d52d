use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::Serialize;
use sessile_session::{Content, Session};
use sessile_state::SharedValue;

use crate::error::MemoryError;

/// A place where things are remembered, by application and user.
///
/// An implementation passes `tests/contract.rs`; that is the whole contract.
#[async_trait]
pub trait MemoryService: Send + Sync {
    /// Remembers what was said in the events of a session. An event that is added again replaces
    /// what was remembered of it; events that were added before and are not in this reading stay.
    ///
    /// # Errors
    ///
    /// That the place failed; nothing of the session is added then.
    async fn add_session(&self, session: &Session) -> Result<(), MemoryError>;

    /// What a user's sessions say about a query, best first. A query without words finds nothing.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Corrupt`], or that the place failed.
    async fn search(&self, app: &str, user: &str, query: &str) -> Result<Vec<MemoryEntry>, MemoryError>;
}

/// Something that was remembered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryEntry {
    /// What was said.
    pub content: Content,
    /// Who said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// When, as an ISO 8601 time in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// The id of the memory, if its place gives ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The application's own notes.
    pub custom_metadata: BTreeMap<String, SharedValue>,
}
