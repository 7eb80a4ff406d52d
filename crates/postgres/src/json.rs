//! What travels to the server: one JSON text for each write.

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};
use sessile_session::{Event, SessionError};
use sessile_state::{Delta, Scope, SharedValue};

/// A JSON object whose fields are ready texts.
pub(crate) type Fields = BTreeMap<&'static str, Box<RawValue>>;

/// Anything as JSON.
pub(crate) fn raw<T: serde::Serialize + ?Sized>(value: &T) -> Result<Box<RawValue>, SessionError> {
    to_raw_value(value).map_err(sessile_session::doing("write JSON"))
}

/// A delta as the functions of the database take it.
///
/// A row written by hand may name a key of shared state with its prefix, which is read as the same key. Such twins
/// are removed, so that they neither shadow what is set nor survive its removal.
///
/// # Errors
///
/// [`SessionError::InvalidState`] names a key that PostgreSQL cannot hold.
pub(crate) fn delta(delta: &Delta, scope: Scope) -> Result<Box<RawValue>, SessionError> {
    let mut set = BTreeMap::new();
    for (key, value) in delta.values() {
        set.insert(key, state_value(key, value, scope.prefix())?);
    }
    let removed: Vec<&str> = delta.removed().collect();
    if let Some(key) = removed.iter().find(|key| key.contains('\0')) {
        return Err(unfit(key, scope.prefix()));
    }
    let mut fields = Fields::new();
    fields.insert("set", raw(&set)?);
    fields.insert("remove", raw(&removed)?);
    if scope != Scope::Session {
        fields.insert("twins", raw(&text_array(delta.iter().map(|(key, _)| scope.key(key))))?);
    }
    raw(&fields)
}

/// Texts as PostgreSQL reads an array of them, which costs it less than JSON would.
fn text_array(texts: impl Iterator<Item = String>) -> String {
    let quoted: Vec<String> =
        texts.map(|text| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))).collect();
    format!("{{{}}}", quoted.join(","))
}

/// A state's value as JSON, if PostgreSQL can hold it.
pub(crate) fn state_value(
    key: &str,
    value: &SharedValue,
    prefix: &str,
) -> Result<Box<RawValue>, SessionError> {
    let text = raw(value)?;
    if key.contains('\0') || has_nul(text.get()) {
        return Err(unfit(key, prefix));
    }
    Ok(text)
}

fn unfit(key: &str, prefix: &str) -> SessionError {
    SessionError::InvalidState {
        key: format!("{prefix}{key}"),
        reason: "it contains U+0000, which PostgreSQL cannot hold; take it out or encode it".to_owned(),
    }
}

/// An event as JSON, if PostgreSQL can hold it.
pub(crate) fn event(event: &Event) -> Result<Box<RawValue>, SessionError> {
    let invalid = |reason: String| SessionError::InvalidEvent { id: event.id.clone(), reason };
    let text = event.to_stored_json().map_err(|error| invalid(error.to_string()))?;
    if has_nul(&text) || event.invocation_id.contains('\0') {
        return Err(invalid(
            "it contains U+0000, which PostgreSQL cannot hold; take it out or encode it".to_owned(),
        ));
    }
    RawValue::from_string(text).map_err(|error| invalid(error.to_string()))
}

/// Whether a JSON text has a U+0000 in one of its strings, which JSON writes as an escape.
fn has_nul(json: &str) -> bool {
    json.match_indices("\\u0000").any(|(place, _)| {
        let backslashes = json[..place].bytes().rev().take_while(|byte| *byte == b'\\').count();
        backslashes % 2 == 0
    })
}

#[cfg(test)]
mod tests {
    use super::has_nul;

    #[test]
    fn a_nul_is_told_from_a_text_about_one() {
        for (value, expected) in
            [("a\u{0}b", true), ("\\u0000", false), ("\\\u{0}", true), ("\\\\u0000", false), ("u0000", false)]
        {
            assert_eq!(has_nul(&serde_json::to_string(value).unwrap()), expected, "{value:?}");
        }
    }
}
