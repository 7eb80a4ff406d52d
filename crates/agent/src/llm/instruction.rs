use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use sessile_session::{BoxError, Part};
use sessile_state::{PlaceholderKind, State, Template};

use crate::context::ReadonlyContext;
use crate::error::AgentError;
use crate::guard::guarded;

/// What a model is told.
pub(super) enum Instruction {
    None,
    /// A text without placeholders, and its source.
    Text {
        text: String,
        source: String,
    },
    Template(Template),
    Provider(Provider),
}

type Provider = Arc<dyn Fn(ReadonlyContext) -> BoxFuture<'static, Result<String, BoxError>> + Send + Sync>;

impl Instruction {
    pub(super) fn template(source: String) -> Self {
        let template = Template::parse(source);
        if template.placeholders().next().is_none()
            && let Ok(text) = template.render(&State::new())
        {
            return Self::Text { text, source: template.source().to_owned() };
        }
        Self::Template(template)
    }

    pub(super) fn provider<F, Fut>(provider: F) -> Self
    where
        F: Fn(ReadonlyContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, BoxError>> + Send + 'static,
    {
        Self::Provider(Arc::new(move |ctx| Box::pin(provider(ctx))))
    }

    pub(super) fn source(&self) -> Option<&str> {
        match self {
            Self::None => Some(""),
            Self::Text { source, .. } => Some(source),
            Self::Template(template) => Some(template.source()),
            Self::Provider(_) => None,
        }
    }

    /// The text for this moment; empty if there is none.
    pub(super) async fn text(&self, ctx: &ReadonlyContext) -> Result<String, AgentError> {
        match self {
            Self::None => Ok(String::new()),
            Self::Text { text, .. } => Ok(text.clone()),
            Self::Template(template) => fill(template, ctx).await,
            Self::Provider(provider) => {
                let failed = |source| AgentError::Callback {
                    agent: ctx.agent_name().to_owned(),
                    hook: "the instruction provider",
                    source,
                };
                let text = guarded(async { provider(ctx.clone()).await }).await;
                text.map_err(|panic| failed(format!("it panicked: {panic}").into()))?.map_err(failed)
            }
        }
    }
}

/// Fills the state and the artifacts of a run into a text, as instructions do; for providers of
/// instructions, whose text is not filled in by itself.
///
/// ```
/// use sessile_agent::{LlmAgent, ReadonlyContext, inject_session_state};
///
/// let agent = LlmAgent::builder("guide")
///     .instruction_provider(async |ctx: ReadonlyContext| {
///         Ok(inject_session_state("Explain {topic}, and leave {{braces}} alone.", &ctx).await?)
///     })
///     .build()?;
/// # Ok::<(), sessile_agent::BuildError>(())
/// ```
///
/// # Errors
///
/// [`AgentError::Template`] names what is missing; [`AgentError::Missing`] if an artifact is wanted where
/// there are none.
pub async fn inject_session_state(template: &str, ctx: &ReadonlyContext) -> Result<String, AgentError> {
    fill(&Template::parse(template), ctx).await
}

async fn fill(template: &Template, ctx: &ReadonlyContext) -> Result<String, AgentError> {
    let mut artifacts: HashMap<&str, String> = HashMap::new();
    for placeholder in template.placeholders().filter(|one| one.kind == PlaceholderKind::Artifact) {
        if let Some(part) = ctx.load_artifact(&placeholder.name, None).await? {
            artifacts.insert(&placeholder.name, artifact_text(&placeholder.name, &part));
        }
    }
    let filled = template.render_with_artifacts(ctx.state(), |name| artifacts.get(name).cloned());
    filled.map_err(|source| AgentError::Template { agent: ctx.agent_name().to_owned(), source })
}

/// An artifact as text; what is not text is only described.
fn artifact_text(name: &str, part: &Part) -> String {
    if let Some(text) = &part.text {
        return text.clone();
    }
    let Some(blob) = &part.inline_data else { return format!("[artifact {name}]") };
    let bytes = blob.data.as_ref().map_or(&[][..], |bytes| &bytes.0);
    let kind = blob.mime_type.as_deref().unwrap_or("application/octet-stream");
    let is_text = kind.starts_with("text/")
        || kind.ends_with("json")
        || kind.ends_with("xml")
        || kind.ends_with("yaml");
    match std::str::from_utf8(bytes) {
        Ok(text) if is_text => text.to_owned(),
        _ => format!("[artifact {name}: {kind}, {} bytes]", bytes.len()),
    }
}
