//! Sessions in PostgreSQL.
//!
//! The tables are those of google-adk's `DatabaseSessionService`, so that Python and Sessile share one
//! database, in turns or at the same time. An append is one round trip; events that wait are
//! committed together.

mod committer;
mod connection;
mod json;
mod migrate;
mod read;
mod store;
mod write;

pub use connection::PostgresOptions;
pub use store::PostgresStore;
