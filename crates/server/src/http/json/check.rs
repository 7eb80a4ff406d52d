//! Compares a value with its model. It finds all problems, not only the first.

use serde_json::json;
use sessile_state::{Operations, SharedValue};

use super::flag::flag;
use super::parse::{Node, Value};
use super::problem::{Problem, Step};
use crate::describe::model::{Field, Kind, Model, Presence, is_called};

/// How many problems are reported at most.
pub(crate) const MOST_PROBLEMS: usize = 100;

/// The problems of a value that should match a model.
pub(crate) fn check(node: &Node<'_>, model: &Model) -> Vec<Problem> {
    let mut check = Check::default();
    check.object(node, model);
    check.problems
}

/// The problems of a body that should be a map.
pub(crate) fn check_map(node: &Node<'_>) -> Vec<Problem> {
    let mut check = Check::default();
    check.value(node, &Kind::Map);
    check.problems
}

/// The boolean that a value stands for, in the spellings that ADK accepts.
pub(crate) fn flag_of(node: &Node<'_>) -> Option<bool> {
    match (&node.value, node.raw) {
        (Value::Flag(flag), _) => Some(*flag),
        (Value::Number, "1" | "1.0") => Some(true),
        (Value::Number, "0" | "0.0") => Some(false),
        (Value::Text(text), _) => flag(text),
        _ => None,
    }
}

/// A field of an object, as it was sent.
type Entry<'a> = (std::borrow::Cow<'a, str>, Node<'a>);

/// The prefix of the notes that only a commit writes, see [`sessile_session::OPERATIONS`].
const RESERVED: &str = "sessile:";

#[derive(Default)]
struct Check<'a> {
    /// The path to the current value. It borrows the names: they are copied only for a problem, and
    /// most bodies have none.
    path: Vec<PathStep<'a>>,
    problems: Vec<Problem>,
}

#[derive(Clone, Copy)]
enum PathStep<'a> {
    Name(&'a str),
    Index(usize),
}

impl<'a> Check<'a> {
    fn object(&mut self, node: &'a Node<'_>, model: &'a Model) {
        let Value::Object(entries) = &node.value else {
            let msg = "Input should be a valid dictionary or object to extract fields from";
            return self.report("model_attributes_type", msg, node.raw);
        };
        for field in model.fields {
            self.field(node, entries, field);
        }
        self.some_of(node, entries, model.some_of);
        if model.closed {
            let known = |name: &str| model.fields.iter().any(|field| field.is_called(name));
            for (name, value) in entries.iter().filter(|(name, _)| !known(name)) {
                self.at(PathStep::Name(name), |check| {
                    check.report("extra_forbidden", "Extra inputs are not permitted", value.raw);
                });
            }
        }
    }

