//! Sessions in a SQLite file.
//!
//! The tables are those of google-adk, in either of its two layouts, so that Python and Sessile
//! share one file, in turns or at the same time. One thread writes (group commit): it commits
//! everything in its queue in one transaction with a full sync, while readers read.

mod addresses;
mod append;
mod append_answer;
mod batch;
mod cache;
mod connection;
mod create;
mod delete;
mod event_row;
mod failure;
mod foreign_triggers;
mod history;
mod layout;
mod list;
mod migrate;
mod prepared_commit;
mod read;
mod readers;
mod rows;
mod schema;
mod scope_read;
mod scope_write;
mod session_row;
mod shared_state;
mod state_text;
mod statement;
mod store;
mod stored_event;
mod trim;
mod unreadable;
mod writer;
mod writing_thread;

pub use connection::SqliteOptions;
pub use schema::SqliteSchema;
pub use store::SqliteStore;
