use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use sessile_artifact::ArtifactService;
use sessile_memory::MemoryService;
use sessile_session::{OnOverwrite, SessionKey, SessionService};
use sessile_state::Reducer;

use super::{Inner, Runner};
use crate::agent::Agent;
use crate::agent::tree::Tree;
use crate::context::{Outer, Rules, Services};
use crate::error::BuildError;
use crate::run_request::WhenBusy;

/// Builds a [`Runner`].
pub struct RunnerBuilder {
    app: String,
    root: Arc<dyn Agent>,
    services: Services,
    when_busy: WhenBusy,
    auto_create: bool,
    rules: Rules,
    model_calls: Option<Arc<AtomicU32>>,
}

impl RunnerBuilder {
    pub(super) fn new(app: String, root: Arc<dyn Agent>, sessions: SessionService) -> Self {
        let reducers = sessions.schema(&app).map(|schema| schema.reducers().clone()).unwrap_or_default();
        let rules = Rules { on_overwrite: sessions.on_overwrite(), reducers: Arc::new(reducers) };
        let services = Services { sessions, artifacts: None, memory: None, outer: None };
        let when_busy = WhenBusy::default();
        Self { app, root, services, when_busy, auto_create: false, rules, model_calls: None }
    }

    /// The service that stores artifacts.
    #[must_use]
    pub fn artifacts(mut self, artifacts: Arc<dyn ArtifactService>) -> Self {
        self.services.artifacts = Some(artifacts);
        self
    }

    /// The service that stores memories.
    #[must_use]
    pub fn memory(mut self, memory: Arc<dyn MemoryService>) -> Self {
        self.services.memory = Some(memory);
        self
    }

    /// What happens when a session is run again during a run. By default, the new run waits.
    #[must_use]
    pub fn when_busy(mut self, when_busy: WhenBusy) -> Self {
        self.when_busy = when_busy;
        self
    }

    /// Whether a run creates its session if it does not exist. By default, that is an error.
    #[must_use]
    pub fn auto_create(mut self, auto_create: bool) -> Self {
        self.auto_create = auto_create;
        self
    }

    /// Turns what callbacks and tools of all agents set under a key into an operation, so that
    /// concurrent writes of tools, branches, sessions and processes all count. An agent may declare
    /// another reducer for the key.
    #[must_use]
    pub fn reducer(mut self, key: impl Into<String>, reducer: Reducer) -> Self {
        Arc::make_mut(&mut self.rules.reducers).insert(key.into(), reducer);
        self
    }

    /// What happens when a key that a callback or tool read and then set holds another value at the
    /// commit: the event reports it, or the write is refused. By default, as the session service
    /// has it.
    #[must_use]
    pub fn on_overwrite(mut self, on_overwrite: OnOverwrite) -> Self {
        self.rules.on_overwrite = on_overwrite;
        self
    }

    /// Makes the runs part of a tool call: they share its count of model calls and its rules for
    /// state.
    pub(crate) fn inside(mut self, outer: Arc<Outer>) -> Self {
        self.model_calls = Some(outer.ctx.invocation.model_calls.clone());
        self.rules = Rules::clone(&outer.ctx.frame.rules);
        self.services.outer = Some(outer);
        self
    }

    /// The runner.
    ///
    /// # Errors
    ///
    /// [`BuildError`] lists all problems: an invalid name of the application, names of agents that
    /// are invalid or used twice, an agent that is below itself or in the tree twice, an agent
    /// without a model.
    pub fn build(self) -> Result<Runner, BuildError> {
        let mut problems = Vec::new();
        if let Err(error) = SessionKey::new(&self.app, "user", "session") {
            problems.push(error.to_string());
        }
        let tree = Tree::new(self.root).map_err(|more| problems.extend(more));
        BuildError::check(|| format!("the runner of {:?}", self.app), problems)?;
        let Ok(tree) = tree else { unreachable!("a tree that is none has problems") };
        Ok(Runner {
            inner: Arc::new(Inner {
                app: self.app,
                tree: Arc::new(tree),
                services: Arc::new(self.services),
                when_busy: self.when_busy,
                auto_create: self.auto_create,
                rules: Arc::new(self.rules),
                model_calls: self.model_calls,
                seats: Arc::default(),
            }),
        })
    }
}

impl fmt::Debug for RunnerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunnerBuilder")
            .field("app", &self.app)
            .field("root", &self.root.name())
            .finish_non_exhaustive()
    }
}
