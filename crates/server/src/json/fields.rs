use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use sessile_session::StateMap;
use sessile_state::SharedValue;

use super::check::{check, check_map, flag};
use super::model::{Model, is_called};
use super::parse::{Node, Value, parse};
use super::problem::{Problem, Step};
use crate::limits::Limits;

/// A body that is JSON, and what it may hold.
pub(crate) struct Document<'a> {
    root: Node<'a>,
    limits: &'a Limits,
}

/// The fields of an object that is as its model says.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    entries: Vec<(std::borrow::Cow<'a, str>, Node<'a>)>,
    limits: &'a Limits,
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

    /// The fields, if they are as the model says.
    pub(crate) fn fields(self, model: &Model) -> Result<Fields<'a>, Vec<Problem>> {
        let problems = check(&self.root, model);
        match self.root.value {
            Value::Object(entries) if problems.is_empty() => Ok(Fields { entries, limits: self.limits }),
            _ => Err(problems),
        }
    }

    /// The whole body as state.
    pub(crate) fn state(&self) -> Result<StateMap, Vec<Problem>> {
        let problems = check_map(&self.root);
        if !problems.is_empty() {
            return Err(problems);
        }
        state(&self.root, self.limits, vec![Step::name("body")])
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
        self.get(name).and_then(flag) == Some(true)
    }

    /// A whole number.
    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        self.get(name)?.raw.parse().ok()
    }

    /// A map of state keys, each checked against the limits.
    pub(crate) fn state(&self, name: &str) -> Result<Option<StateMap>, Vec<Problem>> {
        let Some(node) = self.get(name).filter(|node| matches!(node.value, Value::Object(_))) else {
            return Ok(None);
        };
        state(node, self.limits, vec![Step::name("body"), Step::name(name)]).map(Some)
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
            let loc = vec![Step::name("body"), Step::name(name)];
            vec![Problem::new("value_error", loc, format!("Value error, {error}"), node.raw)]
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
}

fn state(node: &Node<'_>, limits: &Limits, path: Vec<Step>) -> Result<StateMap, Vec<Problem>> {
    let Value::Object(entries) = &node.value else { return Ok(StateMap::new()) };
    let (mut state, mut problems) = (StateMap::new(), Vec::new());
    for (key, value) in entries {
        let at_key = || path.iter().cloned().chain([Step::name(&**key)]).collect();
        if key.chars().count() > limits.key_length {
            let msg = format!("State keys have at most {} characters", limits.key_length);
            problems.push(Problem::new("string_too_long", at_key(), msg, value.raw));
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
