//! `sessile sessions`: listing, changing, exporting and importing sessions.

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
    /// Show one session: its state and its events.
    Show(show::Show),
    /// Delete a session and its events; application and user state stay.
    Delete(change::Delete),
    /// Create a new session from the state and events of this one at some version.
    Fork(change::Fork),
    /// Undo everything since an invocation began; no event is deleted.
    Rewind(change::Rewind),
    /// Write sessions with all events and state as JSON lines.
    Export(export::Export),
    /// Import sessions that `export` wrote; existing sessions are never overwritten.
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
