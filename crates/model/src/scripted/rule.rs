use sessile_agent::{ModelError, ModelRequest};
use sessile_session::{Content, FunctionResponse};

use super::fill::{Names, fill};
use super::pattern::Pattern;
use super::turn::Turn;

/// Answers every request that matches it.
///
/// A pattern is a text that the message must contain as whole words; the case of ASCII letters is
/// ignored. A placeholder `{name}` matches any text up to what follows it, or to the end of the
/// sentence, and may be used in the answer. So may `{user}`, the whole message, and
/// `{result.field}`, a field of the tool's result.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Any of these in the message, which must be the newest content.
    pub(super) user: Vec<Pattern>,
    /// Any of these tools, whose result is the newest content.
    pub(super) tools: Vec<String>,
    /// A field that the result must have.
    pub(super) result: Option<String>,
    /// Any of these in the system instruction.
    pub(super) instruction: Vec<Pattern>,
    pub(super) turn: Turn,
}

impl Rule {
    /// For every request.
    pub fn always() -> Self {
        Self {
            user: Vec::new(),
            tools: Vec::new(),
            result: None,
            instruction: Vec::new(),
            turn: Turn::empty(),
        }
    }

    /// For a message that fits a pattern.
    ///
    /// # Errors
    ///
    /// [`ModelError::Configuration`] if it is not a pattern.
    pub fn user(pattern: &str) -> Result<Self, ModelError> {
        Ok(Self { user: vec![parsed(pattern)?], ..Self::always() })
    }

    /// For the result of a tool.
    pub fn tool(name: impl Into<String>) -> Self {
        Self { tools: vec![name.into()], ..Self::always() }
    }

    /// Only if the tool's result has this field, such as `error`.
    pub fn and_result(self, field: impl Into<String>) -> Self {
        Self { result: Some(field.into()), ..self }
    }

    /// Only if the system instruction fits a pattern, too.
    ///
    /// # Errors
    ///
    /// [`ModelError::Configuration`] if it is not a pattern.
    pub fn and_instruction(self, pattern: &str) -> Result<Self, ModelError> {
        Ok(Self { instruction: vec![parsed(pattern)?], ..self })
    }

    /// What it answers.
    pub fn then(self, turn: Turn) -> Self {
        Self { turn, ..self }
    }

    pub(super) fn answer(&self, request: &ModelRequest) -> Option<Turn> {
        let mut names = Names::default();
        if !self.tools.is_empty() {
            let response = result_of(&self.tools, request.contents.last()?)?;
            let result = response.response.as_ref();
            if let Some(field) = &self.result {
                result?.get(field)?;
            }
            names.results(result.into_iter().flatten());
        }
        let message = request.contents.last().and_then(message);
        if let Some(message) = &message {
            names.set("user", message);
        }
        if !self.user.is_empty() {
            names.extend(first(&self.user, message.as_deref()?)?);
        }
        if !self.instruction.is_empty() {
            names.extend(first(&self.instruction, request.system_instruction.as_deref()?)?);
        }
        Some(fill(self.turn.clone(), &names))
    }
}

fn parsed(pattern: &str) -> Result<Pattern, ModelError> {
    let reason = |reason| ModelError::Configuration { model: "scripted".to_owned(), reason };
    Pattern::parse(pattern).map_err(reason)
}

fn first(patterns: &[Pattern], text: &str) -> Option<Vec<(String, String)>> {
    patterns.iter().find_map(|pattern| pattern.captures(text))
}

/// The text of a user's message; `None` if it contains results of tools.
fn message(content: &Content) -> Option<String> {
    let texts: Vec<_> = content.parts().iter().filter_map(|part| part.text.as_deref()).collect();
    let answers_tools = content.parts().iter().any(|part| part.function_response.is_some());
    (content.role.as_deref() == Some("user") && !answers_tools && !texts.is_empty()).then(|| texts.join("\n"))
}

fn result_of<'a>(tools: &[String], content: &'a Content) -> Option<&'a FunctionResponse> {
    let responses = content.parts().iter().filter_map(|part| part.function_response.as_deref());
    responses.into_iter().find(|response| tools.iter().any(|tool| response.name.as_ref() == Some(tool)))
}
