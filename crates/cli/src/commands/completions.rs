use clap::{Args as ClapArgs, CommandFactory};
use clap_complete::Shell;

use super::Args;
use crate::output::written;

/// The arguments of `completions`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

/// Prints the script. It is generated into memory first: the generator panics on a broken pipe.
pub(crate) fn run(command: &Completions) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut Args::command(), "sessile", &mut script);
    written(std::io::Write::write_all(&mut std::io::stdout(), &script))
}
