//! The agents that `serve` and `chat` run: those of a folder, or the samples.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use sessile_agent::Runner;
use sessile_artifact::ArtifactService;
use sessile_config::{LoadedApp, load_apps, load_schemas, samples};
use sessile_memory::MemoryService;
use sessile_session::SessionService;

use crate::exit::Failure;
use crate::stderr::say;

/// The services that agents use.
#[derive(Clone)]
pub(crate) struct Services {
    pub(crate) sessions: SessionService,
    pub(crate) artifacts: Arc<dyn ArtifactService>,
    pub(crate) memory: Arc<dyn MemoryService>,
    /// Whether a run creates a session that does not exist.
    pub(crate) auto_create: bool,
}

/// An application, with its runner or the reason why it cannot run.
pub(crate) struct Application {
    pub(crate) name: String,
    pub(crate) language: &'static str,
    pub(crate) runner: Result<Runner, String>,
}

/// Adds the schemas that the applications of a folder declare to the service. Everything that
/// commits state of these applications must use the returned service: the server, the runners, the
/// commands.
pub(crate) fn with_schemas(
    mut sessions: SessionService,
    folder: Option<&Path>,
) -> anyhow::Result<SessionService> {
    let Some(folder) = folder else { return Ok(sessions) };
    for (name, declared) in load_schemas(folder).with_context(|| cannot_load(folder))? {
        match declared {
            Ok(Some(schema)) => sessions = sessions.with_schema(name, schema),
            Ok(None) => {}
            Err(error) => say(format_args!("the state of {name} is not checked by a schema: {error}")),
        }
    }
    Ok(sessions)
}

fn cannot_load(folder: &Path) -> String {
    format!("cannot load applications from {}; name a folder that can be read", folder.display())
}

impl Services {
    /// The applications of a folder, or the samples if none is named.
    pub(crate) fn load(&self, folder: Option<&Path>) -> anyhow::Result<Vec<Application>> {
        let Some(folder) = folder else {
            return Ok(samples().into_iter().map(|app| self.application(app)).collect());
        };
        let found = load_apps(folder).with_context(|| cannot_load(folder))?;
        if found.is_empty() {
            let text = format!(
                "no folder in {} holds a root_agent.yaml; name the folder above your applications",
                folder.display()
            );
            return Err(Failure::NotFound(text).into());
        }
        let each = found.into_iter().map(|(name, loaded)| match loaded {
            Ok(app) => self.application(app),
            Err(error) => Application { name, language: "yaml", runner: Err(error.to_string()) },
        });
        Ok(each.collect())
    }

    fn application(&self, app: LoadedApp) -> Application {
        let runner = Runner::builder(&app.name, app.root, self.sessions.clone())
            .artifacts(self.artifacts.clone())
            .memory(self.memory.clone())
            .auto_create(self.auto_create)
            .build();
        let LoadedApp { name, language, .. } = app;
        Application { name, language, runner: runner.map_err(|error| error.to_string()) }
    }
}
