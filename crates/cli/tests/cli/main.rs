//! The command, run as users run it.

mod db;
mod pipes;
mod sessions;
mod state;
mod support;
