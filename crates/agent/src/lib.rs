//! Agents on top of sessions.

mod model;

pub use model::{
    FunctionDeclaration, GenerationConfig, Model, ModelError, ModelRequest, ModelResponse, ModelStream,
    Streaming,
};
