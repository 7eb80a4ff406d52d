//! Arguments that several commands share; the others are in the file of their command.

use clap::Args;

/// Where sessions are kept.
#[derive(Debug, Args)]
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
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Write JSON for programs, one value on each line, instead of text for people.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The address of a session.
#[derive(Debug, Args)]
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
