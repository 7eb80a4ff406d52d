//! Keys as text: shared without copying, and joined from a prefix and a name without allocating.

use std::sync::Arc;

/// A state key, shared by tables, indexes and deltas.
pub(crate) type Key = Arc<str>;

/// The prefix of computed variables.
pub(crate) const DERIVED: &str = "derived:";

/// Keys up to this length are joined on the stack.
const STACK: usize = 96;

/// The two halves of the key that `key` falls back to: keys without a colon do, others do not.
pub(crate) fn derived_name(key: &str) -> Option<(&'static str, &str)> {
    (!key.contains(':')).then_some((DERIVED, key))
}

/// Calls `with` with `prefix` and `name` in one piece.
pub(crate) fn joined<R>((prefix, name): (&str, &str), with: impl FnOnce(&str) -> R) -> R {
    let length = prefix.len() + name.len();
    let mut buffer = [0; STACK];
    if let Some(bytes) = buffer.get_mut(..length) {
        bytes[..prefix.len()].copy_from_slice(prefix.as_bytes());
        bytes[prefix.len()..].copy_from_slice(name.as_bytes());
        if let Ok(key) = std::str::from_utf8(bytes) {
            return with(key);
        }
    }
    with(&format!("{prefix}{name}"))
}
