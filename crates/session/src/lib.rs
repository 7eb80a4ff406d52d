//! Sessions of AI agents, and the one way to change them.
//!
//! A [`Session`] is a conversation: its [`Event`]s and its state. The [`SessionService`] implements
//! the rules once, over any [`Store`]: every change is an event with a delta, and both are
//! committed atomically.
//!
//! ```
//! use serde_json::json;
//! use sessile_session::{CreateSession, Event, EventActions, EventWindow, MemoryStore, SessionService};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let service = SessionService::new(MemoryStore::new());
//! let new = CreateSession::new("shop", "ada").with_state(json!({"user:points": 10, "cart": []}));
//! let mut session = service.create(new).await?;
//!
//! let actions = EventActions::from_delta(json!({"cart": ["book"], "temp:scratch": 1}));
//! service.append(&mut session, Event::new("user").with_actions(actions)).await?;
//!
//! let session = service.get(session.key(), EventWindow::ALL).await?.expect("it was just made");
//! assert_eq!(session.version(), 1);
//! assert_eq!(session.state().keys().collect::<Vec<_>>(), ["cart", "user:points"]);
//! # Ok::<(), sessile_session::SessionError>(())
//! # }).unwrap();
//! ```

mod change_record;
mod clock;
mod commit;
mod error;
mod evaluate;
mod event;
mod guard;
mod key;
mod memory;
mod page;
mod record;
mod scope_change;
mod scope_write;
mod service;
mod session;
mod state_map;
mod store;
mod stored_session;
mod version;
mod window;

// For applications.
pub use change_record::{ChangeRecord, KeyChange};
pub use clock::{Clock, Ids, RandomIds, SystemClock};
pub use commit::Expect;
pub use error::{BoxError, SessionError};
pub use event::{
    ActionExtras, AuthConfig, AuthScheme, Blob, Bytes, Compaction, Content, Event, EventActions, EventExtras,
    FileData, FunctionCall, FunctionResponse, NodeInfo, OPERATIONS, OVERWROTE, Opaque, Part, PartExtras,
    REMOVED, ServerToolCall, ServerToolResponse, ToolConfirmation, UiWidget,
};
pub use guard::{Guard, Guards, OnOverwrite, UnknownOnOverwrite};
pub use key::{Address, InvalidId, MAX_ID, ScopeKey, SessionKey};
pub use memory::MemoryStore;
pub use page::Unreadable;
pub use record::{Extras, Rare, Spell, Spelling, Stored};
pub use scope_change::{ChangedBy, OverwriteNotes, ScopeChange};
pub use scope_write::ScopeState;
pub use service::{
    Append, Attempt, Backoff, CreateSession, HistoryPage, ListSessions, OnConflict, Overwrites, Overwrote,
    Page, RestoreSession, Rewind, ScopeHistory, ScopeWatch, SessionService, StateWrite, Watch,
};
pub use session::{Session, SessionState};
pub use state_map::StateMap;
pub use stored_session::SessionEvent;
pub use version::{Incarnation, Version};
pub use window::{ChangeWindow, EventWindow};

// For authors of stores.
pub use commit::{Answer, Appended, Commit, Scopes, Since};
pub use error::doing;
pub use evaluate::{
    Evaluated, EvaluatedScope, LONGEST_TOLD, MOST_BRACKETS_TOLD, ValueOf, committed, evaluate, evaluate_scope,
};
pub use event::JsonAroundDelta;
pub use guard::{ScopeGuards, ScopedGuards};
pub use page::{ListPlace, ListQuery, PageWriter, StoredPage};
pub use scope_change::{Undo, changes_from_json};
pub use scope_write::{ScopeWrite, ScopeWritten};
pub use state_map::apply;
pub use store::{Store, TrimmedChanges, next_update_time};
pub use stored_session::{NewSession, StoredSession};
