//! Extractors: they turn the transcript into keys of state.

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

use crate::transcript::LiveTurn;
use from_model::FromModel;

/// Extracts a value from the last turns of a conversation.
#[async_trait]
pub trait TurnExtractor: Send + Sync {
    /// The value as JSON. The fields of an object become keys of state, except nulls.
    ///
    /// # Errors
    ///
    /// Any error; state does not change then.
    async fn extract(&self, turns: &[Arc<LiveTurn>]) -> Result<Value, BoxError>;
}

/// When an extractor runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Trigger {
    /// At the end of every turn.
    #[default]
    EveryTurn,
    /// At the end of every n-th turn.
    Interval(u32),
    /// After tools were answered.
    AfterToolCall,
    /// After a change of phase.
    OnPhaseChange,
    /// When the model has generated its answer; the current turn is part of the window.
    OnGenerationComplete,
}

/// A [`TurnExtractor`] and when it runs. Its value is written to state: the whole value under the
/// extractor's name, and each field that is not null under its own. Everything is checked first,
/// and committed together or not at all.
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
    /// A custom extractor.
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

    /// An extractor that lets a model fill a `T` from the last turns. An answer that cannot be
    /// deserialized as `T` is an error; fields that `T` does not have are left out.
    pub fn of<T: DeserializeOwned + JsonSchema + 'static>(
        name: impl Into<Arc<str>>,
        model: Arc<dyn Model>,
        prompt: impl Into<String>,
    ) -> Self {
        Self::new(name, FromModel::new::<T>(model, prompt.into()))
    }

    /// Sets how many turns it reads.
    #[must_use]
    pub fn with_window(mut self, turns: usize) -> Self {
        self.window = turns;
        self
    }

    /// Sets when it runs.
    #[must_use]
    pub fn with_trigger(mut self, trigger: Trigger) -> Self {
        self.trigger = trigger;
        self
    }

    /// Sets the timeout; the end of the turn waits for the extractor.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Skips turns in which the user said fewer words.
    #[must_use]
    pub fn with_min_words(mut self, words: usize) -> Self {
        self.min_words = words;
        self
    }

    /// Commits the value only if this returns `Ok`; it sees state with the value applied.
    #[must_use]
    pub fn accept_if(
        mut self,
        accept: impl Fn(&State) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.accept = Some(Box::new(accept));
        self
    }

    /// Whether the user said enough words.
    pub(crate) fn wants(&self, turns: &[Arc<LiveTurn>]) -> bool {
        let said = turns.last().map(|turn| turn.user());
        said.is_some_and(|said| said.split_whitespace().count() >= self.min_words)
    }

    /// Commits the value, or returns why it was not committed.
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
