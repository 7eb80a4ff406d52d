//! Options of the connections, and the pool.

use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use sessile_session::{SessionError, doing};
use tokio_postgres::Config;

use crate::connect::Connector;
use crate::tls::TlsOptions;

/// How to connect to a server.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// Host, database, user and timeouts. Its `ssl_mode` is ignored: [`tls`](Self::tls) decides.
    pub config: Config,
    /// How connections are encrypted.
    pub tls: TlsOptions,
    /// The largest number of connections.
    pub pool_size: usize,
    /// How long to wait for a free connection, and for a new one to be made.
    pub pool_timeout: Duration,
}

impl PostgresOptions {
    /// Up to 16 connections, a timeout of 30 seconds, and TLS if the server supports it.
    pub fn new(config: Config) -> Self {
        Self { config, tls: TlsOptions::default(), pool_size: 16, pool_timeout: Duration::from_secs(30) }
    }

    /// A pool of connections with these options.
    /// [`PostgresStore::with_pool`](crate::PostgresStore::with_pool) takes this or any other.
    ///
    /// # Errors
    ///
    /// [`SessionError::Unusable`] if a file with certificates or a key cannot be used.
    pub fn pool(&self) -> Result<Pool, SessionError> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let connector = Connector { mode: self.tls.mode, tls: self.tls.connector()? };
        let manager = Manager::from_connect(self.config.clone(), connector, recycling);
        Pool::builder(manager)
            .max_size(self.pool_size)
            .wait_timeout(Some(self.pool_timeout))
            .create_timeout(Some(self.pool_timeout))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(doing("make the connection pool"))
    }
}
