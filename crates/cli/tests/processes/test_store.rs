//! The stores that several processes can share.

use sessile_postgres::PostgresStore;
use sessile_session::{CreateSession, SessionKey, SessionService};
use sessile_sqlite::SqliteStore;
use tempfile::TempDir;

use crate::servers::new_schema;

/// google-adk's tables in a SQLite file as its `DatabaseSessionService` makes them.
const V1: &str = include_str!("../../../sqlite/tests/support/v1.sql");

/// Makes a new store.
type New = fn() -> TestStore;

/// The kinds of stores by name. `./test quick` leaves out what has `on_postgres` in it.
pub(crate) const STORES: [(&str, New); 3] = [
    ("sqlite", TestStore::sqlite),
    ("sqlite_v1", TestStore::sqlite_v1),
    ("on_postgres", TestStore::postgres),
];

/// A new store, as long as the test runs.
pub(crate) struct TestStore {
    pub(crate) url: String,
    /// The folder of a file; it is removed when the test ends.
    _folder: Option<TempDir>,
}

impl TestStore {
    fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder is made");
        let url = format!("sqlite:///{}", folder.path().join("shared.db").display());
        Self { url, _folder: Some(folder) }
    }

    fn sqlite_v1() -> Self {
        let store = Self::sqlite();
        let path = store.url.strip_prefix("sqlite:///").expect("the URL of a file");
        let connection = rusqlite::Connection::open(path).expect("the file opens");
        connection.execute_batch(V1).expect("the tables are made");
        store
    }

    fn postgres() -> Self {
        Self { url: format!("{}&pool_size=4", new_schema()), _folder: None }
    }

    /// Creates the session that all processes change.
    pub(crate) fn create_session(&self) {
        block_on(async {
            let service = service(&self.url).await;
            let new = CreateSession::new("shop", "ada").with_id("shared");
            service.create(new).await.expect("the session is created");
            service.close().await.expect("the store is closed");
        });
    }
}

/// The session that all processes change.
pub(crate) fn shared() -> SessionKey {
    SessionKey::new("shop", "ada", "shared").expect("a valid key")
}

pub(crate) async fn service(url: &str) -> SessionService {
    match url.starts_with("sqlite:") {
        true => SessionService::new(SqliteStore::open_url(url).await.expect("the file opens")),
        false => {
            SessionService::new(PostgresStore::connect_url(url).await.expect("the database can be used"))
        }
    }
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime starts").block_on(work)
}
