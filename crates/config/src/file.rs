//! The file of an agent, with the positions of its fields.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_saphyr::{Error, Location, MessageFormatter, Spanned, UserMessageFormatter};

use crate::error::{ConfigError, SourceLocation};

/// The largest file that is read. Files are written by hand; a larger one is not an agent.
const MAX_FILE: u64 = 1 << 20;

/// All fields of the file of an agent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentFile {
    pub(crate) agent_class: Option<Spanned<String>>,
    pub(crate) name: Option<Spanned<String>>,
    pub(crate) description: Option<Spanned<String>>,
    pub(crate) sub_agents: Option<Spanned<Vec<Spanned<AgentRef>>>>,
    pub(crate) max_iterations: Option<Spanned<u32>>,
    pub(crate) on_overwrite: Option<Spanned<String>>,
    pub(crate) reducers: Option<Spanned<BTreeMap<String, Spanned<String>>>>,

    pub(crate) state_schema: Option<Spanned<BTreeMap<String, Spanned<Value>>>>,

    pub(crate) model: Option<Spanned<String>>,
    pub(crate) instruction: Option<Spanned<String>>,
    pub(crate) global_instruction: Option<Spanned<String>>,
    pub(crate) static_instruction: Option<Spanned<String>>,
    pub(crate) output_key: Option<Spanned<String>>,
    pub(crate) output_schema: Option<Spanned<Value>>,
    pub(crate) include_contents: Option<Spanned<String>>,
    pub(crate) disallow_transfer_to_parent: Option<Spanned<bool>>,
    pub(crate) disallow_transfer_to_peers: Option<Spanned<bool>>,
    pub(crate) generate_content_config: Option<Spanned<BTreeMap<String, Spanned<Value>>>>,
    pub(crate) tools: Option<Spanned<Vec<Spanned<ToolEntry>>>>,

    pub(crate) model_code: Option<Spanned<IgnoredAny>>,
    pub(crate) input_schema: Option<Spanned<IgnoredAny>>,
    pub(crate) planner: Option<Spanned<IgnoredAny>>,
    pub(crate) code_executor: Option<Spanned<IgnoredAny>>,
    pub(crate) before_agent_callbacks: Option<Spanned<IgnoredAny>>,
    pub(crate) after_agent_callbacks: Option<Spanned<IgnoredAny>>,
    pub(crate) before_model_callbacks: Option<Spanned<IgnoredAny>>,
    pub(crate) after_model_callbacks: Option<Spanned<IgnoredAny>>,
    pub(crate) before_tool_callbacks: Option<Spanned<IgnoredAny>>,
    pub(crate) after_tool_callbacks: Option<Spanned<IgnoredAny>>,
}

/// The first of these fields that is present, and its position.
macro_rules! first_of {
    ($file:expr, $($field:ident)*) => {
        [$((stringify!($field), $file.$field.as_ref().map(|value| value.referenced))),*]
            .into_iter()
            .find_map(|(name, place)| Some((name, place?)))
    };
}

impl AgentFile {
    /// A field that only an agent with a model has.
    pub(crate) fn llm_field(&self) -> Option<(&'static str, Location)> {
        first_of!(self, model instruction global_instruction static_instruction output_key output_schema
            include_contents disallow_transfer_to_parent disallow_transfer_to_peers generate_content_config tools)
    }

    /// A field that only a loop has.
    pub(crate) fn loop_field(&self) -> Option<(&'static str, Location)> {
        first_of!(self, max_iterations)
    }

    /// A field that names code.
    pub(crate) fn code_field(&self) -> Option<(&'static str, Location)> {
        first_of!(self, model_code input_schema planner code_executor before_agent_callbacks after_agent_callbacks
            before_model_callbacks after_model_callbacks before_tool_callbacks after_tool_callbacks)
    }
}

/// Another agent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentRef {
    pub(crate) config_path: Option<Spanned<String>>,
    pub(crate) code: Option<Spanned<String>>,
}

/// A tool.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolEntry {
    pub(crate) name: Spanned<String>,
    pub(crate) args: Option<Spanned<AgentToolArgs>>,
}

/// The arguments of `AgentTool`, the only tool that has any.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentToolArgs {
    pub(crate) agent: Spanned<AgentRef>,
    #[serde(default)]
    pub(crate) skip_summarization: bool,
}

/// Makes errors about one file.
#[derive(Clone)]
pub(crate) struct Source {
    /// The name of the file in errors.
    pub(crate) shown: String,
}

impl Source {
    pub(crate) fn location(&self, at: Location) -> SourceLocation {
        SourceLocation { file: self.shown.clone(), line: at.line().max(1), column: at.column().max(1) }
    }

    /// The error that something is wrong at a position.
    pub(crate) fn wrong(&self, at: Location, field: &str, problem: impl Into<String>) -> ConfigError {
        ConfigError::Invalid { location: self.location(at), field: field.to_owned(), problem: problem.into() }
    }

    /// Reads a file of this name.
    pub(crate) fn read(&self, path: &Path) -> Result<AgentFile, ConfigError> {
        let text = text_of(path).map_err(|source| ConfigError::Read { file: self.shown.clone(), source })?;
        if text.trim().is_empty() {
            return Err(self.wrong(Location::UNKNOWN, "", "the file is empty; it needs at least a name"));
        }
        parse(&text).map_err(|error| self.unreadable(&text, &error))
    }

    fn unreadable(&self, text: &str, error: &Error) -> ConfigError {
        let at = error.location().unwrap_or(Location::UNKNOWN);
        if let Error::SerdeUnknownField { field, expected, .. } = error.without_snippet() {
            return self.wrong(at, field, format!("there is no such field{}", did_you_mean(field, expected)));
        }
        let message = UserMessageFormatter.format_message(error.without_snippet()).into_owned();
        self.wrong(at, &field_at(text, at), message)
    }
}

/// The text of a file; refused if it is not a plain file or too large.
fn text_of(path: &Path) -> io::Result<String> {
    let file = fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    file.take(MAX_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE {
        return Err(io::Error::other(format!("it is larger than {MAX_FILE} bytes")));
    }
    Ok(text)
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options)
}

/// The field that a position belongs to: the last one that begins before it.
fn field_at(text: &str, at: Location) -> String {
    let Ok(fields) = parse::<BTreeMap<String, Spanned<IgnoredAny>>>(text) else { return String::new() };
    let position = |location: Location| (location.line(), location.column());
    let before = fields.into_iter().filter(|(_, value)| position(value.referenced) <= position(at));
    before.max_by_key(|(_, value)| position(value.referenced)).map_or_else(String::new, |(name, _)| name)
}

/// `; did you mean …?`, if there is a similar name.
pub(crate) fn did_you_mean(name: &str, known: &[&str]) -> String {
    let alike = |known: &&&str| strsim::jaro_winkler(name, known);
    let nearest = known.iter().filter(|known| alike(known) > 0.8);
    let nearest = nearest.max_by(|one, other| alike(one).total_cmp(&alike(other)));
    nearest.map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"))
}
