use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sessile_agent::Runner;
use sessile_live::{LiveBuilder, LiveError, LiveHandle};

use crate::http::error::ApiError;

/// The applications that are served, by name.
#[derive(Debug, Default)]
pub struct Apps {
    apps: BTreeMap<String, Entry>,
    /// Where applications were searched, for error messages.
    folder: Option<PathBuf>,
}

/// Configures a live session further, and connects it.
pub(crate) type LiveAgent =
    Arc<dyn Fn(LiveBuilder) -> BoxFuture<'static, Result<LiveHandle, LiveError>> + Send + Sync>;

/// An application.
#[derive(Clone)]
pub struct App {
    runner: Runner,
    language: String,
    /// The live agent for `/run_live`; without one, the runner answers there.
    live: Option<LiveAgent>,
}

#[derive(Debug)]
enum Entry {
    Loaded(App),
    /// Why it could not be loaded.
    Failed(String),
}

impl App {
    /// An application whose agents are written in Rust.
    pub fn new(runner: Runner) -> Self {
        Self { runner, language: "rust".to_owned(), live: None }
    }

    /// With agents written in this language, such as `yaml`.
    #[must_use]
    pub fn with_language(mut self, language: impl Into<String>) -> Self {
        self.language = language.into();
        self
    }

    /// With a live agent for `/run_live`. The function gets a builder that is attached to the
    /// stored session, configures it further, and connects it.
    #[must_use]
    pub fn with_live<Fut: Future<Output = Result<LiveHandle, LiveError>> + Send + 'static>(
        mut self,
        connect: impl Fn(LiveBuilder) -> Fut + Send + Sync + 'static,
    ) -> Self {
        self.live = Some(Arc::new(move |live| connect(live).boxed()));
        self
    }

    pub(crate) fn live(&self) -> Option<&LiveAgent> {
        self.live.as_ref()
    }

    pub(crate) fn runner(&self) -> &Runner {
        &self.runner
    }

    pub(crate) fn language(&self) -> &str {
        &self.language
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("name", &self.runner.app())
            .field("language", &self.language)
            .finish_non_exhaustive()
    }
}

impl Apps {
    /// No applications.
    pub fn new() -> Self {
        Self::default()
    }

    /// With the folder where applications were searched, which error messages name.
    #[must_use]
    pub fn with_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// With this application, under its runner's name.
    #[must_use]
    pub fn with(mut self, app: App) -> Self {
        self.apps.insert(app.runner.app().to_owned(), Entry::Loaded(app));
        self
    }

    /// With an application that could not be loaded, and why. It is listed; using it is an error.
    #[must_use]
    pub fn with_failed(mut self, name: impl Into<String>, reason: impl Into<String>) -> Self {
        self.apps.insert(name.into(), Entry::Failed(reason.into()));
        self
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.apps.keys().map(String::as_str)
    }

    pub(crate) fn loaded(&self) -> impl Iterator<Item = &App> {
        self.apps.values().filter_map(|entry| match entry {
            Entry::Loaded(app) => Some(app),
            Entry::Failed(_) => None,
        })
    }

    /// An application by its name.
    pub(crate) fn find(&self, name: &str) -> Result<&App, ApiError> {
        if name.starts_with("__") {
            let text = "Access to internal special agents is disabled in API server mode and on a \
                        development server not known to be bound to a loopback address.";
            return Err(ApiError::Forbidden(text.to_owned()));
        }
        match self.apps.get(name) {
            Some(Entry::Loaded(app)) => Ok(app),
            Some(Entry::Failed(reason)) => {
                Err(ApiError::NotLoaded { app: name.to_owned(), reason: reason.clone() })
            }
            None => Err(ApiError::NotFound(self.not_found(name))),
        }
    }

    fn not_found(&self, name: &str) -> String {
        match &self.folder {
            Some(folder) => format!(
                "Agent not found: '{name}'. No matching directory or module exists in '{}'.",
                folder.join(name).display()
            ),
            None => format!("Agent not found: '{name}'."),
        }
    }
}
