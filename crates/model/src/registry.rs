use std::env;
use std::path::{Component, Path};
use std::sync::Arc;

use sessile_agent::{Model, ModelError};

use crate::{Credentials, Endpoint, Gemini, OpenAi, Scripted};

/// Finds a model by its name:
///
/// | name | model | from the environment |
/// |---|---|---|
/// | `gemini-…`, `gemma-…` | [`Gemini`] | `GOOGLE_API_KEY` or `GEMINI_API_KEY`; `GOOGLE_GEMINI_BASE_URL` |
/// | `openai/NAME` | [`OpenAi`] | `OPENAI_API_KEY`; `OPENAI_BASE_URL`, with which the key may be missing |
/// | `scripted:FILE` | [`Scripted`], from a file in `base_dir` | |
///
/// # Errors
///
/// [`ModelError::Configuration`] says which names there are, which variable is missing, or what is
/// wrong with the file, before the model is used.
pub fn model_by_name(name: &str, base_dir: &Path) -> Result<Arc<dyn Model>, ModelError> {
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.trim().is_empty());
    model_by_name_with(name, base_dir, &variable)
}

fn model_by_name_with(
    name: &str,
    base_dir: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Arc<dyn Model>, ModelError> {
    let configuration =
        |reason: &str| ModelError::Configuration { model: name.to_owned(), reason: reason.to_owned() };
    if let Some(file) = name.strip_prefix("scripted:") {
        let inside =
            Path::new(file).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if file.is_empty() || !inside {
            return Err(configuration("the script must be a file in the folder of the agent, or below it"));
        }
        return Ok(Arc::new(Scripted::from_file(base_dir.join(file))?.with_name(name)));
    }
    if let Some(model) = name.strip_prefix("openai/") {
        let base_url = variable("OPENAI_BASE_URL");
        let endpoint = match (variable("OPENAI_API_KEY"), &base_url) {
            (Some(key), _) => Endpoint::openai(key),
            (None, Some(_)) => Endpoint::openai("").with_credentials(Credentials::none()),
            (None, None) => return Err(configuration("set OPENAI_API_KEY to a key of OpenAI")),
        };
        return Ok(Arc::new(OpenAi::new(model, at(endpoint, base_url))?));
    }
    if name.starts_with("gemini-") || name.starts_with("gemma-") {
        if variable("GOOGLE_GENAI_USE_VERTEXAI")
            .is_some_and(|on| matches!(on.to_lowercase().as_str(), "1" | "true"))
        {
            let reason = "GOOGLE_GENAI_USE_VERTEXAI is set, but access tokens of Google Cloud can only be had from \
                 code: unset it, or build the model in Rust with `Endpoint::vertex`";
            return Err(configuration(reason));
        }
        let Some(key) = variable("GOOGLE_API_KEY").or_else(|| variable("GEMINI_API_KEY")) else {
            return Err(configuration("set GOOGLE_API_KEY or GEMINI_API_KEY to a key of Google's AI Studio"));
        };
        return Ok(Arc::new(Gemini::new(
            name,
            at(Endpoint::gemini(key), variable("GOOGLE_GEMINI_BASE_URL")),
        )?));
    }
    Err(configuration("there is no such model; names are gemini-…, gemma-…, openai/NAME and scripted:FILE"))
}

fn at(endpoint: Endpoint, base_url: Option<String>) -> Endpoint {
    match base_url {
        Some(base_url) => endpoint.with_base_url(base_url),
        None => endpoint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, variables: &[(&str, &str)]) -> Result<String, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("s.yaml"), "turns: [{ reply: hello }]").unwrap();
        let model = model_by_name_with(name, folder.path(), &variable).map_err(|error| error.to_string())?;
        Ok(model.name().to_owned())
    }

    #[test]
    fn names_find_their_models() {
        let key = [("GEMINI_API_KEY", "k"), ("OPENAI_API_KEY", "k")];
        assert_eq!(found("gemini-2.5-flash", &key).unwrap(), "gemini-2.5-flash");
        assert_eq!(found("openai/gpt-4o", &key).unwrap(), "gpt-4o");
        assert_eq!(
            found("openai/org/llama", &[("OPENAI_BASE_URL", "http://localhost:1/v1")]).unwrap(),
            "org/llama"
        );
        assert_eq!(found("scripted:s.yaml", &[]).unwrap(), "scripted:s.yaml");
        assert_eq!(found("scripted:./s.yaml", &[]).unwrap(), "scripted:./s.yaml");
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        for (name, reason) in [
            ("gemini-2.5-flash", "set GOOGLE_API_KEY or GEMINI_API_KEY to a key of Google's AI Studio"),
            ("openai/gpt-4o", "set OPENAI_API_KEY to a key of OpenAI"),
            ("claude", "there is no such model; names are gemini-…, gemma-…, openai/NAME and scripted:FILE"),
            ("scripted:../s.yaml", "the script must be a file in the folder of the agent, or below it"),
            ("scripted:/etc/passwd", "the script must be a file in the folder of the agent, or below it"),
        ] {
            assert_eq!(found(name, &[]).unwrap_err(), format!("the model {name:?} cannot be used: {reason}"));
        }
        let base = [("GOOGLE_API_KEY", "k"), ("GOOGLE_GEMINI_BASE_URL", "ftp://x")];
        assert!(found("gemini-x", &base).unwrap_err().contains("ftp://"));
        let vertex = [("GOOGLE_API_KEY", "k"), ("GOOGLE_GENAI_USE_VERTEXAI", "TRUE")];
        assert!(found("gemini-x", &vertex).unwrap_err().contains("Endpoint::vertex"));
        assert!(found("gemini-x/../y", &base).unwrap_err().contains("letters, digits"));
    }
}
