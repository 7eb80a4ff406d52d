//! What the command line says, from the top; each command's own arguments are in its file.

use clap::{Args as ClapArgs, Parser, Subcommand};

use crate::commands::{bench, chat, completions, db, serve, sessions, state, tokens};
use crate::exit;

/// Keeps the state of AI agents: serves them, talks to them, and takes care of where sessions are
/// kept.
#[derive(Debug, Parser)]
#[command(name = "sessile", version, after_help = exit::CODES, max_term_width = 110)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve agents and sessions over HTTP, as ADK's clients speak it.
    Serve(Box<serve::Serve>),

    /// Talk to an agent in the terminal.
    Chat(chat::Chat),

    /// Look at sessions, change them, and carry them to another store.
    #[command(subcommand)]
    Sessions(sessions::Sessions),

    /// Read and change state, in every scope.
    #[command(subcommand)]
    State(state::State),

    /// Take care of a database.
    #[command(subcommand)]
    Db(db::Db),

    /// Make tokens for the server.
    #[command(subcommand)]
    Tokens(tokens::Tokens),

    /// Measure how fast a store is, with the workloads of the performance page.
    Bench(bench::Bench),

    /// Print a script that completes this command in a shell.
    Completions(completions::Completions),
}

/// Where sessions are kept.
#[derive(Debug, ClapArgs)]
pub(crate) struct StoreArgs {
    /// Where sessions are kept: sqlite:///relative.db, sqlite:////absolute.db, or
    /// postgresql://user@host/database; memory:// keeps nothing
    #[arg(
        long,
        alias = "session_service_uri",
        env = "SESSILE_STORE",
        hide_env_values = true,
        value_name = "URL",
        default_value = "sqlite:///sessile.db"
    )]
    pub(crate) store: String,
}

/// How results are written.
#[derive(Debug, ClapArgs)]
pub(crate) struct OutputArgs {
    /// Write JSON for programs, one value on each line, instead of text for people.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The address of a session.
#[derive(Debug, ClapArgs)]
pub(crate) struct SessionArgs {
    /// The application.
    #[arg(value_name = "APP")]
    app: String,
    /// The user.
    #[arg(value_name = "USER")]
    user: String,
    /// The session's id.
    #[arg(value_name = "SESSION")]
    id: String,
}

impl SessionArgs {
    /// The session, under the id exactly as it is stored.
    pub(crate) fn key(&self) -> sessile_session::SessionKey {
        sessile_session::SessionKey::from_stored(&self.app, &self.user, &self.id)
    }
}
