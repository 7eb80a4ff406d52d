//! Sessions in a SQLite file.
//!
//! The tables are those of google-adk, in either of its two layouts, so that Python and Sessile
//! share one file, in turns or at the same time. One thread writes: it commits everything that
//! waits in one transaction, each with a full sync, while readers read.

mod addresses;
mod cache;
mod connection;
mod failure;
mod layout;
mod list;
mod migrate;
mod read;
mod rows;
mod schema;
mod store;
mod write;
mod writer;

pub use connection::SqliteOptions;
pub use schema::SqliteSchema;
pub use store::SqliteStore;
