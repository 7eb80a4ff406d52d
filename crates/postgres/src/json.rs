//! Writes as the JSON that the database's functions take.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter};
use serde_json::value::RawValue;
use sessile_session::{
    Event, NewSession, OnOverwrite, ScopeGuards, SessionError, StateMap, Stored, apply, doing,
    next_update_time,
};
use sessile_state::{Change, Delta, Scope, SharedValue};

/// A JSON object whose fields are ready texts.
pub(crate) type Fields = BTreeMap<&'static str, Box<RawValue>>;

/// Anything as JSON.
pub(crate) fn raw<T: Serialize + ?Sized>(value: &T) -> Result<Box<RawValue>, SessionError> {
    let text = text(value).map_err(doing("write JSON"))?;
    RawValue::from_string(text).map_err(doing("write JSON"))
}

/// Anything as a JSON text in which every float has a decimal point. `jsonb` expands exponents, so
/// that `1e16` would come back as an integer.
fn text<T: Serialize + ?Sized>(value: &T) -> Result<String, serde_json::Error> {
    let mut bytes = Vec::with_capacity(256);
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, WithoutExponent))?;
    String::from_utf8(bytes).map_err(serde::ser::Error::custom)
}

struct WithoutExponent;

impl Formatter for WithoutExponent {
    fn write_f64<W: io::Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        // From here on the shortest form of a float has an exponent.
        match value.abs() < 1e16 {
            true => CompactFormatter.write_f64(writer, value),
            false => write!(writer, "{value}.0"),
        }
    }
}

/// A change of one scope as `sessile_evaluate` takes it: the delta, and the names that it changes
/// as a text array. That function is the SQL twin of `sessile_session::evaluate`.
pub(crate) struct ScopeTexts {
    pub(crate) delta: String,
    pub(crate) names: String,
}

/// A delta for the functions of the database; `None` if it changes nothing.
///
/// # Errors
///
/// [`SessionError::InvalidState`] names a key that PostgreSQL cannot store.
pub(crate) fn delta(delta: &Delta, scope: Scope) -> Result<Option<ScopeTexts>, SessionError> {
    if delta.is_empty() {
        return Ok(None);
    }
    for (key, change) in delta.iter() {
        let has_nul = match change {
            Change::Set(value) => has_nul(raw(value)?.get()),
            Change::Remove => false,
            Change::Operate(operations) => has_nul(raw(operations)?.get()),
        };
        if key.contains('\0') || has_nul {
            return Err(unfit(key, scope.prefix()));
        }
    }
    let names = text_array(delta.iter().map(|(key, _)| key));
    Ok(Some(ScopeTexts { delta: text(delta).map_err(doing("write JSON"))?, names }))
}

/// Guards of one scope for `sessile_compare`, the SQL twin of the comparison in
/// `sessile_session::evaluate`; `None` if there are none.
///
/// # Errors
///
/// [`SessionError::InvalidState`] names a key that PostgreSQL cannot store.
pub(crate) fn guards(guards: &ScopeGuards, scope: Scope) -> Result<Option<Box<RawValue>>, SessionError> {
    if guards.is_empty() {
        return Ok(None);
    }
    let mut list = Vec::with_capacity(guards.len());
    for (name, guard) in guards {
        let mut fields = Fields::from([("name", raw(name)?)]);
        if let Some(read) = &guard.read {
            fields.insert("read", state_value(name, read, scope.prefix())?);
        } else if name.contains('\0') {
            return Err(unfit(name, scope.prefix()));
        }
        if guard.on_overwrite == OnOverwrite::Refuse {
            fields.insert("refuse", raw(&true)?);
        }
        list.push(fields);
    }
    raw(&list).map(Some)
}

/// An array of texts in PostgreSQL's own syntax, which it parses faster than JSON.
fn text_array<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> =
        texts.map(|text| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))).collect();
    format!("{{{}}}", quoted.join(","))
}

