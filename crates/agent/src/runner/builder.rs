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

/// A runner to be.
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

    /// With a place for artifacts.
    #[must_use]
    pub fn artifacts(mut self, artifacts: Arc<dyn ArtifactService>) -> Self {
        self.services.artifacts = Some(artifacts);
        self
    }

    /// With a place for memories.
    #[must_use]
    pub fn memory(mut self, memory: Arc<dyn MemoryService>) -> Self {
        self.services.memory = Some(memory);
        self
    }

    /// What happens when a session that is being run is run again; it waits, unless this says
    /// otherwise.
    #[must_use]
    pub fn when_busy(mut self, when_busy: WhenBusy) -> Self {
        self.when_busy = when_busy;
        self
    }

    /// Whether a session that is not there is created by its first run; otherwise that is an error.
    #[must_use]
    pub fn auto_create(mut self, auto_create: bool) -> Self {
        self.auto_create = auto_create;
        self
    }

    /// Turns what callbacks and tools of all agents set under a key into an operation, so that
    /// writes of several tools, branches, sessions and processes all count. An agent may declare
    /// another reducer for the key.
    #[must_use]
    pub fn reducer(mut self, key: impl Into<String>, reducer: Reducer) -> Self {
        Arc::make_mut(&mut self.rules.reducers).insert(key.into(), reducer);
        self
    }

    /// What happens when a key that a callback or tool read and then set holds another value at the
    /// commit: the event tells so, or the write is refused. Without it, what holds for the service
    /// of sessions.
    #[must_use]
    pub fn on_overwrite(mut self, on_overwrite: OnOverwrite) -> Self {
        self.rules.on_overwrite = on_overwrite;
        self
    }

    /// As part of the run of a tool call: model calls count together, and state is treated as
    /// there.
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
    /// [`BuildError`] names all that is wrong: an application name that cannot be one, names that
    /// agents share or cannot have, an agent below itself or in two places, an agent without a
    /// model.
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
