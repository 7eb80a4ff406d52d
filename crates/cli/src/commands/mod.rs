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

use crate::args::{Args, Command};

/// Does what the command line asks for.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start the threads that do the work")?;
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
    // A thread that waits for a line of standard input would wait for ever.
    runtime.shutdown_background();
    result
}
