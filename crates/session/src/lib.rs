//! Sessions of AI agents, and the one way to change them.
//!
//! A [`Session`] is a conversation: its [`Event`]s and what it knows. The [`SessionService`] holds
//! the rules once, over any [`Store`]: every change is an event with a delta, committed together
//! or not at all.
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
mod key;
mod memory;
mod page;
mod record;
mod scope_change;
mod scope_write;
mod service;
mod session;
mod store;

pub use change_record::{ChangeRecord, KeyChange};
pub use clock::{Clock, Ids, RandomIds, SystemClock};
pub use commit::{
    Answer, Appended, Commit, Expect, Guard, Guards, Incarnation, OnOverwrite, ScopeGuards, ScopedGuards,
    Scopes, Since, UnknownOnOverwrite,
};
pub use error::{BoxError, SessionError, doing};
pub use evaluate::{
    Evaluated, EvaluatedScope, LONGEST_TOLD, MOST_BRACKETS_TOLD, ValueOf, committed, evaluate, evaluate_scope,
};
pub use event::{
    ActionExtras, AuthConfig, AuthScheme, Blob, Bytes, Compaction, Content, Event, EventActions, EventExtras,
    FileData, FunctionCall, FunctionResponse, JsonAroundDelta, NodeInfo, OPERATIONS, OVERWROTE, Opaque, Part,
    PartExtras, REMOVED, ServerToolCall, ServerToolResponse, ToolConfirmation, UiWidget,
};
pub use key::{InvalidId, MAX_ID, SessionKey};
pub use memory::MemoryStore;
pub use page::{PageWriter, StoredPage, Unreadable};
pub use record::{Extras, Rare, Spell, Spelling, Stored};
pub use scope_change::{ChangedBy, OverwriteNotes, ScopeChange, Undo, changes_from_json};
pub use scope_write::{ScopeKey, ScopeState, ScopeWrite, ScopeWritten};
pub use service::{
    Append, Attempt, Backoff, CreateSession, HistoryPage, ListSessions, OnConflict, Overwrites, Overwrote,
    Page, RestoreSession, Rewind, ScopeHistory, ScopeWatch, SessionService, StateWrite, Watch,
};
pub use session::{Session, SessionState};
pub use store::{
    Address, ChangeWindow, EventWindow, ListPlace, ListQuery, NewSession, SessionEvent, StateMap, Store,
    StoredSession, TrimmedChanges, Version, apply, next_update_time,
};
