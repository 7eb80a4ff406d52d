//! A scope's state as it is stored: a JSON text, which is parsed only as far as necessary.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use sessile_session::SessionError;
use sessile_state::{Change, Delta, Scope, SharedValue};

use crate::rows::{Owner, StoredState, state};
use crate::unreadable::may_be_unreadable;

/// A scope's state. It keeps the text of each value, so that an unchanged key is written back
/// exactly as it was.
pub(crate) struct StateText {
    owner: Owner,
    /// The whole text; `None` after a change, until it is needed.
    text: Option<String>,
    /// Its keys; `None` until one of them is needed.
    keys: Option<Keys>,
    /// Whether all values are known to be readable.
    is_readable: bool,
}

/// The keys of a state, and the JSON of their values.
#[derive(Default)]
pub(crate) struct Keys {
    values: BTreeMap<String, Arc<str>>,
    /// The lengths of all keys and values.
    size: usize,
    /// The prefix under which keys may be stored too: see [`Keys::twin`].
    prefix: Option<Scope>,
}

/// Changes as texts: the new JSON of each key, or `None` if it is removed.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextChanges(Vec<(String, Option<Arc<str>>)>);

impl TextChanges {
    /// Results, which have no operations, as texts.
    pub(crate) fn new(results: &Delta) -> Result<Self, serde_json::Error> {
        let text = |(key, change): (&str, &Change)| match change {
            Change::Set(value) => Ok((key.to_owned(), Some(serde_json::to_string(value)?.into()))),
            Change::Remove => Ok((key.to_owned(), None)),
            Change::Operate(_) => unreachable!("operations are computed before they are written"),
        };
        results.iter().map(text).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl StateText {
    /// The state of a row.
    pub(crate) fn stored(StoredState { owner, text }: StoredState) -> Self {
        Self { owner, text: Some(text), keys: None, is_readable: false }
    }

    /// The state of a row that is not there.
    pub(crate) fn empty(owner: Owner) -> Self {
        Self { owner, text: Some("{}".to_owned()), keys: None, is_readable: true }
    }

    /// Its keys.
    pub(crate) fn keys(&mut self) -> Result<&mut Keys, SessionError> {
        let keys = match self.keys.take() {
            Some(keys) => keys,
            None => {
                let text = self.text.as_deref().unwrap_or("{}");
                Keys::parse(text, self.owner.scope()).map_err(|error| self.owner.corrupt("state", error))?
            }
        };
        Ok(self.keys.insert(keys))
    }

    /// Makes changes.
    pub(crate) fn apply(&mut self, changes: &TextChanges) -> Result<(), SessionError> {
        self.keys()?.apply(changes);
        self.text = None;
        Ok(())
    }

    /// The whole text.
    pub(crate) fn text(&mut self) -> &str {
        let Self { text, keys, .. } = self;
        text.get_or_insert_with(|| keys.as_ref().map_or_else(|| "{}".to_owned(), Keys::to_text))
    }

    /// The text as it is now, to be parsed elsewhere.
    pub(crate) fn copy(&mut self) -> StoredState {
        StoredState { text: self.text().to_owned(), owner: self.owner.clone() }
    }

    /// Makes sure that all values can be read, so that reading them after the commit cannot fail.
    /// Other programs may store valid JSON that has no [`SharedValue`]; only a text that may be
    /// such JSON is parsed here.
    pub(crate) fn check_readable(&mut self) -> Result<(), SessionError> {
        if self.is_readable {
            return Ok(());
        }
        self.keys()?;
        let text = self.text();
        if may_be_unreadable(text)
            && let Err(error) = state(text)
        {
            return Err(self.owner.corrupt("state", error));
        }
        self.is_readable = true;
        Ok(())
    }

    /// Refuses changes that make the state larger than the limit. A state that is too large already
    /// may be changed as long as it does not grow.
    pub(crate) fn check_size(
        &mut self,
        changes: &TextChanges,
        limit: Option<usize>,
    ) -> Result<(), SessionError> {
        let Some(limit) = limit.filter(|_| !changes.is_empty()) else { return Ok(()) };
        let keys = self.keys()?;
        let (before, size) = (keys.size, keys.size_with(changes));
        match size > limit && size > before {
            true => Err(SessionError::TooLarge { scope: self.owner.scope(), size, limit }),
            false => Ok(()),
        }
    }

    /// Finds values by their keys. The error of a corrupt value is put into `failed`, and the value
    /// is treated as absent.
    pub(crate) fn value_of<'a>(
        &'a self,
        failed: &'a RefCell<Option<SessionError>>,
    ) -> impl Fn(&str) -> Option<SharedValue> + 'a {
        move |key| {
            self.keys.as_ref()?.value(key).unwrap_or_else(|error| {
                failed.replace(Some(self.owner.corrupt("state", error)));
                None
            })
        }
    }
}

