//! Authentication and allowed origins.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use sessile_server::{Auth, JwtCheck, JwtKeys, StaticTokens};

use crate::exit::Failure;

/// Who may call the server, and how callers are authenticated.
#[derive(Debug, Args)]
#[command(next_help_heading = "Access")]
pub(crate) struct AccessArgs {
    /// A file with the key that signs JSON Web Tokens: a public key in PEM (RS256, EdDSA), or a
    /// secret of at least 32 bytes (HS256). The token's `sub` is the user.
    #[arg(long, value_name = "FILE", conflicts_with = "jwks_file")]
    jwt_key_file: Option<PathBuf>,
    /// A file with the keys that sign JSON Web Tokens, as a JWKS document.
    #[arg(long, value_name = "FILE")]
    jwks_file: Option<PathBuf>,
    /// Only tokens by this issuer.
    #[arg(long, value_name = "ISSUER")]
    jwt_issuer: Option<String>,
    /// Only tokens for this audience.
    #[arg(long, value_name = "AUDIENCE")]
    jwt_audience: Option<String>,
    /// A file with hashed tokens; `sessile tokens hash` writes its entries.
    #[arg(long, value_name = "FILE")]
    tokens_file: Option<PathBuf>,
    /// Listen on addresses that other computers can reach, although no authentication is
    /// configured.
    #[arg(long)]
    insecure: bool,
    /// Accept requests from web pages of this origin: `https://example.com`, `*` or
    /// `regex:PATTERN`. May be repeated.
    #[arg(long, alias = "allow_origins", value_name = "ORIGIN")]
    pub(super) allow_origins: Vec<String>,
}

impl AccessArgs {
    /// The configured authentication.
    pub(super) fn auth(&self) -> anyhow::Result<Auth> {
        let mut auth = Auth::off();
        if let Some(keys) = self.keys()? {
            let mut check = JwtCheck::new(keys);
            if let Some(issuer) = &self.jwt_issuer {
                check = check.with_issuer(issuer);
            }
            if let Some(audience) = &self.jwt_audience {
                check = check.with_audience(audience);
            }
            auth = auth.with_jwt(check);
        } else if self.jwt_issuer.is_some() || self.jwt_audience.is_some() {
            let text = "--jwt-issuer and --jwt-audience have no effect without --jwt-key-file or --jwks-file";
            return Err(Failure::Usage(text.to_owned()).into());
        }
        if let Some(file) = &self.tokens_file {
            let tokens = StaticTokens::from_json(&text(file)?).map_err(|error| wrong(file, error))?;
            auth = auth.with_tokens(tokens);
        }
        Ok(auth)
    }

    fn keys(&self) -> anyhow::Result<Option<JwtKeys>> {
        if let Some(file) = &self.jwks_file {
            return JwtKeys::from_jwks(&text(file)?).map(Some).map_err(|error| wrong(file, error));
        }
        let Some(file) = &self.jwt_key_file else { return Ok(None) };
        let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let keys = match bytes.starts_with(b"-----BEGIN") {
            true => JwtKeys::from_pem(&bytes),
            false => JwtKeys::from_secret(&bytes),
        };
        keys.map(Some).map_err(|error| wrong(file, error))
    }

    /// Refuses to listen on a public address without authentication.
    pub(super) fn check(&self, address: IpAddr, is_on: bool) -> anyhow::Result<()> {
        if address.is_loopback() || is_on || self.insecure {
            return Ok(());
        }
        let text = format!(
            "{address} can be reached from other computers, and no authentication is configured; add --jwt-key-file, --jwks-file or \
             --tokens-file, listen on 127.0.0.1, or accept the risk with --insecure"
        );
        Err(Failure::Usage(text).into())
    }
}

fn text(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

fn wrong(file: &Path, error: impl std::fmt::Display) -> anyhow::Error {
    Failure::Usage(format!("{}: {error}", file.display())).into()
}
