//! Loading agents from files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde_saphyr::{Location, Spanned};
use sessile_agent::{Agent, AgentTool, LlmAgent, LlmAgentBuilder, LoopAgent, ParallelAgent, SequentialAgent};
use sessile_model::model_by_name;
use sessile_state::StateSchema;

use crate::error::{ConfigError, SourceLocation};
use crate::file::{AgentRef, Source, ToolEntry};
use crate::open::{Class, Open};
use crate::{schema, tools};

/// The model of an agent if neither it nor an agent above names one, as in google-adk.
const DEFAULT_MODEL: &str = "gemini-3.5-flash";

/// Loads the agents of one application.
pub(crate) struct Loader {
    /// The folder above the application's; paths in errors are relative to it.
    above: PathBuf,
    /// The files from the root to the current one, to find cycles.
    open: Vec<PathBuf>,
    files: Vec<PathBuf>,
    /// Where each agent is described.
    names: BTreeMap<String, SourceLocation>,
    /// What the application's state may hold, if its root file declares that.
    schema: Option<StateSchema>,
}

impl Loader {
    pub(crate) fn new(folder: &Path) -> Self {
        let above = folder.parent().unwrap_or(folder).to_owned();
        Self { above, open: Vec::new(), files: Vec::new(), names: BTreeMap::new(), schema: None }
    }

    pub(crate) fn take_schema(&mut self) -> Option<StateSchema> {
        self.schema.take()
    }

    pub(crate) fn into_files(self) -> Vec<PathBuf> {
        self.files
    }

    /// Loads the application's root agent and all below it.
    pub(crate) fn load_root(&mut self, path: &Path) -> Result<Arc<dyn Agent>, ConfigError> {
        let read = |source| ConfigError::Read { file: path.display().to_string(), source };
        let path = path.canonicalize().map_err(read)?;
        self.load(path, false)
    }

    /// Loads the agent in a file. The path is absolute, and checked to be allowed.
    fn load(&mut self, path: PathBuf, inherits: bool) -> Result<Arc<dyn Agent>, ConfigError> {
        let shown = path.strip_prefix(&self.above).unwrap_or(&path).display().to_string();
        let source = Source { shown };
        let file = source.read(&path)?;
        let Some(name) = &file.name else {
            return Err(source.wrong(Location::UNKNOWN, "name", "it is missing; every agent has a name"));
        };
        let location = source.location(name.referenced);
        if let Some(first) = self.names.insert(name.value.clone(), location.clone()) {
            let problem = format!("another agent is named `{}`, at {first}", name.value);
            return Err(source.wrong(name.referenced, "name", problem));
        }
        if let Some(declared) = &file.state_schema {
            if !self.open.is_empty() {
                let problem = "only root_agent.yaml has it: the state is that of the whole application";
                return Err(source.wrong(declared.referenced, "state_schema", problem));
            }
            self.schema = Some(schema::schema(&source, &declared.value)?);
        }
        self.files.push(path.clone());
        self.open.push(path.clone());
        let open = Open { source: &source, file: &file, path: &path, name: &name.value, location, inherits };
        let agent = self.agent(&open)?;
        self.open.pop();
        Ok(agent)
    }

    fn agent(&mut self, open: &Open<'_>) -> Result<Arc<dyn Agent>, ConfigError> {
        let class = open.class()?;
        open.check_fields(class)?;
        let description = open.file.description.as_ref().map_or("", |description| &description.value);
        let name = open.name;
        let failed = |source| open.build(source);
        let on_overwrite = open.on_overwrite()?;
        /// With the settings that all composite agents share.
        macro_rules! with_settings {
            ($agent:expr) => {{
                let agent = $agent.with_description(description);
                match on_overwrite {
                    Some(on_overwrite) => agent.with_on_overwrite(on_overwrite),
                    None => agent,
                }
            }};
        }
        Ok(match class {
            Class::Llm => Arc::new(self.llm(open)?),
            Class::Sequential => {
                let agent =
                    SequentialAgent::new(name, self.sub_agents(open, open.inherits)?).map_err(failed)?;
                Arc::new(with_settings!(agent))
            }
            Class::Parallel => {
                let agent =
                    ParallelAgent::new(name, self.sub_agents(open, open.inherits)?).map_err(failed)?;
                let mut agent = with_settings!(agent);
                for (key, reducer) in open.reducers()? {
                    agent = agent.with_reducer(key, reducer);
                }
                Arc::new(agent)
            }
            Class::Loop => {
                let times = open.file.max_iterations.as_ref().map_or(0, |times| times.value);
                let agent =
                    LoopAgent::new(name, self.sub_agents(open, open.inherits)?, times).map_err(failed)?;
                Arc::new(with_settings!(agent))
            }
        })
    }

