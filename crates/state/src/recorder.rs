//! Recording what is changed in a state and read from it, for a caller that commits it elsewhere
//! from time to time.

use std::collections::BTreeMap;

use crate::journal::{Journal, Recorded};
use crate::node::Node;
use crate::state::State;
use crate::value::SharedValue;

/// Records what all handles of a state change and read, until it is dropped.
///
/// Changes take effect for all handles at once, as without a recorder. The recording keeps their
/// intent: an addition stays an addition, and for a key that was set after it was read, it has the
/// value that the caller had read. So a long-lived state that many tasks share can be committed to
/// a store without losing the updates of other writers.
///
/// ```
/// use serde_json::json;
/// use sessile_state::State;
///
/// let state = State::new();
/// state.set("name", "Ada");
/// let recorder = state.record(|_| true).expect("no other recorder");
/// state.add("points", 1);
/// state.modify("name", String::new(), |name| format!("{name} Lovelace"));
///
/// let recorded = recorder.take();
/// assert_eq!(serde_json::to_value(&recorded.delta).unwrap(), json!({
///     "set": {"name": "Ada Lovelace"}, "ops": {"points": {"add": 1}},
/// }));
/// assert_eq!(recorded.reads["name"].as_ref().unwrap(), &json!("Ada"));
///
/// // What the store made of it: others had added 6.
/// recorder.absorb([("points".to_owned(), Some(json!(7).into()))].into());
/// assert_eq!(state.get("points"), Some(7));
/// ```
#[derive(Debug)]
pub struct Recorder {
    state: State,
}

impl State {
    /// Starts to record the changes and reads, by all handles of this state, of the keys for which
    /// `keep` returns true. `None` if the state is already being recorded, or is a delta view,
    /// which tracks its changes itself.
    pub fn record(&self, keep: fn(&str) -> bool) -> Option<Recorder> {
        let Node::Base(base) = &*self.node else { return None };
        base.journal.begin(keep).then(|| Recorder { state: self.clone() })
    }

    /// A handle of this state whose reads are tracked by neither views nor recorders: for code that
    /// only observes, and does not write back anything computed from what it reads.
    pub fn without_read_tracking(&self) -> Self {
        Self { is_quiet: true, ..self.clone() }
    }
}

impl Recorder {
    /// Returns what was recorded since the last call, and clears it. The state is not changed.
    pub fn take(&self) -> Recorded {
        self.with(Journal::take).unwrap_or_default()
    }

    /// Counts a key as read with this value, in place of what was read before.
    pub fn mark_read(&self, key: &str, value: Option<SharedValue>) {
        self.with(|journal| journal.mark_read(key, value));
    }

    /// Applies values that were committed elsewhere: the keys get these values, `None` is absence.
    /// Changes made here since the last [`take`](Self::take) are kept on top: operations are
    /// applied again to the new value, and a key that was set or removed stays so. Nothing of this
    /// is recorded.
    pub fn absorb(&self, values: BTreeMap<String, Option<SharedValue>>) {
        if let Node::Base(base) = &*self.state.node {
            base.absorb(values);
        }
    }

    fn with<R>(&self, work: impl FnOnce(&Journal) -> R) -> Option<R> {
        match &*self.state.node {
            Node::Base(base) => Some(work(&base.journal)),
            Node::Overlay(_) => None,
        }
    }
}

/// Recording ends; what was not taken is discarded.
impl Drop for Recorder {
    fn drop(&mut self) {
        self.with(Journal::end);
    }
}