impl Keys {
    fn parse(text: &str, scope: Scope) -> Result<Self, serde_json::Error> {
        let parsed: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
        let has_prefix = scope != Scope::Session && parsed.keys().any(|key| Scope::of(key).0 == scope);
        let size = parsed.iter().map(|(key, value)| key.len() + value.get().len()).sum();
        let values = parsed.into_iter().map(|(key, value)| (key, value.get().into())).collect();
        Ok(Self { values, size, prefix: has_prefix.then_some(scope) })
    }

    /// The JSON of a key's value. Of a key that is stored with its prefix too, the value without it
    /// is read.
    fn get(&self, key: &str) -> Option<&str> {
        let twin = || self.values.get(&self.twin(key)?);
        self.values.get(key).or_else(twin).map(|text| &**text)
    }

    /// The value of a key.
    fn value(&self, key: &str) -> Result<Option<SharedValue>, serde_json::Error> {
        self.get(key).map(SharedValue::from_json).transpose()
    }

    /// The size after changes.
    fn size_with(&self, changes: &TextChanges) -> usize {
        let held = |key: &str| self.values.get(key).map_or(0, |text| key.len() + text.len());
        changes.0.iter().fold(self.size, |size, (key, text)| {
            let twin = self.twin(key).map_or(0, |twin| held(&twin));
            size - held(key) - twin + text.as_ref().map_or(0, |text| key.len() + text.len())
        })
    }

    /// The same key with its prefix, as a row written by hand may have it. It is removed when the
    /// key is changed, so that it neither shadows the new value nor survives the removal.
    fn twin(&self, key: &str) -> Option<String> {
        self.prefix.map(|scope| scope.key(key))
    }

    fn apply(&mut self, changes: &TextChanges) {
        self.size = self.size_with(changes);
        for (key, text) in &changes.0 {
            if let Some(twin) = self.twin(key) {
                self.values.remove(&twin);
            }
            match (text, self.values.get_mut(key)) {
                (Some(text), Some(held)) => *held = text.clone(),
                (Some(text), None) => drop(self.values.insert(key.clone(), text.clone())),
                (None, _) => drop(self.values.remove(key)),
            }
        }
    }

    fn to_text(&self) -> String {
        let mut text = String::with_capacity(self.size + 4 * self.values.len() + 2);
        for (key, value) in &self.values {
            text.push(if text.is_empty() { '{' } else { ',' });
            push_key(&mut text, key);
            text.push(':');
            text.push_str(value);
        }
        text.push_str(if text.is_empty() { "{}" } else { "}" });
        text
    }
}

fn push_key(text: &mut String, key: &str) {
    match key.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        true => text.push_str(&serde_json::Value::from(key).to_string()),
        false => {
            text.push('"');
            text.push_str(key);
            text.push('"');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_that_of_keys_and_values_after_every_change() {
        let owner = Owner::Shared(sessile_session::ScopeKey::App("shop".to_owned()));
        let text = r#"{"app:twin": 12, "twin": [1, 2], "odd \"key\"": 1.50, "plain": "x"}"#;
        let mut held = StateText::stored(StoredState { owner: owner.clone(), text: text.to_owned() });
        let mut delta = Delta::new();
        delta.set("twin", serde_json::json!({"a": 1}));
        delta.set("new", serde_json::json!(null));
        delta.remove("plain");
        delta.remove("absent");
        let changes = TextChanges::new(&delta).unwrap();
        let size = held.keys().unwrap().size_with(&changes);
        held.apply(&changes).unwrap();
        assert_eq!(held.text(), r#"{"new":null,"odd \"key\"":1.50,"twin":{"a":1}}"#);
        let expected = "new".len() + 4 + r#"odd "key""#.len() + 4 + "twin".len() + 7;
        assert_eq!((size, held.keys().unwrap().size), (expected, expected));
        let again =
            StateText::stored(StoredState { owner, text: held.text().to_owned() }).keys().unwrap().size;
        assert_eq!(again, expected);
    }
}
