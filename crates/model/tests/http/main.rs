//! Models over HTTP, against a local server that speaks the real wire formats.

mod failures;
mod gemini;
mod openai;
mod wire;
