use std::collections::BTreeMap;

use async_trait::async_trait;
use sessile_session::{Content, Session};
use sessile_state::SharedValue;

use crate::error::MemoryError;

/// A place where things are remembered, by application and user.
#[async_trait]
pub trait MemoryService: Send + Sync {
    /// Remembers what was said in a session; a session that is added again replaces what was
    /// remembered of it.
    ///
    /// # Errors
    ///
    /// That the place failed.
    async fn add_session(&self, session: &Session) -> Result<(), MemoryError>;

    /// What a user's sessions say about a query, best first.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Corrupt`], or that the place failed.
    async fn search(&self, app: &str, user: &str, query: &str) -> Result<Vec<MemoryEntry>, MemoryError>;
}

/// Something that was remembered.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryEntry {
    /// What was said.
    pub content: Content,
    /// Who said it.
    pub author: Option<String>,
    /// When, as an ISO 8601 time.
    pub timestamp: Option<String>,
    /// The id of the memory, if its place gives ids.
    pub id: Option<String>,
    /// The application's own notes.
    pub custom_metadata: BTreeMap<String, SharedValue>,
}
