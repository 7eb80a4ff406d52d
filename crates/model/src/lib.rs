//! Models behind agents.
//!
//! [`Scripted`] needs no network: it answers from a script, in tests and in the sample
//! applications. [`Gemini`] and [`OpenAi`] ask over HTTP, at an [`Endpoint`]: an address,
//! credentials, timeouts and retries. [`model_by_name`] finds the model that a configuration names.
//!
//! To add a model behind HTTP, write the conversion of a request to a body and of a body to a
//! response. Timeouts, retries, limits and secrets are shared (`http/`), and so is the joining of
//! partial responses (`answer.rs`).

mod answer;
mod gemini;
mod http;
mod openai;
mod registry;
mod scripted;

pub use gemini::Gemini;
pub use http::{Credentials, Endpoint, HttpOptions, TokenProvider};
pub use openai::OpenAi;
pub use registry::model_by_name;
pub use scripted::{Call, Requests, Rule, Scripted, Turn, call, calls, fail, reply, respond};
