//! Reaching the server.

use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use sessile_session::{SessionError, doing};
use tokio_postgres::config::SslMode;
use tokio_postgres::{Config, NoTls};

/// How the server is reached.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// Host, database, user, timeouts: everything of the connection itself.
    pub config: Config,
    /// How many connections there are at the most.
    pub pool_size: usize,
    /// How long to wait for a connection.
    pub pool_timeout: Duration,
}

impl PostgresOptions {
    /// Options from a URL as google-adk takes it: `postgresql://user:password@host:port/database`, also
    /// `postgres://` and `postgresql+asyncpg://`. Beside libpq's parameters, `pool_size` and
    /// `pool_timeout` (in seconds) are understood.
    ///
    /// # Errors
    ///
    /// [`SessionError::Unusable`] if the URL cannot be understood. Its text does not repeat the URL,
    /// which holds a password.
    pub fn from_url(url: &str) -> Result<Self, SessionError> {
        let rest = ["postgresql+asyncpg://", "postgresql://", "postgres://"]
            .iter()
            .find_map(|scheme| url.strip_prefix(scheme))
            .ok_or_else(|| unusable("the URL does not begin with postgresql://".to_owned()))?;
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (mut pool_size, mut pool_timeout, mut passed_on) = (16, Duration::from_secs(30), Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let number = |value: &str| match value.parse::<u32>() {
                Ok(number) if number > 0 => Ok(number),
                _ => Err(unusable(format!("{pair} is no whole number above zero"))),
            };
            match pair.split_once('=') {
                Some(("pool_size", value)) => pool_size = number(value)? as usize,
                Some(("pool_timeout", value)) => pool_timeout = Duration::from_secs(number(value)?.into()),
                _ => passed_on.push(pair),
            }
        }
        let url = format!("postgresql://{address}?{}", passed_on.join("&"));
        let config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            unusable(format!(
                "the URL cannot be understood: {}",
                std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
            ))
        })?;
        if config.get_ssl_mode() == SslMode::Require {
            return Err(unusable(
                "sslmode=require is not supported; encrypt the connection outside of Sessile".to_owned(),
            ));
        }
        Ok(Self { config, pool_size, pool_timeout })
    }

    pub(crate) fn pool(&self) -> Result<Pool, SessionError> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(self.config.clone(), NoTls, recycling);
        Pool::builder(manager)
            .max_size(self.pool_size)
            .wait_timeout(Some(self.pool_timeout))
            .create_timeout(Some(self.pool_timeout))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(doing("make the connection pool"))
    }
}

pub(crate) fn unusable(reason: String) -> SessionError {
    SessionError::Unusable { reason }
}
