//! Sessions in PostgreSQL.
//!
//! The tables are those of google-adk's `DatabaseSessionService`, so that Python and Sessile share
//! one database, in turns or at the same time. An append is one round trip, and events that
//! wait at the same time are committed together (group commit).

mod addresses;
mod answer;
mod append;
mod batch;
mod committer;
mod connect;
mod connection;
mod failure;
mod history;
mod json;
mod lanes;
mod list;
mod locks;
mod migrate;
mod queue;
mod read;
mod retry;
mod schema;
mod store;
mod tls;
mod url;
mod verify;

pub use connection::PostgresOptions;
pub use schema::PostgresSchema;
pub use store::{PoolUse, PostgresStore};
pub use tls::{TlsIdentity, TlsMode, TlsOptions, TlsRoots};
