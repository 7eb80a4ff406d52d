//! The file of an agent while the agent is built: its class, its fields, its settings.

use std::path::Path;

use serde_saphyr::Spanned;
use sessile_agent::{BuildError, IncludeContents, LlmAgentBuilder};
use sessile_session::{OnOverwrite, UnknownOnOverwrite};
use sessile_state::{Reducer, UnknownReducer};

use crate::error::{ConfigError, SourceLocation};
use crate::file::{AgentFile, Source, did_you_mean};
use crate::settings;

/// The file of an agent while the agent is built.
pub(crate) struct Open<'a> {
    pub(crate) source: &'a Source,
    pub(crate) file: &'a AgentFile,
    /// Where it is; files that it names are in its folder.
    pub(crate) path: &'a Path,
    pub(crate) name: &'a str,
    pub(crate) location: SourceLocation,
    /// Whether an agent above has a model.
    pub(crate) inherits: bool,
}

/// The kinds of agents.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Class {
    Llm,
    Sequential,
    Parallel,
    Loop,
}

const CLASSES: [(&str, Class); 5] = [
    ("LlmAgent", Class::Llm),
    ("Agent", Class::Llm),
    ("SequentialAgent", Class::Sequential),
    ("ParallelAgent", Class::Parallel),
    ("LoopAgent", Class::Loop),
];

impl Open<'_> {
    /// The kind of agent that it describes.
    pub(crate) fn class(&self) -> Result<Class, ConfigError> {
        let Some(named) = &self.file.agent_class else { return Ok(Class::Llm) };
        let short = named.value.strip_prefix("google.adk.agents.").unwrap_or(&named.value);
        if let Some((_, class)) = CLASSES.iter().find(|(name, _)| *name == short) {
            return Ok(*class);
        }
        let problem = if short.contains('.') {
            format!("`{short}` is code; agents that are code are made in Rust")
        } else {
            let known = CLASSES.map(|(name, _)| name);
            format!("there is no class `{short}`{}", did_you_mean(short, &known))
        };
        Err(self.source.wrong(named.referenced, "agent_class", problem))
    }

    /// Refuses fields that this class does not have, and those that are code.
    pub(crate) fn check_fields(&self, class: Class) -> Result<(), ConfigError> {
        if let Some((field, at)) = self.file.code_field() {
            let problem = "it names code; callbacks and other code are written in Rust";
            return Err(self.source.wrong(at, field, problem));
        }
        if let (Class::Sequential | Class::Loop, Some(reducers)) = (class, &self.file.reducers) {
            let problem = "only an LlmAgent and a ParallelAgent have it; `state_schema` of the root agent has it for all";
            return Err(self.source.wrong(reducers.referenced, "reducers", problem));
        }
        let of_llm = || self.file.llm_field().map(|found| (found, "an LlmAgent"));
        let of_loop = || self.file.loop_field().map(|found| (found, "a LoopAgent"));
        let foreign = match class {
            Class::Llm => of_loop(),
            Class::Loop => of_llm(),
            Class::Sequential | Class::Parallel => of_llm().or_else(of_loop),
        };
        let Some(((field, at), owner)) = foreign else { return Ok(()) };
        let class = self.file.agent_class.as_ref().map_or("LlmAgent", |class| &class.value);
        Err(self.source.wrong(at, field, format!("only {owner} has it; this is a {class}")))
    }

    /// What happens when a callback or tool overwrites a value that it had not read, if the file
    /// declares it.
    pub(crate) fn on_overwrite(&self) -> Result<Option<OnOverwrite>, ConfigError> {
        let Some(named) = &self.file.on_overwrite else { return Ok(None) };
        named.value.parse().map(Some).map_err(|error: UnknownOnOverwrite| {
            self.source.wrong(named.referenced, "on_overwrite", error.to_string())
        })
    }

    /// The reducers of keys.
    pub(crate) fn reducers(&self) -> Result<Vec<(&str, Reducer)>, ConfigError> {
        let mut reducers = Vec::new();
        for (key, name) in self.file.reducers.iter().flat_map(|reducers| &reducers.value) {
            let reducer = name.value.parse().map_err(|error: UnknownReducer| {
                self.source.wrong(name.referenced, "reducers", format!("`{key}`: {error}"))
            })?;
            reducers.push((key.as_str(), reducer));
        }
        Ok(reducers)
    }

    /// Applies the settings of an agent with a model.
    pub(crate) fn settings(&self, mut builder: LlmAgentBuilder) -> Result<LlmAgentBuilder, ConfigError> {
        let file = self.file;
        let text = |field: &Option<Spanned<String>>| field.as_ref().map(|text| text.value.clone());
        if let Some(text) = text(&file.description) {
            builder = builder.description(text);
        }
        if let Some(text) = text(&file.instruction) {
            builder = builder.instruction(text);
        }
        if let Some(text) = text(&file.global_instruction) {
            builder = builder.global_instruction(text);
        }
        if let Some(text) = text(&file.static_instruction) {
            builder = builder.static_instruction(text);
        }
        if let Some(key) = text(&file.output_key) {
            builder = builder.output_key(key);
        }
        if let Some(schema) = &file.output_schema {
            let checked = settings::output_schema(&schema.value);
            let checked =
                checked.map_err(|problem| self.source.wrong(schema.referenced, "output_schema", problem))?;
            builder = builder.output_json_schema(checked);
        }
        if let Some(include) = &file.include_contents {
            builder = builder.include_contents(match include.value.as_str() {
                "default" => IncludeContents::Default,
                "none" => IncludeContents::None,
                other => {
                    let problem = format!("it is `default` or `none`, not {other:?}");
                    return Err(self.source.wrong(include.referenced, "include_contents", problem));
                }
            });
        }
        if let Some(disallow) = &file.disallow_transfer_to_parent {
            builder = builder.disallow_transfer_to_parent(disallow.value);
        }
        if let Some(disallow) = &file.disallow_transfer_to_peers {
            builder = builder.disallow_transfer_to_peers(disallow.value);
        }
        if let Some(on_overwrite) = self.on_overwrite()? {
            builder = builder.on_overwrite(on_overwrite);
        }
        for (key, reducer) in self.reducers()? {
            builder = builder.reducer(key, reducer);
        }
        if let Some(config) = &file.generate_content_config {
            builder = builder.generation_config(settings::generation(self.source, &config.value)?);
        }
        Ok(builder)
    }

    /// The error that the agent cannot be built.
    pub(crate) fn build(&self, source: BuildError) -> ConfigError {
        ConfigError::Build { location: self.location.clone(), source }
    }
}
