use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use std::{fs, io};

use serde::Deserialize;
use serde_json::{Map, Value};
use sessile_agent::ModelError;

use super::pattern::Pattern;
use super::turn::{Call, Turn, fail};
use super::{Cursor, Rule, Scripted, Turns};

/// The largest file that is read. Scripts are written by hand; a larger file is not a script.
const MAX_FILE: u64 = 4 << 20;

/// The format of a script file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    #[serde(default)]
    rules: Vec<RuleEntry>,
    #[serde(default)]
    turns: Vec<TurnEntry>,
    #[serde(default)]
    position: Position,
    #[serde(default)]
    repeat: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "lowercase")]
enum Position {
    #[default]
    Conversation,
    Shared,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleEntry {
    #[serde(default)]
    when: When,
    then: TurnEntry,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct When {
    #[serde(default)]
    user: OneOrMany<String>,
    #[serde(default)]
    tool: OneOrMany<String>,
    result: Option<String>,
    #[serde(default)]
    instruction: OneOrMany<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TurnEntry {
    thought: Option<String>,
    reply: Option<String>,
    pieces: Option<Vec<String>>,
    call: Option<CallEntry>,
    #[serde(default)]
    calls: Vec<CallEntry>,
    usage: Option<Usage>,
    finish_reason: Option<String>,
    error: Option<Failure>,
    #[serde(default)]
    delay_ms: u64,
    #[serde(default)]
    piece_delay_ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallEntry {
    name: String,
    #[serde(default)]
    args: Map<String, Value>,
    id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Usage {
    #[serde(default)]
    prompt: u64,
    #[serde(default)]
    answer: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    code: String,
    message: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl<T> From<OneOrMany<T>> for Vec<T> {
    fn from(items: OneOrMany<T>) -> Self {
        match items {
            OneOrMany::One(item) => vec![item],
            OneOrMany::Many(items) => items,
        }
    }
}

pub(super) fn read(path: &Path) -> Result<Scripted, ModelError> {
    let name = path.display().to_string();
    let text =
        text_of(path).map_err(|error| configuration(&name, format!("the script cannot be read: {error}")))?;
    parse(&name, &text)
}

fn text_of(path: &Path) -> io::Result<String> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if metadata.len() > MAX_FILE {
        return Err(io::Error::other(format!("it is larger than {MAX_FILE} bytes")));
    }
    fs::read_to_string(path)
}

pub(super) fn parse(name: &str, yaml: &str) -> Result<Scripted, ModelError> {
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    let script: Script = serde_saphyr::from_str_with_options(yaml, options)
        .map_err(|error| configuration(name, error.to_string()))?;
    if script.rules.is_empty() && script.turns.is_empty() {
        return Err(configuration(name, "the script has neither rules nor turns".to_owned()));
    }
    let numbered = |kind: &'static str, number: usize| {
        move |reason: String| configuration(name, format!("{kind} {}: {reason}", number + 1))
    };
    let mut rules = Vec::new();
    for (number, entry) in script.rules.into_iter().enumerate() {
        rules.push(rule(entry).map_err(numbered("rule", number))?);
    }
    let mut turns = Vec::new();
    for (number, entry) in script.turns.into_iter().enumerate() {
        turns.push(turn(entry).map_err(numbered("turn", number))?);
    }
    let cursor = match script.position {
        Position::Conversation => Cursor::Conversation,
        Position::Shared => Cursor::Shared(AtomicUsize::new(0)),
    };
    Ok(Scripted {
        name: format!("scripted:{name}"),
        rules,
        turns: Turns::Listed(turns),
        cursor,
        repeat: script.repeat,
        requests: None,
    })
}

fn configuration(name: &str, reason: String) -> ModelError {
    ModelError::Configuration { model: format!("scripted:{name}"), reason }
}

fn rule(entry: RuleEntry) -> Result<Rule, String> {
    let patterns = |patterns: OneOrMany<String>| -> Result<Vec<Pattern>, String> {
        Vec::from(patterns).iter().map(|pattern| Pattern::parse(pattern)).collect()
    };
    let tools = Vec::from(entry.when.tool);
    if entry.when.result.is_some() && tools.is_empty() {
        return Err("\"result\" is about a tool; name it in \"tool\"".to_owned());
    }
    Ok(Rule {
        user: patterns(entry.when.user)?,
        tools,
        result: entry.when.result,
        instruction: patterns(entry.when.instruction)?,
        turn: turn(entry.then)?,
    })
}

fn turn(entry: TurnEntry) -> Result<Turn, String> {
    let calls: Vec<_> = entry.call.into_iter().chain(entry.calls).collect();
    if entry.reply.is_some() && entry.pieces.is_some() {
        return Err("\"reply\" and \"pieces\" are two ways to say the text; give one".to_owned());
    }
    let says = entry.reply.is_some() || entry.pieces.is_some() || entry.thought.is_some();
    let mut turn = match entry.error {
        Some(error) => fail(error.code, error.message),
        None if says || !calls.is_empty() || entry.finish_reason.is_some() => Turn::empty(),
        None => {
            return Err(
                "it says nothing: give \"reply\", \"pieces\", \"call\", \"calls\" or \"error\"".to_owned()
            );
        }
    };
    if let Some(thought) = entry.thought {
        turn = turn.and_thought(thought);
    }
    if let Some(text) = entry.reply {
        turn = turn.and_text(text);
    }
    if let Some(pieces) = entry.pieces {
        turn = turn.in_pieces(pieces);
    }
    for entry in calls {
        let call = Call::from_object(entry.name, entry.args);
        turn = turn.and_call(match entry.id {
            Some(id) => call.with_id(id),
            None => call,
        });
    }
    if let Some(usage) = entry.usage {
        turn = turn.with_usage(usage.prompt, usage.answer);
    }
    if let Some(reason) = entry.finish_reason {
        turn = turn.with_finish_reason(reason);
    }
    Ok(turn
        .after(Duration::from_millis(entry.delay_ms))
        .with_delay_between(Duration::from_millis(entry.piece_delay_ms)))
}
