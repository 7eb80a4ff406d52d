//! Extractors: what was said becomes fields of state.

mod from_model;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sessile_agent::Model;
use sessile_session::BoxError;
use sessile_state::State;

use crate::transcript::Turn;
use from_model::FromModel;

/// Finds something in the last turns of a conversation.
#[async_trait]
pub trait TurnExtractor: Send + Sync {
    /// What it finds, as JSON. An object's fields become keys of state, nulls aside.
    ///
    /// # Errors
    ///
    /// Anything; state stays as it was.
    async fn extract(&self, turns: &[Arc<Turn>]) -> Result<Value, BoxError>;
}

/// When an extractor runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Trigger {
    /// At the end of every turn.
    #[default]
    EveryTurn,
    /// At the end of every so many turns.
    Interval(u32),
    /// After tools were answered.
    AfterToolCall,
    /// When the conversation is in another phase.
    OnPhaseChange,
    /// When the model has made its answer; the turn that is going on is part of the window.
    OnGenerationComplete,
}

/// A [`TurnExtractor`], when it runs, and what becomes of what it finds: the whole value under the
/// extractor's name, and each field that is not null under its own. All is written to a delta view,
/// checked, and then committed or forgotten.
///
/// ```no_run
/// use std::time::Duration;
/// use sessile_live::{Extractor, Trigger};
/// # fn model() -> std::sync::Arc<dyn sessile_agent::Model> { unimplemented!() }
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Order {
///     /// The number of the order, if the caller said it.
///     order_number: Option<u32>,
/// }
///
/// let order = Extractor::of::<Order>("order_facts", model(), "Find the number of the caller's order.")
///     .with_window(5)
///     .with_trigger(Trigger::EveryTurn)
///     .with_timeout(Duration::from_secs(3))
///     .accept_if(|state| match state.get::<u32>("order_number") {
///         Some(0) => Err("orders are numbered from 1".to_owned()),
///         _ => Ok(()),
///     });
/// ```
pub struct Extractor {
    pub(crate) name: Arc<str>,
    pub(crate) source: Arc<dyn TurnExtractor>,
    pub(crate) window: usize,
    pub(crate) trigger: Trigger,
    pub(crate) timeout: Duration,
    pub(crate) min_words: usize,
    accept: Option<Accept>,
}

type Accept = Box<dyn Fn(&State) -> Result<(), String> + Send + Sync>;

impl Extractor {
    /// An extractor of one's own.
    pub fn new(name: impl Into<Arc<str>>, source: impl TurnExtractor + 'static) -> Self {
        Self {
            name: name.into(),
            source: Arc::new(source),
            window: 3,
            trigger: Trigger::EveryTurn,
            timeout: Duration::from_secs(5),
            min_words: 0,
            accept: None,
        }
    }

    /// A model reads the last turns and fills a `T`; what does not fit `T` is refused, and fields
    /// that `T` does not have are left out.
    pub fn of<T: DeserializeOwned + JsonSchema + 'static>(
        name: impl Into<Arc<str>>,
        model: Arc<dyn Model>,
        prompt: impl Into<String>,
    ) -> Self {
        Self::new(name, FromModel::new::<T>(model, prompt.into()))
    }

    /// How many turns it sees.
    #[must_use]
    pub fn with_window(mut self, turns: usize) -> Self {
        self.window = turns;
        self
    }

    /// When it runs.
    #[must_use]
    pub fn with_trigger(mut self, trigger: Trigger) -> Self {
        self.trigger = trigger;
        self
    }

    /// How long it may take; the end of the turn waits for it.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How many words the user must have said in the last turn.
    #[must_use]
    pub fn with_min_words(mut self, words: usize) -> Self {
        self.min_words = words;
        self
    }

    /// What is found is committed only if this agrees; it sees state as it would be.
    #[must_use]
    pub fn accept_if(
        mut self,
        accept: impl Fn(&State) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.accept = Some(Box::new(accept));
        self
    }

    /// Whether the turns are worth looking at.
    pub(crate) fn wants(&self, turns: &[Arc<Turn>]) -> bool {
        let said = turns.last().map(|turn| turn.user());
        said.is_some_and(|said| said.split_whitespace().count() >= self.min_words)
    }

    /// Writes what was found, or says why not; nothing is written then.
    pub(crate) fn commit(&self, value: &Value, state: &State) -> Result<(), String> {
        let view = state.with_delta_tracking();
        let fields = value.as_object().into_iter().flatten().filter(|(_, field)| !field.is_null());
        let written = view.try_set_raw(&self.name, value.clone()).and_then(|()| {
            fields.into_iter().try_for_each(|(name, field)| view.try_set_raw(name, field.clone()))
        });
        written.map_err(|error| error.to_string())?;
        if let Some(accept) = &self.accept {
            accept(&view)?;
        }
        view.try_commit().map_err(|error| error.to_string())
    }
}

impl std::fmt::Debug for Extractor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Extractor")
            .field("name", &self.name)
            .field("trigger", &self.trigger)
            .finish_non_exhaustive()
    }
}
