//! Models behind agents.
//!
//! [`Scripted`] needs no network: it answers from a script, in tests and in the sample
//! applications. [`Gemini`] and [`OpenAi`] ask over HTTP, at an [`Endpoint`] that says where, as
//! whom and how patiently. [`model_by_name`] finds the model that a configuration names.
//!
//! To add a model behind HTTP, write what turns a request into a body and a body into a response;
//! timeouts, retries, limits and secrets are already there (`http/`), and so is the joining of
//! pieces (`answer.rs`).

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
