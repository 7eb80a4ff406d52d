//! Runs agents on sessions.

mod begin_run;
mod builder;
mod recover;
mod run_agents;
mod stream;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use sessile_session::{SessionKey, SessionService};

pub use builder::RunnerBuilder;
pub use stream::Run;

use crate::agent::Agent;
use crate::agent::tree::Tree;
use crate::context::{Rules, Services};
use crate::event_queue::EventQueue;
use crate::run_request::{RunRequest, WhenBusy};
use crate::turn::{Seats, Turn};

/// Runs a tree of agents on the sessions of an application. Clones are the same runner.
///
/// ```
/// use sessile_agent::{LlmAgent, Runner, RunRequest};
/// # use sessile_agent::{Model, ModelError, ModelRequest, ModelResponse, ModelStream, Streaming};
/// use sessile_session::{CreateSession, MemoryStore, SessionService};
/// # struct Parrot;
/// # #[async_trait::async_trait]
/// # impl Model for Parrot {
/// #     fn name(&self) -> &str { "parrot" }
/// #     async fn generate(&self, request: ModelRequest, _: Streaming) -> Result<ModelStream, ModelError> {
/// #         let said = request.system_instruction.unwrap_or_default();
/// #         Ok(Box::pin(futures_util::stream::iter([Ok(ModelResponse::text(said))])))
/// #     }
/// # }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let sessions = SessionService::new(MemoryStore::new());
/// sessions.create(CreateSession::new("app", "ada").with_id("s1")).await?;
///
/// let greeter = LlmAgent::builder("greeter")
///     .model(Parrot)
///     .instruction("Greet {user:name?}.")
///     .output_key("greeting")
///     .build()?;
/// let runner = Runner::builder("app", greeter, sessions.clone()).build()?;
///
/// let mut events = runner.run(RunRequest::new("ada", "s1").with_text("hello"));
/// while let Some(event) = events.next().await {
///     println!("{}", event?.author);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Runner {
    inner: Arc<Inner>,
}

struct Inner {
    app: String,
    tree: Arc<Tree>,
    services: Arc<Services>,
    when_busy: WhenBusy,
    auto_create: bool,
    /// How contexts treat state, unless an agent overrides it.
    rules: Arc<Rules>,
    /// The shared counter of model calls; `None` if each run has its own.
    model_calls: Option<Arc<AtomicU32>>,
    seats: Arc<Seats>,
}

impl Runner {
    /// A runner of these agents for the sessions of an application.
    pub fn builder(
        app: impl Into<String>,
        root: impl Agent + 'static,
        sessions: SessionService,
    ) -> RunnerBuilder {
        RunnerBuilder::new(app.into(), Arc::new(root), sessions)
    }

    /// Runs the agent whose turn it is to answer. Nothing happens until the stream is read.
    pub fn run(&self, request: RunRequest) -> Run {
        let (queue, turn) = (Arc::<EventQueue>::default(), Arc::<Turn>::default());
        let key = SessionKey::new(&self.inner.app, &request.user, &request.session);
        let work = self.inner.clone().begin_run(key.clone(), request, queue.clone(), turn.clone());
        Run::new(Box::pin(work), queue, turn, key.ok())
    }

    /// Cancels the current run of a session. Returns whether there was one.
    pub fn cancel(&self, session: &SessionKey) -> bool {
        self.inner.seats.cancel(session)
    }

    /// The application.
    pub fn app(&self) -> &str {
        &self.inner.app
    }

    /// The agent at the root.
    pub fn root(&self) -> &Arc<dyn Agent> {
        self.inner.tree.root()
    }

    /// The sessions.
    pub fn sessions(&self) -> &SessionService {
        &self.inner.services.sessions
    }
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner")
            .field("app", &self.inner.app)
            .field("root", &self.root().name())
            .finish_non_exhaustive()
    }
}
