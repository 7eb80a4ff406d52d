use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use sessile_session::StateMap;
use sessile_state::{Operations, SharedValue};

use super::check::{check, check_map, flag_of};
use super::parse::{Node, Value, parse};
use super::problem::{Problem, Step};
use crate::describe::model::{Model, is_called};
use crate::http::limits::Limits;

/// A body that was parsed as JSON, and the limits that apply to it.
pub(crate) struct Document<'a> {
    root: Node<'a>,
    limits: &'a Limits,
}

/// The fields of an object that matches its model.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    entries: Vec<(Cow<'a, str>, Node<'a>)>,
    /// Where in the body the object is: the fields that lead to it.
    path: Vec<&'static str>,
    limits: &'a Limits,
}

/// A key of state as a request names it, and where.
#[derive(Debug)]
pub(crate) struct NamedKey<'f> {
    pub(crate) key: &'f str,
    raw: &'f str,
    /// The path of the object in the body, and the field that names the key.
    path: &'f [&'static str],
    field: &'static str,
    /// The index of the key, if the field is a list.
    index: Option<usize>,
}

impl<'a> Document<'a> {
    /// Reads a text.
    pub(crate) fn parse(text: &'a str, limits: &'a Limits) -> Result<Self, Vec<Problem>> {
        let root = parse(text, limits.json_depth).map_err(|error| vec![Problem::malformed(&error)])?;
        Ok(Self { root, limits })
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.root.value, Value::Null)
    }

    /// The fields, if the body matches the model.
    pub(crate) fn fields(self, model: &Model) -> Result<Fields<'a>, Vec<Problem>> {
        let problems = check(&self.root, model);
        match self.root.value {
            Value::Object(entries) if problems.is_empty() => {
                Ok(Fields { entries, path: vec!["body"], limits: self.limits })
            }
            _ => Err(problems),
        }
    }

    /// The whole body as state.
    pub(crate) fn state(&self) -> Result<StateMap, Vec<Problem>> {
        let problems = check_map(&self.root);
        if !problems.is_empty() {
            return Err(problems);
        }
        state(&self.root, self.limits, &|| vec![Step::name("body")])
    }
}

