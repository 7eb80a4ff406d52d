//! The store of sessions that a URL names. The schemes are those of ADK's command line.

use std::fmt;
use std::sync::Arc;

use anyhow::Context;
use sessile_postgres::{PoolUse, PostgresOptions, PostgresStore};
use sessile_server::Gauge;
use sessile_session::{MemoryStore, SessionService, Store};
use sessile_sqlite::{SqliteOptions, SqliteStore};

use crate::exit::Failure;
use crate::stderr::{harmless, say};

/// The URL of a store of sessions, parsed.
#[derive(Debug)]
pub(crate) enum StoreUrl {
    Memory,
    Sqlite(SqliteOptions),
    Postgres {
        options: Box<PostgresOptions>,
        /// Host and database, without user, password and options.
        shown: String,
    },
}

/// Reads the current values of the gauges of a store.
pub(crate) type Gauges = Box<dyn Fn() -> Vec<Gauge> + Send + Sync>;

/// What a command needs of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// It reads or changes data that must exist already.
    Existing,
    /// It may create a new file, or begin with an empty store.
    Any,
}

impl StoreUrl {
    /// Parses a URL.
    pub(crate) fn parse(url: &str) -> anyhow::Result<Self> {
        let (scheme, _) = url.split_once("://").ok_or_else(|| unknown(url))?;
        match scheme {
            "memory" => Ok(Self::Memory),
            "sqlite" | "sqlite+aiosqlite" => Ok(Self::Sqlite(SqliteOptions::from_url(url)?)),
            "postgresql" | "postgresql+asyncpg" | "postgres" => {
                let address = url.split('?').next().unwrap_or("");
                let host = address.rsplit(['@', '/']).take(2).collect::<Vec<_>>();
                let shown = match host[..] {
                    [database, host] => format!("postgresql://{host}/{database}"),
                    _ => "PostgreSQL".to_owned(),
                };
                Ok(Self::Postgres { options: Box::new(PostgresOptions::from_url(url)?), shown })
            }
            _ => Err(unknown(url)),
        }
    }

    /// Opens the store, and creates or migrates its tables if necessary.
    pub(crate) async fn open(&self, need: Need) -> anyhow::Result<Arc<dyn Store>> {
        Ok(self.open_measured(need).await?.0)
    }

    /// [`open`](Self::open), and the gauges of the store.
    pub(crate) async fn open_measured(&self, need: Need) -> anyhow::Result<(Arc<dyn Store>, Gauges)> {
        let nothing: Gauges = Box::new(Vec::new);
        let opened: Arc<dyn Store> = match self {
            Self::Memory if need == Need::Existing => {
                let text =
                    "memory:// is empty when a command starts; name a SQLite file or PostgreSQL with --store";
                return Err(Failure::Usage(text.to_owned()).into());
            }
            Self::Memory => Arc::new(MemoryStore::new()),
            Self::Sqlite(options) => {
                if need == Need::Existing {
                    self.must_exist()?;
                }
                Arc::new(SqliteStore::open(options.clone()).await?)
            }
            Self::Postgres { options, .. } => {
                let connected = PostgresStore::connect(options).await;
                let store = Arc::new(connected.with_context(|| format!("cannot use {self}"))?);
                let measured = store.clone();
                return Ok((store, Box::new(move || pool_gauges(measured.pool_use()))));
            }
        };
        Ok((opened, nothing))
    }

    /// An error if this names a file that does not exist: a command that only reads must not create
    /// one.
    pub(crate) fn must_exist(&self) -> anyhow::Result<()> {
        match self {
            Self::Sqlite(SqliteOptions { path, .. }) if !path.exists() => {
                Err(Failure::NotFound(format!("there is no file {}; {ADVICE}", path.display())).into())
            }
            _ => Ok(()),
        }
    }
}

const ADVICE: &str = "name another with --store (or SESSILE_STORE), or make it with `sessile db migrate`";

/// Without user, password and options.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory://"),
            Self::Sqlite(options) => write!(f, "sqlite:///{}", options.path.display()),
            Self::Postgres { shown, .. } => f.write_str(shown),
        }
    }
}

/// Works with the sessions in the store of a URL, and closes the store at the end, also if the work
/// failed.
pub(crate) async fn with_sessions<T>(
    url: &str,
    need: Need,
    work: impl AsyncFnOnce(&SessionService) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let service = SessionService::over(StoreUrl::parse(url)?.open(need).await?);
    let done = work(&service).await;
    closed(&service, done).await
}

/// Closes a store after the work with it. If both the work and closing failed, the error of the
/// work is returned and the other one is printed.
pub(crate) async fn closed<T>(service: &SessionService, done: anyhow::Result<T>) -> anyhow::Result<T> {
    match (service.close().await, done) {
        (Ok(()), done) => done,
        (Err(error), Ok(_)) => {
            Err(anyhow::Error::from(error).context("the command succeeded, but the store cannot be closed"))
        }
        (Err(error), Err(failure)) => {
            say(format_args!("the store cannot be closed: {}", harmless(&error.to_string())));
            Err(failure)
        }
    }
}

fn pool_gauges(pool: PoolUse) -> Vec<Gauge> {
    let gauge = |name: &str, help: &str, value: usize| Gauge {
        name: format!("sessile_pool_{name}"),
        help: help.to_owned(),
        value: value as f64,
    };
    vec![
        gauge("most", "Connections to PostgreSQL that there may be.", pool.most),
        gauge("open", "Connections to PostgreSQL that are open.", pool.open),
        gauge("in_use", "Connections to PostgreSQL that are used.", pool.in_use),
        gauge("waiting", "Callers that wait for a connection to PostgreSQL.", pool.waiting),
    ]
}

/// Lists the URLs that are understood. A URL may hold a password, so only its scheme is repeated.
fn unknown(url: &str) -> anyhow::Error {
    let given = match url.split_once("://") {
        Some((scheme, _)) => format!("there is no store for {scheme}://"),
        None => format!("{url:?} is not a URL"),
    };
    let known =
        "write sqlite:///relative.db, sqlite:////absolute.db, postgresql://user@host/database, or memory://";
    Failure::Usage(format!("{given}; {known}")).into()
}
