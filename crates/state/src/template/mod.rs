//! Texts with placeholders for state.

mod error;
mod parse;

use std::fmt;

pub use error::TemplateError;
use serde_json::Value;

use crate::nearest::nearest;
use crate::snapshot::Snapshot;
use crate::value::SharedValue;

/// A text with placeholders, parsed once and rendered against any state.
///
/// | in the template | becomes |
/// |---|---|
/// | `{key}` `{app:key}` `{user:key}` `{temp:key}` | the value of the key; an error if it is absent |
/// | `{key?}` | the value, or nothing if the key is absent |
/// | `{artifact.name}` `{artifact.name?}` | the text of an artifact |
/// | `{{` and `}}` | `{` and `}` |
/// | `${key}` `\{key}`, anything else between braces | itself |
///
/// Texts print as they are, null prints nothing, everything else prints as JSON. What comes out
/// of the state is not expanded again. Braces that belong to JSON or code around a placeholder
/// stay whole.
///
/// ```
/// use sessile_state::{State, Template};
///
/// let state = State::new();
/// state.set("topic", "friendship");
/// state.set("user:ages", [7, 9]);
///
/// let template = Template::parse(r#"A story about {topic} for ages {user:ages}: {"style": "{style?}"}"#);
/// assert_eq!(template.render(&state).unwrap(), r#"A story about friendship for ages [7,9]: {"style": ""}"#);
///
/// let error = Template::parse("Write about {topik}.").render(&state).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "the state has no key `topik` for the placeholder at line 1, column 13; did you mean `topic`? \
///      Set the key, or write {topik?} if it may be absent",
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    source: String,
    pieces: Vec<Piece>,
    ignored: Vec<Ignored>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Placeholder(Placeholder),
}

/// Where the texts of artifacts come from.
type Artifacts<'a> = &'a mut dyn FnMut(&str) -> Option<String>;

/// A part of a template that rendering replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// What it stands for.
    pub kind: PlaceholderKind,
    /// The state key with its prefix, or the name of the artifact.
    pub name: String,
    /// Whether it may be absent (`?`).
    pub optional: bool,
    /// Where its opening brace is.
    pub position: Position,
}

/// What a placeholder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceholderKind {
    /// A key of the state.
    Key,
    /// An artifact.
    Artifact,
}

/// Something between braces that is not a placeholder and stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// The text between the braces.
    pub text: String,
    /// Where its opening brace is.
    pub position: Position,
}

/// A place in a template's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Bytes before it.
    pub offset: usize,
    /// Its line, from 1.
    pub line: usize,
    /// Its column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A placeholder and whether a state has what it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The placeholder.
    pub placeholder: Placeholder,
    /// Whether the state has its key. Never true for an artifact: the state holds none.
    pub found: bool,
    /// The state's key that looks most like it, if its own is absent.
    pub nearest: Option<String>,
}

impl Template {
    /// Parses a text. Every text is a valid template: what is not a placeholder stays as it is, and
    /// [`ignored`](Self::ignored) lists it.
    pub fn parse(source: impl Into<String>) -> Self {
        let source = source.into();
        let (pieces, ignored) = parse::parse(&source);
        Self { source, pieces, ignored }
    }

    /// The text it was parsed from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// All placeholders, in the order of the text.
    pub fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Placeholder(placeholder) => Some(placeholder),
        })
    }

    /// What stands between braces and is left as it is: often JSON, sometimes a mistyped
    /// placeholder such as `{user name}`.
    pub fn ignored(&self) -> &[Ignored] {
        &self.ignored
    }

    /// Lists all placeholders and whether a state has what they need, without rendering.
    ///
    /// ```
    /// use sessile_state::{State, Template};
    ///
    /// let state = State::new();
    /// state.set("name", "Ada");
    ///
    /// let checked = Template::parse("{name} {nmae} {mood?}").validate(&state);
    /// let missing: Vec<_> = checked.iter().filter(|c| !c.found && !c.placeholder.optional).collect();
    /// assert_eq!(checked.len(), 3);
    /// assert_eq!(missing[0].placeholder.name, "nmae");
    /// assert_eq!(missing[0].nearest.as_deref(), Some("name"));
    /// ```
    pub fn validate(&self, state: impl Into<Snapshot>) -> Vec<Checked> {
        let state = state.into();
        self.placeholders()
            .map(|placeholder| {
                let is_key = placeholder.kind == PlaceholderKind::Key;
                let found = is_key && state.contains(&placeholder.name);
                let nearest = if is_key && !found { nearest_key(&placeholder.name, &state) } else { None };
                Checked { placeholder: placeholder.clone(), found, nearest }
            })
            .collect()
    }

    /// The text with its placeholders replaced, all from the state at one moment.
    ///
    /// # Errors
    ///
    /// - [`TemplateError::MissingKey`] for the first key that is absent and not optional;
    /// - [`TemplateError::NoArtifacts`] if it names an artifact: use
    ///   [`render_with_artifacts`](Self::render_with_artifacts).
    pub fn render(&self, state: impl Into<Snapshot>) -> Result<String, TemplateError> {
        self.fill(&state.into(), None)
    }

    /// The text with its placeholders replaced, artifacts by what `artifact` returns for a name.
    ///
    /// # Errors
    ///
    /// [`TemplateError::MissingKey`] or [`TemplateError::MissingArtifact`] for the first one that
    /// is absent and not optional.
    pub fn render_with_artifacts(
        &self,
        state: impl Into<Snapshot>,
        mut artifact: impl FnMut(&str) -> Option<String>,
    ) -> Result<String, TemplateError> {
        self.fill(&state.into(), Some(&mut artifact))
    }

    fn fill(&self, state: &Snapshot, mut artifact: Option<Artifacts<'_>>) -> Result<String, TemplateError> {
        let mut text = String::with_capacity(self.source.len());
        for piece in &self.pieces {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Placeholder(placeholder) => {
                    let artifact = artifact.as_mut().map(|artifact| &mut **artifact as _);
                    text.push_str(&placeholder.value(state, artifact)?);
                }
            }
        }
        Ok(text)
    }
}

impl Placeholder {
    fn value(&self, state: &Snapshot, artifact: Option<Artifacts<'_>>) -> Result<String, TemplateError> {
        let value = match (self.kind, artifact) {
            (PlaceholderKind::Key, _) => state.get_raw(&self.name).map(|value| print(&value)),
            (PlaceholderKind::Artifact, Some(artifact)) => artifact(&self.name),
            (PlaceholderKind::Artifact, None) => {
                return Err(TemplateError::NoArtifacts { name: self.name.clone(), position: self.position });
            }
        };
        match value {
            Some(value) => Ok(value),
            None if self.optional => Ok(String::new()),
            None => Err(self.missing(state)),
        }
    }

    fn missing(&self, state: &Snapshot) -> TemplateError {
        let (name, position) = (self.name.clone(), self.position);
        match self.kind {
            PlaceholderKind::Artifact => TemplateError::MissingArtifact { name, position },
            PlaceholderKind::Key => {
                TemplateError::MissingKey { nearest: nearest_key(&name, state), key: name, position }
            }
        }
    }
}

fn nearest_key(key: &str, state: &Snapshot) -> Option<String> {
    nearest(key, state.keys()).map(str::to_owned)
}

fn print(value: &SharedValue) -> String {
    match &**value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        _ => value.to_string(),
    }
}
