//! The commands, one file each.

pub(crate) mod bench;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod db;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod state;
pub(crate) mod tokens;

use anyhow::Context;
use clap::{Parser, Subcommand};

use crate::exit;

/// Keeps the state of AI agents: serves agents, chats with them, and manages stores of sessions.
#[derive(Debug, Parser)]
#[command(name = "sessile", version, after_help = exit::CODES, max_term_width = 110)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve agents and sessions over the HTTP API of ADK.
    Serve(Box<serve::Serve>),

    /// Talk to an agent in the terminal.
    Chat(chat::Chat),

    /// List, change, export and import sessions.
    #[command(subcommand)]
    Sessions(sessions::Sessions),

    /// Read and change state, in every scope.
    #[command(subcommand)]
    State(state::State),

    /// Check, migrate and sweep a database.
    #[command(subcommand)]
    Db(db::Db),

    /// Prepare tokens for `serve --tokens-file`.
    #[command(subcommand)]
    Tokens(tokens::Tokens),

    /// Measure how fast a store is, with the workloads of the performance page.
    Bench(bench::Bench),

    /// Print a script that completes this command in a shell.
    Completions(completions::Completions),
}

/// Runs the command.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start the async runtime")?;
    let result = runtime.block_on(async {
        match args.command {
            Command::Serve(command) => command.run().await,
            Command::Chat(command) => command.run().await,
            Command::Bench(command) => command.run().await,
            Command::Sessions(command) => sessions::run(command).await,
            Command::State(command) => state::run(command).await,
            Command::Db(command) => db::run(command).await,
            Command::Tokens(command) => tokens::run(command),
            Command::Completions(command) => completions::run(&command),
        }
    });
    // Not a plain drop: that would wait for a thread that is blocked on standard input.
    runtime.shutdown_background();
    result
}
