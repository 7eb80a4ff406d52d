//! `sessile sessions`: what was said, and where it is kept.

mod change;
mod export;
mod format;
mod import;
mod list;
mod show;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List sessions, the most recently changed first.
    List(list::List),
    /// Show one session: what it knows, and its events.
    Show(show::Show),
    /// Delete a session and its events; application and user state stay.
    Delete(change::Delete),
    /// Make a new session that begins as this one was at some version.
    Fork(change::Fork),
    /// Take back everything since an invocation began; nothing is deleted.
    Rewind(change::Rewind),
    /// Write sessions with all events and state as JSON lines.
    Export(export::Export),
    /// Read sessions that `export` wrote; none that exists is overwritten.
    Import(import::Import),
}

pub(crate) async fn run(command: Sessions) -> anyhow::Result<()> {
    match command {
        Sessions::List(command) => command.run().await,
        Sessions::Show(command) => command.run().await,
        Sessions::Delete(command) => command.run().await,
        Sessions::Fork(command) => command.run().await,
        Sessions::Rewind(command) => command.run().await,
        Sessions::Export(command) => command.run().await,
        Sessions::Import(command) => command.run().await,
    }
}
