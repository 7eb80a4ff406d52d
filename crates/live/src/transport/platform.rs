/// The platform that the server belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Platform {
    /// Google AI, with an API key.
    GoogleAi,
    /// Vertex AI, in a project.
    Vertex {
        /// The project's id.
        project: String,
        /// Where it runs, such as `us-central1` or `global`.
        location: String,
    },
}

impl Platform {
    /// The full resource name of a model; a full name is returned unchanged.
    pub(crate) fn model_path(&self, model: &str) -> String {
        match self {
            Self::GoogleAi if model.contains('/') => model.to_owned(),
            Self::GoogleAi => format!("models/{model}"),
            Self::Vertex { .. } if model.starts_with("projects/") => model.to_owned(),
            Self::Vertex { project, location } => {
                let model = model.strip_prefix("models/").unwrap_or(model);
                format!("projects/{project}/locations/{location}/publishers/google/models/{model}")
            }
        }
    }

    /// The role of a message that changes the instruction. Google AI closes the connection when it
    /// sees `system`.
    pub(crate) fn instruction_role(&self) -> &'static str {
        match self {
            Self::GoogleAi => "user",
            Self::Vertex { .. } => "system",
        }
    }

    /// Whether `behavior` and `scheduling` of calls are supported.
    pub(crate) fn knows_background(&self) -> bool {
        matches!(self, Self::GoogleAi)
    }

    /// Whether `sessionResumption.transparent` and `explicitVadSignal` are supported.
    pub(crate) fn knows_transparency(&self) -> bool {
        matches!(self, Self::Vertex { .. })
    }

    /// Whether `thinkingConfig` is supported.
    pub(crate) fn knows_thinking(&self) -> bool {
        matches!(self, Self::GoogleAi)
    }
}
