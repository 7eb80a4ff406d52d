//! What agents promise, through the public API, with a scripted model.

#![cfg(test)] // for clippy: every function here is part of a test

mod build;
mod callbacks;
mod cancel;
mod composite;
mod confirm;
mod contexts;
mod crowd;
mod history;
mod instructions;
mod matrix;
mod merge;
mod operations;
mod output;
mod overwrites;
mod runner;
mod schema;
mod settle;
mod support;
mod tools;
mod transfer;
mod turns;
