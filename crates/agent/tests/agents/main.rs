//! What agents promise, through the public API, with a scripted model.

mod callbacks;
mod support;
mod tools;
