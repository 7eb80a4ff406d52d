use super::Position;

/// Why a template cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The state has no such key, and the placeholder is not optional.
    #[error(
        "the state has no key `{key}` for the placeholder at {position}{} \
         Set the key, or write {{{key}?}} if it may be absent",
        hint(nearest)
    )]
    MissingKey {
        /// The key, prefix included.
        key: String,
        /// Where the placeholder is.
        position: Position,
        /// The state's key that looks most like it.
        nearest: Option<String>,
    },

    /// There is no such artifact, and the placeholder is not optional.
    #[error(
        "there is no artifact `{name}` for the placeholder at {position}. \
         Save it, or write {{artifact.{name}?}} if it may be absent"
    )]
    MissingArtifact {
        /// The artifact's name.
        name: String,
        /// Where the placeholder is.
        position: Position,
    },

    /// The template names an artifact, and it is rendered where there are none.
    #[error("the placeholder at {position} needs the artifact `{name}`, and no artifacts are available here")]
    NoArtifacts {
        /// The artifact's name.
        name: String,
        /// Where the placeholder is.
        position: Position,
    },
}

fn hint(nearest: &Option<String>) -> String {
    match nearest {
        Some(key) => format!("; did you mean `{key}`?"),
        None => ".".to_owned(),
    }
}
