//! The commands, one file each.

pub(crate) mod completions;
pub(crate) mod db;
pub(crate) mod sessions;
pub(crate) mod state;

use anyhow::Context;

use crate::args::{Args, Command};

/// Does what the command line asks for.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("cannot start the threads that do the work")?.block_on(async {
        match args.command {
            Command::Sessions(command) => sessions::run(command).await,
            Command::State(command) => state::run(command).await,
            Command::Db(command) => db::run(command).await,
            Command::Completions(command) => completions::run(&command),
        }
    })
}
