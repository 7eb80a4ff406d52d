//! `sessile tokens`: the tokens that authenticate callers of the server.

use std::io::Read;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use crate::exit::Failure;
use crate::output::written;

#[derive(Debug, Subcommand)]
pub(crate) enum Tokens {
    /// Read a token from standard input, and print its entry for the file that
    /// `serve --tokens-file` reads: a JSON list of such entries.
    Hash(Hash),
}

/// The arguments of `tokens hash`.
#[derive(Debug, Args)]
pub(crate) struct Hash {
    /// The user that the token authenticates.
    #[arg(long, value_name = "USER")]
    user: String,
    /// An additional right: act for every user (admin), or write `app:` keys (write_app). May be
    /// repeated.
    #[arg(long = "right", value_name = "RIGHT")]
    rights: Vec<Right>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Right {
    Admin,
    WriteApp,
}

/// A shorter token could be guessed from its hash.
const SHORTEST: usize = 16;

pub(crate) fn run(Tokens::Hash(command): Tokens) -> anyhow::Result<()> {
    let mut token = String::new();
    std::io::stdin().read_to_string(&mut token).context("cannot read the token")?;
    let token = token.trim_end_matches(['\r', '\n']);
    if token.len() < SHORTEST {
        let text = format!("the token is shorter than {SHORTEST} bytes; make one with: openssl rand -hex 32");
        return Err(Failure::Usage(text).into());
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let text = "the token contains white space or other characters that are not allowed in a header";
        return Err(Failure::Usage(text.to_owned()).into());
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
    let sha256: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let rights: Vec<&str> = command.rights.iter().map(|right| right.name()).collect();
    let entry = json!({"sha256": sha256, "user": command.user, "rights": rights});
    written(std::io::Write::write_all(&mut std::io::stdout(), format!("{entry}\n").as_bytes()))
}

impl Right {
    fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::WriteApp => "write_app",
        }
    }
}