    fn llm(&mut self, open: &Open<'_>) -> Result<LlmAgent, ConfigError> {
        let file = open.file;
        let mut builder = open.settings(LlmAgent::builder(open.name))?;
        let (model, at) = match &file.model {
            Some(model) => (Some(model.value.as_str()), model.referenced),
            None => ((!open.inherits).then_some(DEFAULT_MODEL), Location::UNKNOWN),
        };
        if let Some(model) = model {
            let folder = open.path.parent().unwrap_or(open.path);
            let model = model_by_name(model, folder)
                .map_err(|source| ConfigError::Model { location: open.source.location(at), source })?;
            builder = builder.model(model);
        }
        for tool in file.tools.iter().flat_map(|tools| &tools.value) {
            builder = self.tool(open, builder, &tool.value)?;
        }
        for agent in self.sub_agents(open, true)? {
            builder = builder.sub_agent(agent);
        }
        builder.build().map_err(|source| open.build(source))
    }

    fn tool(
        &mut self,
        open: &Open<'_>,
        builder: LlmAgentBuilder,
        tool: &ToolEntry,
    ) -> Result<LlmAgentBuilder, ConfigError> {
        let at = tool.name.referenced;
        let name = tool.name.value.strip_prefix("google.adk.tools.").unwrap_or(&tool.name.value);
        match (name, &tool.args) {
            ("AgentTool", Some(args)) => {
                let agent = self.reference(open, &args.value.agent, "tools", false)?;
                let tool = AgentTool::new(agent);
                Ok(builder.tool(if args.value.skip_summarization { tool.skip_summarization() } else { tool }))
            }
            ("AgentTool", None) => Err(open.source.wrong(
                at,
                "tools",
                "AgentTool needs `args` with an `agent`, which has a `config_path`",
            )),
            (_, Some(args)) => {
                Err(open.source.wrong(args.referenced, "tools", format!("the tool `{name}` takes no `args`")))
            }
            (name, None) => {
                tools::add(builder, name).map_err(|problem| open.source.wrong(at, "tools", problem))
            }
        }
    }

    fn sub_agents(&mut self, open: &Open<'_>, inherits: bool) -> Result<Vec<Arc<dyn Agent>>, ConfigError> {
        let references = open.file.sub_agents.iter().flat_map(|agents| &agents.value);
        references.map(|reference| self.reference(open, reference, "sub_agents", inherits)).collect()
    }

    /// Loads an agent that another one refers to.
    fn reference(
        &mut self,
        open: &Open<'_>,
        reference: &Spanned<AgentRef>,
        field: &str,
        inherits: bool,
    ) -> Result<Arc<dyn Agent>, ConfigError> {
        let wrong = |at, problem: &str| Err(open.source.wrong(at, field, problem));
        match (&reference.value.config_path, &reference.value.code) {
            (Some(path), None) => {
                let path = self.find(open, path, field)?;
                self.load(path, inherits)
            }
            (_, Some(code)) => {
                let problem = format!("{} is code; agents that are code are made in Rust", code.value);
                wrong(code.referenced, &problem)
            }
            (None, None) => wrong(reference.referenced, "`config_path` is missing: the file of the agent"),
        }
    }

    /// The absolute path of a file that an agent refers to. It must be in the agent's folder or
    /// below it, and must not make a cycle.
    fn find(&self, open: &Open<'_>, named: &Spanned<String>, field: &str) -> Result<PathBuf, ConfigError> {
        let wrong = |problem: String| Err(open.source.wrong(named.referenced, field, problem));
        let shown = &named.value;
        let inside = Path::new(shown)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if shown.is_empty() || !inside {
            return wrong(format!("{shown:?} is not a file in the folder of this file, or below it"));
        }
        let folder = open.path.parent().unwrap_or(open.path);
        let path = match fs::canonicalize(folder.join(shown)) {
            Ok(path) => path,
            Err(error) => return wrong(format!("{shown:?} cannot be read: {error}")),
        };
        if !path.starts_with(folder) {
            return wrong(format!("{shown:?} leads out of the folder of this file"));
        }
        if self.open.contains(&path) {
            return wrong(format!("{shown:?} leads back to an agent above; a tree of agents has no cycles"));
        }
        Ok(path)
    }
}
