//! Making one connection, encrypted or not, as libpq would.

use std::future::Future;
use std::pin::Pin;

use deadpool_postgres::Connect;
use tokio::task::JoinHandle;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, Error, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::tls::TlsMode;

/// Makes the connections of a pool.
pub(crate) struct Connector {
    pub(crate) mode: TlsMode,
    /// `None` if connections are never encrypted.
    pub(crate) tls: Option<MakeRustlsConnect>,
}

type Connecting<'a> = Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + 'a>>;

impl Connect for Connector {
    fn connect(&self, config: &Config) -> Connecting<'_> {
        let config = config.clone();
        Box::pin(self.first_that_works(config))
    }
}

impl Connector {
    async fn first_that_works(&self, config: Config) -> Result<(Client, JoinHandle<()>), Error> {
        let local = !config.get_hosts().is_empty() && config.get_hosts().iter().all(is_socket);
        let (first, second) = match self.mode {
            _ if local => (SslMode::Disable, None),
            TlsMode::Disable => (SslMode::Disable, None),
            TlsMode::Allow => (SslMode::Disable, Some(SslMode::Require)),
            TlsMode::Prefer => (SslMode::Prefer, Some(SslMode::Disable)),
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => (SslMode::Require, None),
        };
        let refused = match self.attempt(config.clone(), first).await {
            Err(error) if was_reached(&error) => error,
            connected => return connected,
        };
        let Some(second) = second else { return Err(refused) };
        self.attempt(config, second).await.map_err(|again| more_useful(refused, again))
    }

    async fn attempt(&self, mut config: Config, mode: SslMode) -> Result<(Client, JoinHandle<()>), Error> {
        config.ssl_mode(mode);
        match &self.tls {
            Some(tls) => {
                let (client, connection) = config.connect(tls.clone()).await?;
                Ok((client, drive(connection)))
            }
            None => {
                let (client, connection) = config.connect(NoTls).await?;
                Ok((client, drive(connection)))
            }
        }
    }
}

/// Drives the connection in a task until it is closed. Its error is dropped here: the requests that
/// wait for an answer report it.
fn drive(connection: impl Future<Output = Result<(), Error>> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(async move { drop(connection.await) })
}

/// Whether a host is a Unix socket, for which PostgreSQL does not support TLS.
fn is_socket(host: &Host) -> bool {
    !matches!(host, Host::Tcp(_))
}

/// Whether a server answered, so that the other kind of connection may work.
fn was_reached(error: &Error) -> bool {
    let cause = std::error::Error::source(error);
    error.as_db_error().is_some()
        || cause.is_some_and(|cause| {
            !cause.downcast_ref::<std::io::Error>().is_some_and(|error| {
                use std::io::ErrorKind;
                matches!(
                    error.kind(),
                    ErrorKind::ConnectionRefused
                        | ErrorKind::TimedOut
                        | ErrorKind::HostUnreachable
                        | ErrorKind::NetworkUnreachable
                        | ErrorKind::NotFound
                )
            })
        })
}

/// The more useful of two errors. That `pg_hba.conf` has no entry for an encrypted or a plain
/// connection only means that it was the wrong kind.
fn more_useful(first: Error, second: Error) -> Error {
    let is_wrong_kind = |error: &Error| {
        error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
            && error.as_db_error().is_some_and(|error| error.message().starts_with("no pg_hba.conf entry"))
    };
    if is_wrong_kind(&first) { second } else { first }
}
