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
//! let new = CreateSession::new("shop", "ada").with_state([("user:points", json!(10)), ("cart", json!([]))]);
//! let mut session = service.create(new).await?;
//!
//! let mut event = Event::new("user");
//! event.actions = EventActions::from_delta([("cart", json!(["book"])), ("temp:scratch", json!(1))]);
//! service.append(&mut session, event).await?;
//!
//! let session = service.get(session.key(), EventWindow::ALL).await?.expect("it was just made");
//! assert_eq!(session.version(), 1);
//! assert_eq!(session.state().keys().collect::<Vec<_>>(), ["cart", "user:points"]);
//! # Ok::<(), sessile_session::SessionError>(())
//! # }).unwrap();
//! ```

mod clock;
mod error;
mod event;
mod key;
mod memory;
mod page;
mod record;
mod service;
mod session;
mod store;

pub use clock::{Clock, Ids, RandomIds, SystemClock};
pub use error::{BoxError, SessionError, doing};
pub use event::{
    ActionExtras, AuthConfig, AuthScheme, Blob, Bytes, Compaction, Content, Event, EventActions, EventExtras,
    FileData, FunctionCall, FunctionResponse, NodeInfo, Opaque, Part, PartExtras, REMOVED, ServerToolCall,
    ServerToolResponse, ToolConfirmation, UiWidget,
};
pub use key::{InvalidId, MAX_ID, SessionKey};
pub use memory::MemoryStore;
pub use page::{PageWriter, StoredPage, Unreadable};
pub use record::{Extras, Rare, Spell, Spelling, Stored};
pub use service::{
    CreateSession, ListSessions, OnConflict, Page, RestoreSession, Rewind, SessionService, Watch,
};
pub use session::{Session, SessionState};
pub use store::{
    Address, Appended, Commit, EventWindow, Expect, ListPlace, ListQuery, NewSession, ScopeKey, SessionEvent,
    StateMap, Store, StoredSession, Version, apply, next_update_time,
};
