//! The command `sessile`: serves agents, chats with them, and manages stores of sessions.
//!
//! Data goes to standard output, everything else to standard error. [`exit`] lists the exit
//! codes.

mod agents;
mod args;
mod commands;
mod event_text;
mod exit;
mod os_user;
mod output;
mod progress;
mod services;
mod stderr;
mod store_url;
mod times;
mod walk;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = commands::Args::parse();
    let result = commands::run(args);
    exit::code_of(result)
}
