//! The command, run as users run it.

mod bench;
mod changes;
mod chat;
mod db;
mod docs;
mod pipes;
mod serve;
mod served;
mod sessions;
mod state;
mod state_history;
mod support;
mod together;
mod traces;
