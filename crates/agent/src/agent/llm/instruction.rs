use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use sessile_artifact::as_text;
use sessile_session::BoxError;
use sessile_state::{PlaceholderKind, State, Template};

use crate::catch_panic::catch_panic;
use crate::context::ReadonlyContext;
use crate::error::AgentError;

/// An instruction for a model.
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
                let text = catch_panic(async { provider(ctx.clone()).await }).await;
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
/// [`AgentError::Template`] names what is missing; [`AgentError::Missing`] if an artifact is wanted
/// where there are none.
pub async fn inject_session_state(template: &str, ctx: &ReadonlyContext) -> Result<String, AgentError> {
    fill(&Template::parse(template), ctx).await
}

async fn fill(template: &Template, ctx: &ReadonlyContext) -> Result<String, AgentError> {
    let mut artifacts: HashMap<&str, String> = HashMap::new();
    for placeholder in template.placeholders().filter(|one| one.kind == PlaceholderKind::Artifact) {
        if let Some(part) = ctx.load_artifact(&placeholder.name, None).await? {
            let described = || format!("[the artifact {} is not a text]", placeholder.name);
            artifacts.insert(&placeholder.name, as_text(&part).map_or_else(described, str::to_owned));
        }
    }
    let filled = template.render_with_artifacts(ctx.state(), |name| artifacts.get(name).cloned());
    filled.map_err(|source| AgentError::Template { agent: ctx.agent_name().to_owned(), source })
}
