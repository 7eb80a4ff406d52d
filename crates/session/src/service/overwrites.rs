//! Lost updates: writes that overwrote a value that their writer had not read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use sessile_state::SharedValue;

use crate::evaluate::overwrite_report;
use crate::event::{Event, OVERWROTE, json_of};
use crate::key::SessionKey;

/// A value that a writer had read, and the one that it overwrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overwrote {
    /// What the writer had read; `None` if the key was absent.
    pub read: Option<SharedValue>,
    /// What it found; `None` if the key was absent.
    pub found: Option<SharedValue>,
}

/// What was overwritten, by key; several writers of one event may overwrite the same key.
pub type Overwrites = BTreeMap<String, Vec<Overwrote>>;

/// Records in an event what its writers overwrote: an object for one, a list of objects for
/// several.
pub(super) fn report(event: &mut Event, overwrote: &Overwrites) {
    if overwrote.is_empty() {
        return;
    }
    let reports = overwrote.iter().map(|(key, all)| {
        let mut all: Vec<SharedValue> =
            all.iter().map(|one| overwrite_report(one.read.as_ref(), one.found.as_ref())).collect();
        let report = if all.len() == 1 { all.remove(0) } else { json_of(&all) };
        (key, report)
    });
    let reports = json_of(&reports.collect::<BTreeMap<_, _>>());
    event.extras.custom_metadata.get_or_insert_default().insert(OVERWROTE.to_owned(), reports);
}

/// The keys that were logged: one warning for each key of an application is enough to find the
/// code.
#[derive(Debug, Default)]
pub(super) struct Warnings(Mutex<BTreeSet<(String, String)>>);

/// Callers choose the keys, so their number is bounded.
const MOST_KEYS: usize = 1_000;

impl Warnings {
    pub(super) fn warn(&self, session: &SessionKey, event: &Event) {
        let Some(overwrote) = event.overwrote().and_then(|overwrote| overwrote.as_object()) else { return };
        for key in overwrote.keys() {
            let mut warned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if warned.len() >= MOST_KEYS || !warned.insert((session.app().to_owned(), key.clone())) {
                continue;
            }
            tracing::warn!(
                key, %session, event = event.id,
                "the state key {key:?} was overwritten with a value computed from an older one; the event has both \
                 in its custom metadata, under \"{OVERWROTE}\"; use `add`, `append`, `union` or a transaction to lose \
                 nothing, or `OnOverwrite::Refuse` to refuse such writes (further ones of this key are not logged)"
            );
        }
    }
}
