//! What a write asks for, and how it is spelled in a request.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The name of the list, in every scope, to which each write appends its token.
pub(crate) const LOG: &str = "log";

/// A scope of state that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scope {
    Session,
    User,
    App,
}

impl Scope {
    pub(crate) const ALL: [Self; 3] = [Self::Session, Self::User, Self::App];

    fn prefix(self) -> &'static str {
        match self {
            Self::Session => "",
            Self::User => "user:",
            Self::App => "app:",
        }
    }

    /// A key of a session's state, split into its scope and its name there.
    pub(crate) fn of(key: &str) -> (Self, &str) {
        for scope in [Self::User, Self::App] {
            if let Some(name) = key.strip_prefix(scope.prefix()) {
                return (scope, name);
            }
        }
        (Self::Session, key)
    }

    /// The key under which a session shows a name of this scope.
    pub(crate) fn key(self, name: &str) -> String {
        format!("{}{name}", self.prefix())
    }
}

/// An operation on the current value of a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    Add {
        by: Value,
        min: Option<i64>,
        max: Option<i64>,
    },
    Append(Vec<Value>),
    /// A list of items, or an object of fields.
    Union(Value),
}

impl Op {
    fn json(&self) -> Value {
        match self {
            Self::Add { by, min, max } => {
                let mut op = json!({ "add": by });
                for (name, bound) in [("min", min), ("max", max)] {
                    if let Some(bound) = bound {
                        op[name] = json!(bound);
                    }
                }
                op
            }
            Self::Append(items) => json!({ "append": items }),
            Self::Union(items) => json!({ "union": items }),
        }
    }
}

/// What a write asks of one scope; names are without their prefix.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Part {
    pub(crate) set: Map<String, Value>,
    pub(crate) remove: Vec<String>,
    pub(crate) ops: BTreeMap<String, Vec<Op>>,
    /// Guards: what the caller has read, and what it has found absent.
    pub(crate) read: Map<String, Value>,
    pub(crate) absent: Vec<String>,
}

impl Part {
    /// The names that the write changes.
    pub(crate) fn changed(&self) -> impl Iterator<Item = &str> {
        self.set.keys().chain(&self.remove).chain(self.ops.keys()).map(String::as_str)
    }

    /// The guarded names, each with the value that the caller has read.
    pub(crate) fn guards(&self) -> impl Iterator<Item = (&str, Option<&Value>)> {
        let read = self.read.iter().map(|(name, value)| (name.as_str(), Some(value)));
        read.chain(self.absent.iter().map(|name| (name.as_str(), None)))
    }
}

/// What a write asks for, by scope.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Change {
    pub(crate) parts: BTreeMap<Scope, Part>,
    /// `onOverwrite` is `report`: the write goes through although a guard does not hold.
    pub(crate) report: bool,
}

impl Change {
    /// The fields of a request. In requests to a session (`Scope::Session`) keys have their prefix;
    /// requests to a user's or an application's state hold that scope only, without prefix.
    pub(crate) fn fields(&self, target: Scope) -> Map<String, Value> {
        let mut fields = Map::new();
        for (scope, part) in &self.parts {
            let key = |name: &str| if target == Scope::Session { scope.key(name) } else { name.to_owned() };
            for (name, value) in &part.set {
                object(&mut fields, "stateDelta").insert(key(name), value.clone());
            }
            for (name, ops) in &part.ops {
                let mut ops: Vec<Value> = ops.iter().map(Op::json).collect();
                let value = if ops.len() == 1 { ops.remove(0) } else { Value::Array(ops) };
                object(&mut fields, "stateOps").insert(key(name), value);
            }
            for (name, value) in &part.read {
                object(&mut fields, "stateRead").insert(key(name), value.clone());
            }
            for (field, names) in [("stateRemove", &part.remove), ("stateAbsent", &part.absent)] {
                for name in names {
                    let list = fields.entry(field).or_insert_with(|| json!([]));
                    list.as_array_mut().expect("it is a list").push(key(name).into());
                }
            }
        }
        if self.report {
            fields.insert("onOverwrite".into(), "report".into());
        }
        fields
    }
}

fn object<'a>(fields: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    fields.entry(name).or_insert_with(|| json!({})).as_object_mut().expect("it is an object")
}
