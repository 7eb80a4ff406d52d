//! What an answer shows of the state.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::change::{LOG, Scope};
use crate::http::Answer;
use crate::model::State;
use crate::target::{Condition, LogKey, Target};

/// The state of one scope or, in an answer about a session, of all three.
#[derive(Clone, Debug)]
pub(crate) struct View {
    target: Target,
    pub(crate) etag: String,
    /// By scope, with names that have no prefix.
    pub(crate) states: BTreeMap<Scope, State>,
    /// The events of a session.
    pub(crate) events: Vec<Value>,
}

impl View {
    /// Reads an answer, unless it has not the form of one.
    pub(crate) fn of(target: Target, answer: &Answer) -> Option<Self> {
        let (mut states, mut events) = (BTreeMap::new(), Vec::new());
        if let Target::Session(..) = target {
            states.extend(Scope::ALL.map(|scope| (scope, State::new())));
            for (key, value) in answer.body["state"].as_object()? {
                let (scope, name) = Scope::of(key);
                states.entry(scope).or_default().insert(name.to_owned(), value.clone());
            }
            events.clone_from(answer.body["events"].as_array()?);
        } else {
            states.insert(target.scope(), answer.body.as_object()?.clone());
        }
        Some(Self { target, etag: answer.etag.clone()?, states, events })
    }

    /// The tokens in the log of a scope.
    pub(crate) fn log(&self, scope: Scope) -> Vec<&str> {
        let log = self.states.get(&scope).and_then(|state| state.get(LOG)?.as_array());
        log.into_iter().flatten().map(|token| token.as_str().unwrap_or("not a token")).collect()
    }

    /// The token of the write that created the session.
    pub(crate) fn born(&self) -> &str {
        let session = self.states.get(&Scope::Session);
        session.and_then(|state| state.get("born")?.as_str()).unwrap_or_default()
    }

    pub(crate) fn log_key(&self, scope: Scope) -> LogKey {
        self.target.log_key(scope, self.born())
    }

    /// The `If-Match` of a caller that goes on from here.
    pub(crate) fn condition(&self) -> Condition {
        let scope = self.target.scope();
        Condition { etag: self.etag.clone(), log_key: self.log_key(scope), length: self.log(scope).len() }
    }
}

/// The version of a session: the first digits of its `ETag`.
pub(crate) fn version(etag: &str) -> Option<usize> {
    let digits = etag.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}
