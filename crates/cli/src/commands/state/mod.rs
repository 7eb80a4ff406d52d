//! `sessile state`: reading and changing state. The prefix of a key is its scope: `app:`, `user:`,
//! or none for the session's own.

mod change;
mod get;
mod history;
mod operate;
mod target;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum State {
    /// Print the value of a key as JSON, or all keys.
    Get(get::Get),
    /// Print the versions of the scopes, for --if-version.
    Versions(get::Versions),
    /// Print who changed a key of `user:` or `app:` state, when, and what it held before.
    History(history::History),
    /// Set a key; a change of a session is an event of its own.
    Set(change::Set),
    /// Remove a key; a change of a session is an event of its own.
    Rm(change::Remove),
    /// Add to the number that is stored when the change is committed; an absent key counts as 0.
    Add(operate::Add),
    /// Add items to the end of a list; an absent key counts as an empty list.
    Append(operate::Append),
    /// Add items that a list does not have yet, or set fields of an object.
    Union(operate::Union),
}

pub(crate) async fn run(command: State) -> anyhow::Result<()> {
    match command {
        State::Get(command) => command.run().await,
        State::Versions(command) => command.run().await,
        State::History(command) => command.run().await,
        State::Set(command) => command.run().await,
        State::Rm(command) => command.run().await,
        State::Add(command) => command.run().await,
        State::Append(command) => command.run().await,
        State::Union(command) => command.run().await,
    }
}
