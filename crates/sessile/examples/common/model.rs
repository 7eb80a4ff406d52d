//! The model that the examples talk to: Gemini if there is a key for it, a script otherwise.

use std::env;
use std::path::Path;
use std::sync::Arc;

use sessile::Model;
use sessile::agent::ModelError;
use sessile::model::{Scripted, Turn, model_by_name};

/// Gemini, if `GOOGLE_API_KEY` or `GEMINI_API_KEY` is set; else a model that gives these answers.
pub(crate) fn gemini_or(script: impl IntoIterator<Item = Turn>) -> Result<Arc<dyn Model>, ModelError> {
    let has_key = ["GOOGLE_API_KEY", "GEMINI_API_KEY"].iter().any(|name| env::var_os(name).is_some());
    if has_key {
        return model_by_name("gemini-3.5-flash", Path::new("."));
    }
    Ok(Arc::new(Scripted::new(script)))
}