impl<'a> Fields<'a> {
    /// A text.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        match &self.get(name)?.value {
            Value::Text(text) => Some(text.clone().into_owned()),
            _ => None,
        }
    }

    /// Whether a flag is set.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(flag_of) == Some(true)
    }

    /// A whole number.
    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        self.get(name)?.raw.parse().ok()
    }

    /// Takes out the fields of an object inside; none if it is left out or null.
    pub(crate) fn take(&mut self, name: &'static str) -> Self {
        let path = [&self.path[..], &[name]].concat();
        let found = self.entries.iter_mut().find(|(key, _)| is_called(name, key));
        let entries = match found.map(|(_, node)| &mut node.value) {
            Some(Value::Object(entries)) => std::mem::take(entries),
            _ => Vec::new(),
        };
        Self { entries, path, limits: self.limits }
    }

    /// A map of state keys, each checked against the limits.
    pub(crate) fn state(&self, name: &str) -> Result<Option<StateMap>, Vec<Problem>> {
        let Some(node) = self.get(name).filter(|node| matches!(node.value, Value::Object(_))) else {
            return Ok(None);
        };
        state(node, self.limits, &|| self.at(name)).map(Some)
    }

    /// The state keys that a map or a list names.
    pub(crate) fn keys(&self, field: &'static str) -> Vec<NamedKey<'_>> {
        let named = |key, raw, index| NamedKey { key, raw, path: &self.path, field, index };
        match self.get(field).map(|node| &node.value) {
            Some(Value::Object(entries)) => {
                entries.iter().map(|(key, node)| named(&**key, node.raw, None)).collect()
            }
            Some(Value::List(items)) => {
                let texts = items.iter().enumerate().filter_map(|(index, node)| match &node.value {
                    Value::Text(key) => Some(named(&**key, node.raw, Some(index))),
                    _ => None,
                });
                texts.collect()
            }
            _ => Vec::new(),
        }
    }

    /// Operations by state key.
    pub(crate) fn operations(&self, name: &str) -> Result<Vec<(String, Operations)>, Vec<Problem>> {
        let Some(Value::Object(entries)) = self.get(name).map(|node| &node.value) else {
            return Ok(Vec::new());
        };
        let read = |(key, node): &(Cow<'a, str>, Node<'a>)| {
            let given = SharedValue::from_json(node.raw).map_err(|error| error.to_string());
            match given.and_then(|given| Operations::from_json(&given)) {
                Ok(operations) => Ok((key.clone().into_owned(), operations)),
                Err(error) => {
                    let loc = [self.at(name), vec![Step::name(&**key)]].concat();
                    let msg = format!("Value error, {error}");
                    Err(vec![Problem::new("value_error", loc, msg, node.raw)])
                }
            }
        };
        entries.iter().map(read).collect()
    }

    /// Refuses fields that are not allowed here, instead of ignoring them.
    pub(crate) fn refuse(&self, names: &[&str], msg: &str) -> Result<(), Vec<Problem>> {
        let given = |name: &&str| {
            let node = self.get(name).filter(|node| !matches!(node.value, Value::Null))?;
            Some(Problem::new("value_error", self.at(name), msg, node.raw))
        };
        let problems: Vec<Problem> = names.iter().filter_map(given).collect();
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// How much a request may hold.
    pub(crate) fn limits(&self) -> &Limits {
        self.limits
    }

    /// Free notes.
    pub(crate) fn map(&self, name: &str) -> Result<Option<BTreeMap<String, SharedValue>>, Vec<Problem>> {
        self.read(name)
    }

    /// A value as a `T`.
    pub(crate) fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Vec<Problem>> {
        let Some(node) = self.get(name).filter(|node| !matches!(node.value, Value::Null)) else {
            return Ok(None);
        };
        serde_json::from_str(node.raw).map(Some).map_err(|error| {
            vec![Problem::new("value_error", self.at(name), format!("Value error, {error}"), node.raw)]
        })
    }

    /// The texts of a list.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let Some(Value::List(items)) = self.get(name).map(|node| &node.value) else { return Vec::new() };
        let text = |node: &Node<'a>| match &node.value {
            Value::Text(text) => Some(text.clone().into_owned()),
            _ => None,
        };
        items.iter().filter_map(text).collect()
    }

    /// How many items a list has.
    pub(crate) fn count(&self, name: &str) -> usize {
        match self.get(name).map(|node| &node.value) {
            Some(Value::List(items)) => items.len(),
            _ => 0,
        }
    }

    fn get(&self, name: &str) -> Option<&Node<'a>> {
        self.entries.iter().find(|(key, _)| is_called(name, key)).map(|(_, node)| node)
    }

    /// The path of a field in the body.
    fn at(&self, name: &str) -> Vec<Step> {
        steps(&self.path, [Step::name(name)])
    }
}

impl NamedKey<'_> {
    /// A problem with this key.
    pub(crate) fn problem(&self, kind: &'static str, msg: impl Into<String>) -> Problem {
        let step = self.index.map_or_else(|| Step::name(self.key), Step::Index);
        Problem::new(kind, steps(self.path, [Step::name(self.field), step]), msg, self.raw)
    }

    /// The problem with this key, if it is longer than the limit.
    pub(crate) fn too_long(&self, limits: &Limits) -> Option<Problem> {
        let is_long = self.key.len() > limits.key_length && self.key.chars().count() > limits.key_length;
        is_long.then(|| self.problem("string_too_long", too_long(limits)))
    }
}

/// The steps to an object, and from there.
fn steps(path: &[&'static str], further: impl IntoIterator<Item = Step>) -> Vec<Step> {
    path.iter().map(|name| Step::name(*name)).chain(further).collect()
}

/// The message about a key that is longer than the limit.
pub(crate) fn too_long(limits: &Limits) -> String {
    format!("State keys have at most {} characters", limits.key_length)
}

fn state(node: &Node<'_>, limits: &Limits, path: &dyn Fn() -> Vec<Step>) -> Result<StateMap, Vec<Problem>> {
    let Value::Object(entries) = &node.value else { return Ok(StateMap::new()) };
    let (mut state, mut problems) = (StateMap::new(), Vec::new());
    for (key, value) in entries {
        let at_key = || path().into_iter().chain([Step::name(&**key)]).collect();
        if key.len() > limits.key_length && key.chars().count() > limits.key_length {
            problems.push(Problem::new("string_too_long", at_key(), too_long(limits), value.raw));
            continue;
        }
        match SharedValue::from_json(value.raw) {
            Ok(value) => drop(state.insert(key.clone().into_owned(), value)),
            Err(error) => {
                let msg = format!("Value error, {error}");
                problems.push(Problem::new("value_error", at_key(), msg, value.raw));
            }
        }
    }
    if problems.is_empty() { Ok(state) } else { Err(problems) }
}