/// A value of state as JSON, if PostgreSQL can store it.
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
        reason: "it contains U+0000, which PostgreSQL cannot store; remove it or encode it".to_owned(),
    }
}

/// An event as JSON, if PostgreSQL can store it.
pub(crate) fn event(event: &Event) -> Result<Box<RawValue>, SessionError> {
    let invalid = |reason: String| SessionError::InvalidEvent { id: event.id.clone(), reason };
    let text = text(&Stored(event)).map_err(|error| invalid(error.to_string()))?;
    if has_nul(&text) || event.invocation_id.contains('\0') {
        return Err(invalid(
            "it contains U+0000, which PostgreSQL cannot store; remove it or encode it".to_owned(),
        ));
    }
    RawValue::from_string(text).map_err(|error| invalid(error.to_string()))
}

/// A new session as `sessile_create_session` takes it.
pub(crate) fn new_session(new: &NewSession) -> Result<Box<RawValue>, SessionError> {
    let mut state = new.session.clone();
    let (mut update_time, mut bytes) = (new.time, 0);
    let mut events = Vec::with_capacity(new.events.len());
    for (listed, changes) in &new.events {
        apply(&mut state, changes);
        // In SQL, for appended events, this is `sessile_moment_after` and its callers.
        update_time = next_update_time(update_time, listed.time());
        let data = event(listed)?;
        bytes += data.get().len();
        let mut fields = Fields::new();
        fields.insert("event_id", raw(&listed.id)?);
        fields.insert("invocation", raw(&listed.invocation_id)?);
        fields.insert("time", raw(&listed.time())?);
        fields.insert("event", data);
        events.push(fields);
    }
    let mut fields = Fields::from([
        ("app", raw(new.key.app())?),
        ("user", raw(new.key.user())?),
        ("id", raw(new.key.id())?),
        ("incarnation", raw(&new.incarnation.0)?),
        ("time", raw(&new.time)?),
        ("update_time", raw(&update_time)?),
        ("bytes", raw(&bytes)?),
        ("initial", json_map(&new.session)?),
        ("state", json_map(&state)?),
        ("events", raw(&events)?),
    ]);
    if let Some(limit) = new.max_scope_bytes {
        fields.insert("max_bytes", raw(&limit)?);
    }
    for (scope, changes, names) in [
        (Scope::App, &new.app, ["app_delta", "app_names"]),
        (Scope::User, &new.user, ["user_delta", "user_names"]),
    ] {
        if let Some(texts) = delta(changes, scope)? {
            fields.insert(names[0], RawValue::from_string(texts.delta).map_err(doing("write JSON"))?);
            fields.insert(names[1], raw(&changes.iter().map(|(name, _)| name).collect::<Vec<_>>())?);
        }
    }
    raw(&fields)
}

fn json_map(state: &StateMap) -> Result<Box<RawValue>, SessionError> {
    let mut values = BTreeMap::new();
    for (key, value) in state {
        values.insert(key.as_str(), state_value(key, value, "")?);
    }
    raw(&values)
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
    use super::{has_nul, text};

    #[test]
    fn a_float_never_looks_like_an_integer() {
        let written = text(&[1.0, 0.1, 1e16, -1e20, 1.5e300, 1e-7]).unwrap();
        let numbers: Vec<f64> = serde_json::from_str(&written).unwrap();
        assert_eq!(numbers, [1.0, 0.1, 1e16, -1e20, 1.5e300, 1e-7]);
        assert!(
            written.starts_with("[1.0,0.1,10000000000000000.0,-100000000000000000000.0,15000"),
            "{written}"
        );
        assert_eq!(written.matches('e').count(), 1, "only the small number has an exponent: {written}");
    }

    #[test]
    fn a_nul_is_told_from_a_text_about_one() {
        for (value, expected) in
            [("a\u{0}b", true), ("\\u0000", false), ("\\\u{0}", true), ("\\\\u0000", false), ("u0000", false)]
        {
            assert_eq!(has_nul(&serde_json::to_string(value).unwrap()), expected, "{value:?}");
        }
    }
}
