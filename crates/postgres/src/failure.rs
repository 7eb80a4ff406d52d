//! What a failure means to the caller, and what to do about it.

use std::error::Error as StdError;

use deadpool_postgres::{Pool, PoolError, TimeoutType};
use rustls::{AlertDescription, CertificateError};
use sessile_session::SessionError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

const CONNECT: &str = "connect to PostgreSQL";

/// The error of a pool that could not give out a connection.
pub(crate) fn no_connection(pool: &Pool, error: PoolError) -> SessionError {
    let reason = match &error {
        PoolError::Backend(error) if let Some(reason) = unusable_reason(error) => return unusable(reason),
        PoolError::Backend(cause) if is_lost(cause) || is_crowded(cause) => format!(
            "the server cannot be reached ({}); is it running, and are host and port right?",
            root_message(cause)
        ),
        PoolError::Timeout(TimeoutType::Wait) => format!(
            "all {} connections are in use, and none became free in time; \
             raise pool_size or pool_timeout, or send fewer requests at once",
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

/// Why a connection cannot be made before the options or the server are changed, and how to.
fn unusable_reason(error: &Error) -> Option<String> {
    if let Some(found) = tls_error(error) {
        return Some(tls_reason(found));
    }
    let message = root_message(error);
    if let Some(code) = error.code() {
        return match *code {
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION => Some(format!(
                "{message}; if the server requires encrypted connections, use sslmode=require or verify-full, \
                 and sslcert and sslkey if it requires a certificate"
            )),
            SqlState::INVALID_PASSWORD => Some(format!("{message}; look at user and password of the URL")),
            SqlState::INVALID_CATALOG_NAME => {
                Some(format!("{message}; create the database, or name another"))
            }
            _ => None,
        };
    }
    match error.to_string() {
        kind if kind.starts_with("error performing TLS") && message.contains("does not support TLS") => Some(
            format!("{message}, which sslmode asks for; turn on `ssl` at the server, or use sslmode=prefer"),
        ),
        kind if kind.starts_with("error performing TLS") => {
            Some(format!("{message}; does this port speak PostgreSQL with TLS?"))
        }
        kind if kind.starts_with("invalid configuration") || kind.starts_with("authentication error") => {
            Some(format!("{message}; look at user, password and channel_binding of the URL"))
        }
        _ => None,
    }
}

/// What failed in the TLS handshake, and what to do about it.
fn tls_reason(error: &rustls::Error) -> String {
    use CertificateError as Bad;
    match error {
        rustls::Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => format!(
            "no certificate in sslrootcert signed the server's certificate ({error}); name the file with the server's \
             root certificate. If it is the right file, this may not be the right server"
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
                Bad::NotValidYet | Bad::NotValidYetContext { .. } => "compare the clocks of both machines",
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
        _ => format!("the TLS handshake failed ({error})"),
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

/// Whether the connection is lost, or was never made: the server was stopped, or is starting.
pub(crate) fn is_lost(error: &Error) -> bool {
    let by_server = error.code().is_some_and(|code| {
        [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::CANNOT_CONNECT_NOW].contains(code)
            || code.code().starts_with("08")
    });
    let by_network = error.source().is_some_and(|cause| cause.is::<std::io::Error>());
    error.is_closed() || by_server || by_network
}

/// Whether the server has reached its own limit of connections.
fn is_crowded(error: &Error) -> bool {
    error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS)
}

/// Whether a function of the database found a corrupt row, which it cannot change.
pub(crate) fn is_corrupt(error: &SessionError) -> bool {
    let SessionError::Backend { source, .. } = error else { return false };
    source.downcast_ref().and_then(Error::code) == Some(&SqlState::DATA_CORRUPTED)
}

/// Whether the server rolled this transaction back because of a deadlock or a serialization
/// failure.
pub(crate) fn is_victim(error: &Error) -> bool {
    error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED)
        || error.code() == Some(&SqlState::T_R_SERIALIZATION_FAILURE)
}

/// Whether the lock timeout passed while another transaction held a row.
pub(crate) fn is_locked(error: &Error) -> bool {
    error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// The message of the innermost cause, or of the server.
fn root_message(error: &(dyn StdError + 'static)) -> String {
    if let Some(error) = error.downcast_ref::<tokio_postgres::error::DbError>() {
        return error.message().to_owned();
    }
    match error.source() {
        Some(cause) => root_message(cause),
        None => error.to_string(),
    }
}
