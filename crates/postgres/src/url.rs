//! Options from a URL. `docs/stores.md` lists every parameter.

use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use sessile_session::SessionError;
use tokio_postgres::Config;

use crate::connection::PostgresOptions;
use crate::failure::unusable;
use crate::tls::{TlsIdentity, TlsMode, TlsOptions, TlsRoots};

const SCHEMES: [&str; 3] = ["postgresql+asyncpg://", "postgresql://", "postgres://"];

impl PostgresOptions {
    /// Options from a URL in google-adk's format: `postgresql://user:password@host:port/database`,
    /// also `postgres://` and `postgresql+asyncpg://`. Beside libpq's parameters, with `sslmode`,
    /// `sslrootcert`, `sslcert` and `sslkey`, there are asyncpg's `ssl`, and `pool_size` and
    /// `pool_timeout` (in seconds).
    ///
    /// # Errors
    ///
    /// [`SessionError::Unusable`] if the URL cannot be parsed. The message does not contain the
    /// URL, which may hold a password.
    pub fn from_url(url: &str) -> Result<Self, SessionError> {
        read(url)
    }
}

/// Reads a URL. Error messages never contain it, because it may hold a password.
fn read(url: &str) -> Result<PostgresOptions, SessionError> {
    let rest = SCHEMES
        .iter()
        .find_map(|scheme| url.strip_prefix(scheme))
        .ok_or_else(|| unusable("the URL does not begin with postgresql://".to_owned()))?;
    let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut ours = Ours::default();
    let mut passed_on = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value)
            .decode_utf8()
            .map_err(|_| unusable(format!("the URL's parameter {name} is not UTF-8")))?;
        if !ours.take(name, &value)? {
            passed_on.push(pair);
        }
    }
    let url = format!("postgresql://{address}?{}", passed_on.join("&"));
    let config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
        let reason = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        unusable(format!("the URL cannot be parsed: {reason}; docs/stores.md lists its parameters"))
    })?;
    ours.with(config)
}

/// The parameters of the URL that the driver does not know.
#[derive(Default)]
struct Ours {
    pool_size: Option<u32>,
    pool_timeout: Option<u32>,
    mode: Option<TlsMode>,
    roots: TlsRoots,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl Ours {
    /// Takes a parameter; returns whether it is one of ours.
    fn take(&mut self, name: &str, value: &str) -> Result<bool, SessionError> {
        match name {
            "pool_size" => self.pool_size = Some(number(name, value)?),
            "pool_timeout" => self.pool_timeout = Some(number(name, value)?),
            // asyncpg, and so SQLAlchemy and google-adk, call it `ssl`.
            "sslmode" | "ssl" => {
                let mode = value.parse()?;
                if self.mode.replace(mode).is_some_and(|before| before != mode) {
                    return Err(unusable("sslmode and ssl differ; give only one of them".to_owned()));
                }
            }
            "sslrootcert" if value == "system" => self.roots = TlsRoots::System,
            "sslrootcert" => self.roots = TlsRoots::File(file(name, value)?),
            "sslcert" => self.certificate = Some(file(name, value)?),
            "sslkey" => self.key = Some(file(name, value)?),
            "sslpassword" => {
                return Err(unusable(
                    "sslpassword is not supported; name a key without a password in sslkey, readable only by this user"
                        .to_owned(),
                ));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn with(self, config: Config) -> Result<PostgresOptions, SessionError> {
        let identity = match (self.certificate, self.key) {
            (Some(certificate), Some(key)) => Some(TlsIdentity { certificate, key }),
            (None, None) => None,
            (Some(_), None) => {
                return Err(unusable("sslcert needs its private key: give sslkey too".to_owned()));
            }
            (None, Some(_)) => {
                return Err(unusable("sslkey needs its certificate: give sslcert too".to_owned()));
            }
        };
        let strict = self.roots == TlsRoots::System;
        let default = if strict { TlsMode::VerifyFull } else { TlsMode::default() };
        let mut options = PostgresOptions::new(config);
        options.tls = TlsOptions { mode: self.mode.unwrap_or(default), roots: self.roots, identity };
        if let Some(size) = self.pool_size {
            options.pool_size = size as usize;
        }
        if let Some(seconds) = self.pool_timeout {
            options.pool_timeout = Duration::from_secs(seconds.into());
        }
        Ok(options)
    }
}

fn number(name: &str, value: &str) -> Result<u32, SessionError> {
    match value.parse::<u32>() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(unusable(format!("{name}={value} is not a whole number above zero"))),
    }
}

fn file(name: &str, value: &str) -> Result<PathBuf, SessionError> {
    match value {
        "" => Err(unusable(format!("{name} names no file"))),
        path => Ok(PathBuf::from(path)),
    }
}
