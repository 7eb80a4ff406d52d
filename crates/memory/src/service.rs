use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::Serialize;
use sessile_session::{Content, Session};
use sessile_state::SharedValue;

use crate::error::MemoryError;

/// A service that stores memories by application and user.
///
/// An implementation passes `tests/contract.rs`; that is the whole contract.
#[async_trait]
pub trait MemoryService: Send + Sync {
    /// Adds the messages of a session. An event that is added again replaces its earlier memory;
    /// events that were added before and are not in this session object stay.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Backend`]; nothing of the session is added then.
    async fn add_session(&self, session: &Session) -> Result<(), MemoryError>;

    /// Searches the memories of a user; the best match is first. A query without words finds
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Corrupt`], or [`MemoryError::Backend`].
    async fn search(&self, app: &str, user: &str, query: &str) -> Result<Vec<MemoryEntry>, MemoryError>;
}

/// A memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryEntry {
    /// The content of the message.
    pub content: Content,
    /// The author of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The time of the message in UTC, in ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// The id of the memory, if the service assigns ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The application's own metadata.
    pub custom_metadata: BTreeMap<String, SharedValue>,
}