    /// At least one of these fields must be given.
    fn some_of(&mut self, parent: &Node<'_>, entries: &[Entry<'_>], names: &[&'a str]) {
        let Some(first) = names.first() else { return };
        let is_given = |(name, node): &Entry<'_>| {
            !matches!(node.value, Value::Null) && names.iter().any(|field| is_called(field, name))
        };
        if !entries.iter().any(is_given) && !entries.iter().any(|(name, _)| is_called(first, name)) {
            self.at(PathStep::Name(first), |check| check.report("missing", "Field required", parent.raw));
        }
    }

    fn field(&mut self, parent: &Node<'_>, entries: &'a [Entry<'_>], field: &'a Field) {
        let mut given = entries.iter().filter(|(name, _)| field.is_called(name));
        let Some((name, node)) = given.next() else {
            if field.presence == Presence::Required {
                self.at(PathStep::Name(field.name), |check| {
                    check.report("missing", "Field required", parent.raw)
                });
            }
            return;
        };
        if let Some((other, value)) = given.next() {
            let msg = format!("The field is given twice, as {name} and as {other}");
            self.at(PathStep::Name(other), |check| check.report("given_twice", &msg, value.raw));
        }
        if field.presence == Presence::Optional && matches!(node.value, Value::Null) {
            return;
        }
        self.at(PathStep::Name(name), |check| check.value(node, &field.kind));
    }

    fn value(&mut self, node: &'a Node<'_>, kind: &'a Kind) {
        match (kind, &node.value) {
            (Kind::Any, _)
            | (Kind::Text, Value::Text(_))
            | (Kind::Number, Value::Number)
            | (Kind::Map, Value::Object(_)) => {}
            (Kind::Object(model), _) => self.object(node, model),
            (Kind::List(kind), Value::List(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.at(PathStep::Index(index), |check| check.value(item, kind));
                }
            }
            (Kind::MapOf(kind), Value::Object(entries)) => {
                for (name, value) in entries {
                    self.at(PathStep::Name(name), |check| check.value(value, kind));
                }
            }
            (Kind::Notes, Value::Object(entries)) => self.notes(entries),
            (Kind::Operations, _) => self.operations(node),
            (Kind::Word(words), Value::Text(text)) if words.contains(&&**text) => {}
            (Kind::Word(words), _) => self.word(words, node),
            (Kind::Integer, Value::Number) if node.raw.parse::<i64>().is_ok() => {}
            (Kind::Bytes, Value::Text(_)) => self.bytes(node),
            (Kind::Flag, _) if flag_of(node).is_some() => {}
            (Kind::Flag, Value::Text(_) | Value::Number) => {
                let msg = "Input should be a valid boolean, unable to interpret input";
                self.report("bool_parsing", msg, node.raw);
            }
            (Kind::Integer, Value::Text(_)) => {
                let msg = "Input should be a valid integer, unable to parse string as an integer";
                self.report("int_parsing", msg, node.raw);
            }
            (Kind::Number, Value::Text(_)) => {
                let msg = "Input should be a valid number, unable to parse string as a number";
                self.report("float_parsing", msg, node.raw);
            }
            (Kind::Text, _) => self.report("string_type", "Input should be a valid string", node.raw),
            (Kind::Bytes, _) => self.report("bytes_type", "Input should be a valid bytes", node.raw),
            (Kind::Flag, _) => self.report("bool_type", "Input should be a valid boolean", node.raw),
            (Kind::Integer, _) => self.report("int_type", "Input should be a valid integer", node.raw),
            (Kind::Number, _) => self.report("float_type", "Input should be a valid number", node.raw),
            (Kind::List(_), _) => self.report("list_type", "Input should be a valid list", node.raw),
            (Kind::Map | Kind::MapOf(_) | Kind::Notes, _) => {
                self.report("dict_type", "Input should be a valid dictionary", node.raw);
            }
        }
    }

    /// Refuses notes that only a commit writes: a reader would take them for a record of the
    /// commit.
    fn notes(&mut self, entries: &'a [Entry<'_>]) {
        for (name, value) in entries.iter().filter(|(name, _)| name.starts_with(RESERVED)) {
            let msg = "Only Sessile writes notes whose names begin with sessile:; leave it out (an event removes keys \
                       with actions.stateRemove)";
            self.at(PathStep::Name(name), |check| check.report("value_error", msg, value.raw));
        }
    }

    fn operations(&mut self, node: &Node<'_>) {
        let read = SharedValue::from_json(node.raw).map_err(|error| error.to_string());
        if let Err(error) = read.and_then(|given| Operations::from_json(&given)) {
            self.report("value_error", &format!("Value error, {error}"), node.raw);
        }
    }

    fn word(&mut self, words: &[&str], node: &Node<'_>) {
        let expected = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" or ");
        let (msg, ctx) = (format!("Input should be {expected}"), json!({ "expected": expected }));
        let problem = Problem::new("literal_error", self.loc(), msg, node.raw).with_ctx(ctx);
        self.push(problem);
    }

    fn bytes(&mut self, node: &Node<'_>) {
        if let Err(error) = serde_json::from_str::<sessile_session::Bytes>(node.raw) {
            let msg = format!("Data should be valid base64: {error}");
            let ctx = json!({ "encoding": "base64", "encoding_error": error.to_string() });
            let problem = Problem::new("bytes_invalid_encoding", self.loc(), msg, node.raw).with_ctx(ctx);
            self.push(problem);
        }
    }

    fn at(&mut self, place: PathStep<'a>, check: impl FnOnce(&mut Self)) {
        self.path.push(place);
        check(self);
        self.path.pop();
    }

    /// The path as problems report it.
    fn loc(&self) -> Vec<Step> {
        let step = |place: &PathStep<'_>| match place {
            PathStep::Name(name) => Step::name(*name),
            PathStep::Index(index) => Step::Index(*index),
        };
        [Step::name("body")].into_iter().chain(self.path.iter().map(step)).collect()
    }

    fn report(&mut self, kind: &'static str, msg: &str, input: &str) {
        self.push(Problem::new(kind, self.loc(), msg, input));
    }

    /// Keeps a problem, unless there are too many: a body of invalid items must not cause a
    /// response many times its size.
    fn push(&mut self, problem: Problem) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(problem);
        }
    }
}
