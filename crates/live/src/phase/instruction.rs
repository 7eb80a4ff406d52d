use std::sync::Arc;

use sessile_state::{State, Template};

/// An instruction for the model: a text with placeholders, or a function of state.
#[derive(Clone)]
pub(crate) enum Instruction {
    Text(Arc<Template>),
    Computed(Arc<dyn Fn(&State) -> String + Send + Sync>),
}

impl Instruction {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(Arc::new(Template::parse(text)))
    }

    pub(crate) fn computed(make: impl Fn(&State) -> String + Send + Sync + 'static) -> Self {
        Self::Computed(Arc::new(make))
    }

    /// The text for this state, or the reason why it cannot be rendered.
    pub(crate) fn render(&self, state: &State) -> Result<String, String> {
        match self {
            Self::Text(template) => template.render(state).map_err(|error| error.to_string()),
            Self::Computed(make) => Ok(make(state)),
        }
    }
}
