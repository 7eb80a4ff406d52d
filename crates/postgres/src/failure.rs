//! What a failure means to the caller, and what to do about it.

use std::error::Error as StdError;

use deadpool_postgres::{Pool, PoolError, TimeoutType};
use rustls::{AlertDescription, CertificateError};
use sessile_session::SessionError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

const CONNECT: &str = "connect to PostgreSQL";

/// Why the pool has no connection for us.
pub(crate) fn no_connection(pool: &Pool, error: PoolError) -> SessionError {
    let reason = match &error {
        PoolError::Backend(error) if let Some(reason) = misfit(error) => return unusable(reason),
        PoolError::Backend(cause) if is_lost(cause) || is_crowded(cause) => format!(
            "the server cannot be reached ({}); is it running, and are host and port right?",
            told(cause)
        ),
        PoolError::Timeout(TimeoutType::Wait) => format!(
            "all {} connections are in use, and none became free in time; \
             raise pool_size or pool_timeout, or ask for less at once",
            pool.status().max_size
        ),
        PoolError::Timeout(_) => {
            "the server did not answer in time; is it running, and are host and port right?".to_owned()
        }
        _ => return SessionError::Backend { action: CONNECT, source: error.into() },
    };
    SessionError::Unavailable { action: CONNECT, reason, source: error.into() }
}

/// The database or the options cannot be used as they are; `reason` says what to do.
pub(crate) fn unusable(reason: String) -> SessionError {
    SessionError::Unusable { reason }
}

/// What must be changed, in the options or at the server, for a connection to be made.
fn misfit(error: &Error) -> Option<String> {
    if let Some(found) = tls_error(error) {
        return Some(mistrust(found));
    }
    let said = told(error);
    if let Some(code) = error.code() {
        return match *code {
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION => Some(format!(
                "{said}; if the server wants encrypted connections, use sslmode=require or verify-full, \
                 and sslcert and sslkey if it wants a certificate"
            )),
            SqlState::INVALID_PASSWORD => Some(format!("{said}; look at user and password of the URL")),
            SqlState::INVALID_CATALOG_NAME => Some(format!("{said}; create the database, or name another")),
            _ => None,
        };
    }
    match error.to_string() {
        kind if kind.starts_with("error performing TLS") && said.contains("does not support TLS") => Some(
            format!("{said}, which sslmode asks for; turn on `ssl` at the server, or use sslmode=prefer"),
        ),
        kind if kind.starts_with("error performing TLS") => {
            Some(format!("{said}; does this port speak PostgreSQL with TLS?"))
        }
        kind if kind.starts_with("invalid configuration") || kind.starts_with("authentication error") => {
            Some(format!("{said}; look at user, password and channel_binding of the URL"))
        }
        _ => None,
    }
}

/// What TLS found wrong, and what to do.
fn mistrust(error: &rustls::Error) -> String {
    use CertificateError as Bad;
    match error {
        rustls::Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => format!(
            "nobody in sslrootcert signed the server's certificate ({error}); name the file that holds the server's \
             root certificate. If it does, this may not be the server you mean"
        ),
        rustls::Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            format!(
                "the server's certificate is for another host ({error}); connect with a name that is in its subject \
             alternative names, have a certificate made for this name, or use sslmode=verify-ca"
            )
        }
        rustls::Error::InvalidCertificate(reason) => format!(
            "the server's certificate cannot be accepted ({error}): {}",
            match reason {
                Bad::Expired | Bad::ExpiredContext { .. } => "renew it",
                Bad::NotValidYet | Bad::NotValidYetContext { .. } => "look at the clocks of both machines",
                _ => "have one made in version 3 of X.509, for a server",
            }
        ),
        rustls::Error::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::AccessDenied
            | AlertDescription::DecryptError,
        ) => format!(
            "the server does not accept our certificate ({error}); name one in sslcert and sslkey that its \
             ssl_ca_file signed"
        ),
        _ => format!("no encrypted connection could be agreed on ({error})"),
    }
}

fn tls_error(error: &Error) -> Option<&rustls::Error> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if let Some(found) = inner.and_then(|inner| inner.downcast_ref()) {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// Whether the connection is gone, or was never made: the server went away, or is starting.
pub(crate) fn is_lost(error: &Error) -> bool {
    let by_server = error.code().is_some_and(|code| {
        [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::CANNOT_CONNECT_NOW].contains(code)
            || code.code().starts_with("08")
    });
    let by_network = error.source().is_some_and(|cause| cause.is::<std::io::Error>());
    error.is_closed() || by_server || by_network
}

fn is_crowded(error: &Error) -> bool {
    error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS)
}

/// Whether the server found a row that it cannot change, because it is not what it should be.
pub(crate) fn is_corrupt(error: &SessionError) -> bool {
    let SessionError::Backend { source, .. } = error else { return false };
    source.downcast_ref().and_then(Error::code) == Some(&SqlState::DATA_CORRUPTED)
}

/// Whether the server gave this one up so that others could go on.
pub(crate) fn is_victim(error: &Error) -> bool {
    error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED)
        || error.code() == Some(&SqlState::T_R_SERIALIZATION_FAILURE)
}

/// Whether the server waited for a row that somebody else holds, for as long as it was told to.
pub(crate) fn is_locked(error: &Error) -> bool {
    error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// An error with its causes.
fn told(error: &(dyn StdError + 'static)) -> String {
    if let Some(error) = error.downcast_ref::<tokio_postgres::error::DbError>() {
        return error.message().to_owned();
    }
    match error.source() {
        Some(cause) => told(cause),
        None => error.to_string(),
    }
}
